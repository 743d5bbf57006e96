//! `quorate check`

use crate::args::Check as Args;
use crate::check::{across, of_disk, of_server, Account, Check, Checked, Facts, Weight};
use crate::failure::Failure;
use crate::failure::{FAILED, OK, UNREACHABLE, USAGE};
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
        _ if facts.len() < args.servers.len() => UNREACHABLE,
        Some(Weight::Error) => FAILED,
        _ => OK,
    })
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
