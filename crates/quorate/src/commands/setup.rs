//! `quorate setup`: makes the server that is installed here a member of a group, and undoes it.

use super::{agree, say};
use crate::args::Setup;
use crate::failure::{Failure, FAILED, MISSING_SOFTWARE, NO_PERMISSION, OK};
use crate::setup::{
    file, is_adjustable, Access, Change, Installed, Plan, Step, ACCOUNT, SOCKET, TRANSFERS,
};
use anyhow::{Context, Result};
use quorate_lab::server::Account;
use rustix::process::geteuid;
use serde_json::{json, Value};
use std::fs;

/// What is asked before anything is changed.
const QUESTION: &str = "The server is not restarted by this. Go ahead?";

pub fn setup(args: &Setup) -> Result<u8> {
    if !geteuid().is_root() {
        let message =
            "the server's configuration belongs to root: nothing was changed. Run this as root";
        return Err(Failure::new(NO_PERMISSION, message).into());
    }
    if args.undo {
        return undo(args);
    }
    let account = Account::named(ACCOUNT).map_err(|cause| {
        let message = format!(
            "MariaDB is not installed here ({cause}): apt-get install mariadb-server. Nothing was changed"
        );
        Failure::new(MISSING_SOFTWARE, message)
    })?;
    let access = Access::look()?;
    let plan = Plan::make(args, &Installed::look()?, &access)?;
    if args.json {
        return by_program(args, &plan, &account, &access);
    }
    if !plan.missing.is_empty() {
        eprintln!("{}\n", without(&plan.missing));
    }
    if plan.steps.is_empty() {
        println!("{} has all that is needed already; nothing was changed.", plan.config.display());
        return Ok(tell(&plan, &verify(&plan, &access)?));
    }
    println!("This server is {}. To be done:\n", plan.own);
    plan.steps.iter().for_each(|step| print!("{}", shown(step, &plan)));
    agree(QUESTION, args.yes)?;
    plan.steps.iter().try_for_each(|step| step.carry_out(&account))?;
    let code = tell(&plan, &verify(&plan, &access)?);
    if code == OK {
        println!("{}", next(&plan, args.first));
    }
    Ok(code)
}

/// A program is asked nothing: without `--yes` nothing is done.
fn by_program(args: &Setup, plan: &Plan, account: &Account, access: &Access) -> Result<u8> {
    let mut problems = Vec::new();
    if args.yes {
        plan.steps.iter().try_for_each(|step| step.carry_out(account))?;
    }
    if is_in_place(plan, args.yes) {
        problems = verify(plan, access)?;
    }
    say(true, document(plan, args.yes, &problems), String::new)?;
    Ok(tell(plan, &problems))
}

/// All is as planned, so that its effect can be looked at.
fn is_in_place(plan: &Plan, is_done: bool) -> bool {
    is_done || plan.steps.is_empty()
}

/// See docs/run/json.md.
fn document(plan: &Plan, done: bool, ineffective: &[Problem]) -> Value {
    let ineffective =
        ineffective.iter().map(|(option, why)| json!({ "option": option, "why": why }));
    json!({
        "address": plan.own,
        "others": plan.others,
        "steps": plan.steps.iter().map(Step::document).collect::<Vec<_>>(),
        "changes": plan.changes,
        "missing": plan.missing,
        "ineffective": ineffective.collect::<Vec<_>>(),
        "done": done,
    })
}

fn undo(args: &Setup) -> Result<u8> {
    let config = std::path::absolute(&args.config)?;
    let is_there = file::read(&config)?.is_some();
    let delete =
        || fs::remove_file(&config).with_context(|| format!("deleting {}", config.display()));
    if args.json {
        if is_there && args.yes {
            delete()?;
        }
        let steps = is_there.then(|| json!({ "do": "delete_config", "path": config }));
        let steps: Vec<Value> = steps.into_iter().collect();
        return say(true, json!({ "steps": steps, "done": args.yes && is_there }), String::new);
    }
    if !is_there {
        println!("{} is not there: nothing to undo.", config.display());
        return Ok(OK);
    }
    println!("To be deleted: {}", config.display());
    agree(QUESTION, args.yes)?;
    delete()?;
    println!(
        "Done. At its next start (systemctl restart mariadb) this is a single server, with its data as \
         it is.\nThe group's log and secret are still there; delete them when you are sure that it does \
         not return.\nIf the others are to stop counting it: stop it first (it then leaves the \
         group), or run `quorate member remove`.\nIf {SOCKET} was enabled before: systemctl enable {SOCKET}"
    );
    Ok(OK)
}

