//! `quorate agent`

use crate::args::{Agent as Args, Target};
use crate::failure::{Failure, OK, USAGE};
use crate::remote::operating;
use anyhow::{Context, Result};
use quorate_agent::{Agent, Options, TlsFiles};
use std::fs;
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
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let token = text.trim();
    if token.len() < TOKEN_BYTES_MIN {
        let message = format!(
            "{}: a token has at least {TOKEN_BYTES_MIN} characters; make one: openssl rand -hex 32",
            file.display()
        );
        return Err(Failure::new(USAGE, message).into());
    }
    Ok(token.to_owned())
}
