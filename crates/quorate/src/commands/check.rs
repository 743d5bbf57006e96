//! `quorate check`

use crate::args::Check as Args;
use crate::check::{across, of_disk, of_server, Account, Check, Checked, Facts, Weight};
use crate::failure::{Failure, FAILED, NO_PERMISSION, OK, UNREACHABLE, USAGE};
use crate::sql::is_denied;
use anyhow::{Context, Result};
use quorate_bench::meter::sync_time;
use std::fs;
use std::thread;

const SYNCS: usize = 101;

pub fn check(args: &Args) -> Result<u8> {
    let account = Account { user: args.user.clone(), password: password(args)? };
    let asked: Vec<Result<Facts>> = thread::scope(|scope| {
        let each = |address: &String| {
            let (address, account) = (address.clone(), &account);
            scope.spawn(move || Facts::ask(&address, account))
        };
        let asking: Vec<_> = args.servers.iter().map(each).collect();
        asking.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let servers = args.servers.iter().zip(&asked).map(|(address, facts)| match facts {
        Ok(facts) => Checked {
            address: address.clone(),
            version: Some(facts.version.clone()),
            round_trip_ms: Some(facts.round_trip_ms),
            unanswered: None,
            findings: of_server(facts),
        },
        Err(error) => Checked {
            address: address.clone(),
            version: None,
            round_trip_ms: None,
            unanswered: Some(format!("{error:#}")),
            findings: Vec::new(),
        },
    });
    let servers: Vec<Checked> = servers.collect();
    let is_refused = asked.iter().filter_map(|asked| asked.as_ref().err()).any(is_refused);
    let facts: Vec<Facts> = asked.into_iter().flatten().collect();
    let mut findings = across(&facts);
    if let Some(folder) = &args.disk {
        findings.push(of_disk(sync_time(folder, SYNCS)?));
    }
    let check = Check { servers, findings };
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&check)?),
        false => print!("{check}"),
    }
    Ok(match check.worst() {
        _ if is_refused => NO_PERMISSION,
        _ if facts.len() < args.servers.len() => UNREACHABLE,
        Some(Weight::Error) => FAILED,
        _ => OK,
    })
}

/// The server does not take this account, or not with this password.
fn is_refused(error: &anyhow::Error) -> bool {
    error.downcast_ref::<mysql::Error>().is_some_and(is_denied)
}

/// Of a file, or of the environment: on the command line others of this host would see it.
fn password(args: &Args) -> Result<Option<String>> {
    let Some(file) = &args.password_file else {
        return match std::env::var("QUORATE_PASSWORD") {
            Ok(password) => Ok(Some(password)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(Failure::new(USAGE, "QUORATE_PASSWORD is no text in UTF-8").into())
            }
        };
    };
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking() -> Result<Facts> {
        let account = Account { user: "root".into(), password: None };
        // Privileged, and no server's.
        Facts::ask("127.0.0.1:1", &account)
    }

    #[test]
    fn a_password_that_is_refused_is_told_apart_from_a_server_that_does_not_answer() {
        let (state, message) = ("28000".to_owned(), "Access denied".to_owned());
        let denied =
            mysql::Error::MySqlError(mysql::error::MySqlError { state, message, code: 1045 });
        let denied = Err::<(), _>(denied).with_context(|| "logging in").unwrap_err();
        assert!(is_refused(&denied));
        let absent = asking().unwrap_err();
        assert!(
            !is_refused(&absent) && absent.to_string().starts_with("connecting to"),
            "{absent}"
        );
    }
}
