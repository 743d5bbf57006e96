//! `quorate agent`

use crate::args::{Agent as Args, Target};
use crate::failure::{readable, Failure, OK, USAGE};
use crate::remote::operating;
use anyhow::Result;
use quorate_agent::{Agent, Options, TlsFiles};
use quorate_live::read_private;
use std::path::Path;
use std::time::Duration;

/// Short ones are guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// Runs until a signal ends it; nothing has to be put in order then.
pub fn agent(args: &Args) -> Result<u8> {
    if args.stale < 2.0 * args.interval {
        let message = "--stale is less than twice --interval: each answer would be old at once";
        return Err(Failure::new(USAGE, message).into());
    }
    let operating = operating(&Target {
        seeds: vec![args.member.clone()],
        operator_file: args.operator_file.clone(),
        certificate: args.certificate.clone(),
        ..Target::default()
    })?;
    [&args.tls_cert, &args.tls_key].into_iter().flatten().try_for_each(|file| readable(file))?;
    let options = Options {
        member: args.member.clone(),
        listen: args.listen,
        interval: Duration::from_secs_f64(args.interval),
        stale: Duration::from_secs_f64(args.stale),
        tls: args
            .tls_cert
            .clone()
            .zip(args.tls_key.clone())
            .map(|(cert, key)| TlsFiles { cert, key }),
        token: args.token_file.as_deref().map(token).transpose()?,
    };
    let agent = Agent::start(options, operating)?;
    let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
    eprintln!("quorate agent: member {}, {scheme}://{}/", args.member, agent.address()?);
    agent.serve()?;
    Ok(OK)
}

fn token(file: &Path) -> Result<String> {
    readable(file)?;
    let token = read_private(file).and_then(|text| match text.trim() {
        short if short.len() < TOKEN_BYTES_MIN => Err(format!(
            "a token has at least {TOKEN_BYTES_MIN} characters; make one: openssl rand -hex 32"
        )),
        token => Ok(token.to_owned()),
    });
    let told = |reason| {
        format!(
            "the file {} cannot be used as the token of those who may give orders: {reason}. Mend it, or \
             --token-file, which names it; the agent was not started, and neither the member nor its data is \
             affected",
            file.display()
        )
    };
    token.map_err(|reason| Failure::new(USAGE, told(reason)).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{exit_code, FAILED};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let file = std::env::temp_dir().join(format!("quorate-token-{}", std::process::id()));
        let written = |text: &str, mode| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            token(&file).map_err(|error| (exit_code(&error), error.to_string()))
        };
        let good = "0123456789abcdef\n";
        assert_eq!(written(good, 0o600), Ok("0123456789abcdef".to_owned()));
        assert_eq!(written(good, 0o400), Ok("0123456789abcdef".to_owned()));
        for mode in [0o644, 0o604, 0o660] {
            let (code, told) = written(good, mode).unwrap_err();
            assert_eq!(code, USAGE);
            let name = file.display().to_string();
            assert!(told.contains(&name) && told.contains("chmod 600"), "{told}");
        }
        let (code, told) = written("too short", 0o600).unwrap_err();
        assert!(code == USAGE && told.contains("openssl rand"), "{told}");
        fs::remove_file(&file).unwrap();
        assert_eq!(exit_code(&token(&file).unwrap_err()), FAILED);
    }
}