fn without(packages: &[&str]) -> String {
    format!(
        "Programs for state transfers are missing here: without them this server can neither receive nor send its \
         state. Before you start it: apt-get install {}",
        packages.join(" ")
    )
}

/// Of a file that is there only what changes.
fn shown(step: &Step, plan: &Plan) -> String {
    match step {
        Step::MakeSecret(path) => format!("  make {}, the group's secret\n", path.display()),
        Step::GiveSecret(path) => {
            format!("  give {}, the group's secret, to {ACCOUNT} (mode 600)\n", path.display())
        }
        Step::MakeLogDir(path) => format!("  make {}, for the group's log\n", path.display()),
        Step::GiveLogDir(path) => {
            format!("  give {}, for the group's log, to {ACCOUNT} (mode 700)\n", path.display())
        }
        Step::WriteConfig { path, text } if plan.former.is_none() => {
            let lines: String = text.lines().map(|line| format!("    {line}\n")).collect();
            format!("  write {}:\n\n{lines}\n", path.display())
        }
        Step::WriteConfig { path, text } if plan.former.as_ref() == Some(text) => {
            format!("  let {ACCOUNT} read {} (mode 644); what it says stays\n", path.display())
        }
        Step::WriteConfig { path, .. } => {
            let lines: String =
                plan.changes.iter().map(|change| format!("    {}\n", in_words(change))).collect();
            let what = match plan.changes.is_empty() {
                true => "other spaces and order, nothing else",
                false => "what is not named here stays",
            };
            format!("  change {} ({what}):\n\n{lines}\n", path.display())
        }
        Step::FreePort => format!(
            "  systemctl disable --now {SOCKET}\n  \
             (systemd holds the server's port by it, so that no member can start)\n\n"
        ),
    }
}

fn in_words(Change { group, option, from, to }: &Change) -> String {
    let of = if group == TRANSFERS { format!("[{group}] ") } else { String::new() };
    match (from, to) {
        (Some(from), Some(to)) => format!("change {of}{option}: {from} becomes {to}"),
        (Some(from), None) => format!("remove {of}{option} = {from}"),
        (None, to) => format!("add    {of}{option} = {}", to.as_deref().unwrap_or_default()),
    }
}

/// An option, and why it has no effect.
type Problem = (String, String);

/// Whether the server will read what was written, and nothing after it says otherwise.
fn verify(plan: &Plan, access: &Access) -> Result<Vec<Problem>> {
    // Whoever asks what is in force is root, which may read it all the same.
    if let Some(why) = access.unread(&plan.config) {
        let options = file::lines(&plan.text).filter_map(|(_, line)| file::setting(line));
        return Ok(options.map(|(name, _)| (name.to_owned(), why.clone())).collect());
    }
    let problems = ineffective(&plan.text, &Installed::look()?, &Installed::of_transfers()?);
    Ok(problems.into_iter().map(|(name, why)| (name.to_owned(), why)).collect())
}

/// What somebody may have chosen otherwise in another file is told, and is no failure.
fn tell(plan: &Plan, problems: &[Problem]) -> u8 {
    for (name, problem) in problems {
        eprintln!("{name} of {} has no effect: {problem}", plan.config.display());
    }
    if problems.iter().all(|(name, _)| is_adjustable(name)) {
        OK
    } else {
        FAILED
    }
}

