//! `quorate setup`: makes the server that is installed here a member of a group, and undoes it.

use super::agree;
use crate::args::Setup;
use crate::failure::{Failure, FAILED, NO_PERMISSION, OK};
use crate::setup::{plan, Installed, Plan, Step, TRANSFERS};
use anyhow::{Context, Result};
use quorate_lab::server::Account;
use quorate_live::Secret;
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

pub fn setup(args: &Setup) -> Result<u8> {
    if !geteuid().is_root() {
        let message =
            "the server's configuration belongs to root: nothing was changed. Run this as root";
        return Err(Failure::new(NO_PERMISSION, message).into());
    }
    if args.undo {
        return undo(args);
    }
    let account = Account::named("mysql")?;
    let plan = Plan::make(args, &Installed::look()?)?;
    if plan.steps.is_empty() {
        println!("{} has all that is needed already; nothing was changed.", plan.config.display());
        return verify(&plan);
    }
    println!("This server is {}. To be done:\n", plan.own);
    plan.steps.iter().for_each(show);
    agree("The server is not restarted by this. Go ahead?", args.yes)?;
    for step in &plan.steps {
        carry_out(step, &account)?;
    }
    let code = verify(&plan)?;
    if code == OK {
        println!("{}", next(&plan, args.first));
    }
    Ok(code)
}

fn undo(args: &Setup) -> Result<u8> {
    let config = std::path::absolute(&args.config)?;
    if plan::read(&config)?.is_none() {
        println!("{} is not there: nothing to undo.", config.display());
        return Ok(OK);
    }
    println!("To be deleted: {}", config.display());
    agree("The server is not restarted by this. Go ahead?", args.yes)?;
    fs::remove_file(&config).with_context(|| format!("deleting {}", config.display()))?;
    println!(
        "Done. At its next start (systemctl restart mariadb) this is a single server, with its data as \
         it is.\nThe group's log and secret are still there; delete them when you are sure that it does \
         not return.\nIf the others are to stop counting it: stop it before, which takes leave, or \
         `quorate member remove`."
    );
    Ok(OK)
}

fn show(step: &Step) {
    match step {
        Step::MakeSecret(path) => println!("  make {}, the group's secret", path.display()),
        Step::MakeLogDir(path) => println!("  make {}, for the group's log", path.display()),
        Step::WriteConfig { path, text } => {
            println!("  write {}:\n", path.display());
            text.lines().for_each(|line| println!("    {line}"));
            println!();
        }
    }
}

fn carry_out(step: &Step, account: &Account) -> Result<()> {
    match step {
        Step::MakeSecret(path) => {
            Secret::new()?.write(path).with_context(|| format!("making {}", path.display()))?;
            account.own(path, 0o600)
        }
        Step::MakeLogDir(path) => {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .with_context(|| format!("making {}", path.display()))?;
            account.own(path, 0o700)
        }
        Step::WriteConfig { path, text } => write(path, text),
    }
}

/// As a whole or not at all: a server that is started meanwhile reads the old file or the new one.
fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("cnf.new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("writing {}", path.display()))
}

/// Whether what was written will be read, and nothing after it says otherwise.
fn verify(plan: &Plan) -> Result<u8> {
    let problems = ineffective(&plan.text, &Installed::look()?, &Installed::of_transfers()?);
    for (name, problem) in &problems {
        eprintln!("{name} of {} has no effect: {problem}", plan.config.display());
    }
    Ok(if problems.is_empty() { OK } else { FAILED })
}

/// The lines of a file of options that the server, or the scripts of state transfers, will not go by; and why.
fn ineffective<'a>(
    text: &'a str,
    server: &Installed,
    transfers: &Installed,
) -> Vec<(&'a str, String)> {
    let mut problems = Vec::new();
    let mut read = server;
    for line in text.lines() {
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            read = if group == TRANSFERS { transfers } else { server };
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        match read.option(name) {
            Some(found) if found == value => {}
            Some(found) => {
                problems.push((name, format!("another file sets it to {found} after it")))
            }
            None => {
                let what = "the server does not read the file: its folder is in no !includedir";
                problems.push((name, what.to_owned()));
            }
        }
    }
    problems
}

fn next(plan: &Plan, first: bool) -> String {
    if !first {
        return "Done. Once the first server runs in the cluster: systemctl restart mariadb\n\
                The data of this server is replaced by the cluster's then."
            .to_owned();
    }
    let secret = plan.secret.display();
    let others = plan.others.join(", ");
    format!(
        "Done. Next:\n\
         1. Here, once in the cluster's life: systemctl stop mariadb && galera_new_cluster\n\
         2. Copy {secret} to the same place on {others}; there:\n   \
            chown mysql {secret} && chmod 600 {secret}\n   \
            quorate setup with the same --members, without --first\n   \
            systemctl restart mariadb (the data there is replaced by this server's)\n\
         3. Anywhere, to see that all are there: mariadb -e \"SHOW STATUS LIKE 'wsrep_cluster_size'\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_of_options_is_looked_for_where_it_is_read() {
        let text =
            "[mysqld]\nbinlog_format = ROW\nwsrep_on = ON\n\n[sst]\ntkey = /key\nencrypt = 3\n";
        let of = |server: &str, transfers: &str| {
            let read = ineffective(text, &Installed::of(server), &Installed::of(transfers));
            read.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let (server, transfers) =
            ("--binlog-format=ROW\n--wsrep-on=ON", "--tkey=/key\n--encrypt=3");
        assert_eq!(of(server, transfers), Vec::<&str>::new());
        assert_eq!(of(server, ""), ["tkey", "encrypt"]);
        assert_eq!(of(&format!("{server}\n{transfers}"), "--encrypt=2"), ["tkey", "encrypt"]);
        assert_eq!(of("--binlog-format=STATEMENT\n--wsrep-on=ON", transfers), ["binlog_format"]);
    }
}
