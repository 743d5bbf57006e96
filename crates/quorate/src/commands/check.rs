//! `quorate check`

use crate::args::Check as Args;
use crate::check::{
    across, even, of_disk, of_group, of_server, unreached, Account, Check, Checked, CheckedMember,
    CheckedPeer, Facts, Way, Weight,
};
use crate::failure::{exit_code, Failure, FAILED, NO_PERMISSION, OK, UNREACHABLE, USAGE};
use crate::remote::Remote;
use crate::sql::is_denied;
use anyhow::{Context, Result};
use quorate_bench::meter::sync_time;
use std::fs;
use std::thread;

const SYNCS: usize = 101;

/// `group`: whose members are asked, if any are.
pub fn check(args: &Args, group: Option<&Remote>) -> Result<u8> {
    let mut check = Check::default();
    let refused_by_group = match group.map(Remote::survey) {
        None => false,
        Some(Ok(survey)) => {
            check.members = survey.nodes.iter().map(CheckedMember::of).collect();
            check.findings = of_group(&survey);
            false
        }
        // What else was named is checked all the same.
        Some(Err(error)) => {
            check.findings.push(unreached(&format!("{error:#}")));
            exit_code(&error) == NO_PERMISSION
        }
    };
    let refused_by_server = servers(args, group.is_some(), &mut check)?;
    check.peers = at_once(&args.peers, |peer| CheckedPeer::of(&Way::look(peer)));
    if let Some(folder) = &args.disk {
        check.findings.push(of_disk(sync_time(folder, SYNCS)?));
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&check)?),
        false => print!("{check}"),
    }
    let is_unreached = group.is_some() && check.members.is_empty();
    Ok(match check.worst() {
        _ if refused_by_group || refused_by_server => NO_PERMISSION,
        _ if is_unreached || !check.is_complete() => UNREACHABLE,
        Some(Weight::Error) => FAILED,
        _ => OK,
    })
}

/// Asks the servers by SQL. Gives back whether one refuses the account.
fn servers(args: &Args, knows_votes: bool, check: &mut Check) -> Result<bool> {
    let account = Account { user: args.user.clone(), password: password(args)? };
    let asked = at_once(&args.servers, |address| Facts::ask(address, &account));
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
    check.servers = servers.collect();
    let is_refused = asked.iter().filter_map(|asked| asked.as_ref().err()).any(is_refused);
    let facts: Vec<Facts> = asked.into_iter().flatten().collect();
    check.findings.extend(across(&facts));
    if !knows_votes {
        check.findings.extend(even(facts.len(), "servers"));
    }
    Ok(is_refused)
}

/// Each in a thread of its own: one that is dark holds up no other.
fn at_once<T: Send>(addresses: &[String], ask: impl Fn(&str) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let ask = &ask;
        let asking: Vec<_> =
            addresses.iter().map(|address| scope.spawn(move || ask(address))).collect();
        asking.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
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