/// The lines of a file of options that the server, or the scripts of state transfers, will not go by; and why.
fn ineffective<'a>(
    text: &'a str,
    server: &Installed,
    transfers: &Installed,
) -> Vec<(&'a str, String)> {
    let mut problems = Vec::new();
    for (group, line) in file::lines(text) {
        let Some((name, value)) = file::setting(line) else { continue };
        let read = if group == TRANSFERS { transfers } else { server };
        let value = value.trim_matches('"');
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
    if plan.is_member {
        let founding = match first {
            true => {
                "\nIf the group was never founded: systemctl stop mariadb && galera_new_cluster"
            }
            false => "",
        };
        return format!(
            "Done. It takes effect at the next start of this server: systemctl restart mariadb, one server after \
             another.\nA server that is a member keeps its data and catches up with the group. The data of one that has \
             not joined yet is replaced by the group's.{founding}"
        );
    }
    if !first {
        return "Done. Once the first server runs in the cluster: systemctl restart mariadb\n\
                The data of this server is replaced by the cluster's then."
            .to_owned();
    }
    let others = plan.others.join(", ");
    let copy = match &plan.secret {
        None => format!("On {others}:\n   "),
        Some(secret) => {
            format!("Copy {} to the same place on {others} (scp -p); there:\n   ", secret.display())
        }
    };
    format!(
        "Done. Next:\n\
         1. Here, once in the cluster's life: systemctl stop mariadb && galera_new_cluster\n\
         2. {copy}quorate setup with the same --members, without --first\n   \
            systemctl restart mariadb (the data there is replaced by this server's)\n\
         3. Anywhere, to see that all are there: mariadb -e \"SHOW STATUS LIKE 'wsrep_cluster_size'\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::page::names_fields_of;
    use std::os::unix::fs::PermissionsExt;

    fn plan() -> Plan {
        let change = |option: &str, from: Option<&str>, to: Option<&str>| Change {
            group: "mariadbd".into(),
            option: option.into(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
        };
        let path = "/etc/70-quorate.cnf";
        Plan {
            steps: vec![Step::WriteConfig {
                path: path.into(),
                text: "[mariadbd]\na = 1\n".into(),
            }],
            own: "10.0.0.1".into(),
            others: vec!["10.0.0.2".into()],
            secret: None,
            config: path.into(),
            text: String::new(),
            former: Some(String::new()),
            is_member: false,
            changes: vec![
                change("quorate.zone", None, Some("eu")),
                change("quorate.priority", Some("70"), None),
                change("wsrep_cluster_address", Some("gcomm://a"), Some("gcomm://a,b")),
            ],
            missing: vec!["socat"],
        }
    }

    #[test]
    fn of_a_file_that_is_there_the_changes_are_shown() {
        let mut plan = plan();
        let changed = shown(&plan.steps[0], &plan);
        assert_eq!(
            changed,
            "  change /etc/70-quorate.cnf (what is not named here stays):\n\n    \
             add    quorate.zone = eu\n    \
             remove quorate.priority = 70\n    \
             change wsrep_cluster_address: gcomm://a becomes gcomm://a,b\n\n"
        );
        plan.former = Some("[mariadbd]\na = 1\n".into());
        let read = "  let mysql read /etc/70-quorate.cnf (mode 644); what it says stays\n";
        assert_eq!(shown(&plan.steps[0], &plan), read);
        plan.former = None;
        assert!(shown(&plan.steps[0], &plan).contains("\n    [mariadbd]\n    a = 1\n"));
        assert!(without(&plan.missing).contains("apt-get install socat"));
    }

    #[test]
    fn a_group_with_certificates_has_no_secret_to_copy() {
        let mut plan = plan();
        assert!(next(&plan, true).contains("2. On 10.0.0.2:"));
        plan.secret = Some("/etc/s".into());
        assert!(next(&plan, true).contains("2. Copy /etc/s to the same place on 10.0.0.2"));
    }

    #[test]
    fn what_becomes_of_the_data_is_told_as_it_is() {
        let mut plan = plan();
        assert!(next(&plan, false).contains("replaced by the cluster's"));
        assert!(next(&plan, true).contains("galera_new_cluster"));
        plan.is_member = true;
        for first in [false, true] {
            let told = next(&plan, first);
            assert!(
                told.contains("a member keeps its data") && told.contains("replaced"),
                "{told}"
            );
            assert_eq!(told.contains("galera_new_cluster"), first, "{told}");
        }
    }

    #[test]
    fn what_the_server_cannot_read_has_no_effect() {
        let file = std::env::temp_dir().join(format!("quorate-cnf-{}", std::process::id()));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let text = "[mariadbd]\n# ours\nwsrep_on = ON\n[sst]\nencrypt = 3\n".to_owned();
        let plan = Plan { config: file.clone(), text, ..plan() };
        let server = Access::of_user(geteuid().as_raw() + 1);
        let problems = verify(&plan, &server).unwrap();
        let names: Vec<&str> = problems.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["wsrep_on", "encrypt"]);
        assert!(problems.iter().all(|(_, why)| why.contains("may not read it")), "{problems:?}");
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_another_file_may_say_otherwise_is_no_failure() {
        let told = |names: &[&str]| {
            let problems = names.iter().map(|name| (name.to_string(), "another file".to_owned()));
            tell(&plan(), &problems.collect::<Vec<_>>())
        };
        assert_eq!(told(&["sync-binlog", "bind-address"]), OK);
        assert_eq!(told(&["sync_binlog", "wsrep_on"]), FAILED);
    }

    #[test]
    fn what_is_there_already_is_looked_at_without_an_order() {
        let mut plan = plan();
        assert!(is_in_place(&plan, true) && !is_in_place(&plan, false));
        plan.steps.clear();
        assert!(is_in_place(&plan, false));
    }

    #[test]
    fn the_page_names_the_fields_of_a_plan() {
        names_fields_of(&document(&plan(), true, &[("a".into(), "why".into())]));
    }

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
