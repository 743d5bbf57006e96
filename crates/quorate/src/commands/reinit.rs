//! `quorate member reinit`: a server gives its data up and fetches another's.

use super::{agree, down, lock, say, up};
use crate::args::Reinit;
use crate::cluster::Cluster;
use crate::failure::{Failure, FAILED, OK, TIMED_OUT, USAGE};
use crate::remote::{
    address_of, may_order, member_named, refused, NodeSurvey, Remote, Survey, SYNCED,
};
use anyhow::{Context, Result};
use quorate_live::port::{Answer, OwnReport, Request};
use serde_json::json;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// Between two looks at a server that is waited for.
const LOOK: Duration = Duration::from_millis(500);

pub fn reinit(group: &Remote, args: &Reinit, json: bool) -> Result<u8> {
    match group.here() {
        Some(cluster) => on_this_machine(group, cluster, args),
        None => elsewhere(group, args, json),
    }
}

/// The server's service starts it again.
fn elsewhere(group: &Remote, args: &Reinit, json: bool) -> Result<u8> {
    let reported = group.report()?;
    let member = member_named(&reported.1, &args.name)?;
    let (name, address) = (&member.name, address_of(&reported, member));
    may_order(&reported.1)?;
    agree(&question(name), args.yes)?;
    let former = group.report_of(address)?.own.incarnation;
    let (_, asked) = group.order_to(address, &Request::Reinit)?;
    if asked.answer != Answer::Done {
        return Err(refused(&asked.node, asked.answer));
    }
    let what = format!("{name} has given its data up and ends. Its service starts it again, and it fetches another server's data");
    if args.no_wait {
        let text = || format!("{what}: quorate status shows when it is Synced\n");
        return say(json, json!({ "member": name, "synced": false }), text);
    }
    eprintln!("{what}. This command waits until it is Synced; Ctrl-C ends only the waiting.");
    let end = args.limit.end();
    let mut seen = "it does not answer".to_owned();
    while Instant::now() < end {
        match group.report_of(address) {
            Ok(report) if is_back(&report.own, former) => {
                let text = || {
                    format!("{name} has given its data up, and is Synced with another server's\n")
                };
                return say(json, json!({ "member": name, "synced": true }), text);
            }
            Ok(report) => seen = stage(&report.own, former),
            Err(error) => seen = format!("{error:#}"),
        }
        thread::sleep(LOOK);
    }
    let limit = args.limit.timeout;
    let message = format!(
        "{name} has given its data up, and is not Synced after {limit} s: {seen}. It goes on by itself, and the others \
         have all data; see the state of its service, its error log, and quorate status"
    );
    Err(Failure::new(TIMED_OUT, message).into())
}

fn question(name: &str) -> String {
    format!("{name} gives all of its data up, and fetches another server's. Go ahead?")
}

/// It was started anew, and has all data.
fn is_back(own: &OwnReport, former: u32) -> bool {
    let has_all = own.server.as_ref().is_some_and(|server| server.ready && server.state == SYNCED);
    own.incarnation != former && own.primary && has_all
}

fn stage(own: &OwnReport, former: u32) -> String {
    match &own.server {
        _ if own.incarnation == former => "its server has not ended yet".to_owned(),
        Some(server) => format!("its server is {}", server.state),
        None => "its server has not begun yet".to_owned(),
    }
}

/// Here is no service that starts it again, and one that is down already is fetched back by that, too.
fn on_this_machine(group: &Remote, cluster: &Cluster, args: &Reinit) -> Result<u8> {
    if args.no_wait {
        let message = "--no-wait is for a server with a service that starts it again: here this command does, and waits";
        return Err(Failure::new(USAGE, message).into());
    }
    if !args.yes {
        let node = cluster.find_server(&args.name)?;
        require_no_reason(&group.survey()?, &node.name)?;
        agree(&question(&node.name), false)?;
    }
    let limit = args.limit;
    // The question holds no other command up; so what was seen before it may have changed.
    let (mut cluster, lock) = lock(&cluster.dir, limit.timeout)?;
    let node = cluster.find_server(&args.name)?;
    require_no_reason(&group.reread(cluster.clone()).survey()?, &node.name)?;
    match down::stop(&cluster, std::slice::from_ref(&node), limit.timeout, true)? {
        OK => {
            let position = node.data().join("grastate.dat");
            match fs::remove_file(&position) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("removing {}", position.display()))
                }
                _ => {}
            }
            up::start(&mut cluster, lock, vec![node], limit.end())
        }
        code => Ok(code),
    }
}

/// An error if it has to keep its data.
fn require_no_reason(survey: &Survey, name: &str) -> Result<()> {
    let Some(reason) = reason_against(survey, name) else { return Ok(()) };
    let message = format!("{name} keeps its data: {reason}. Nothing was changed");
    Err(Failure::new(FAILED, message).into())
}

fn reason_against(survey: &Survey, name: &str) -> Option<&'static str> {
    let is_donor = |other: &NodeSurvey| other.name != name && other.state == SYNCED && other.ready;
    match () {
        () if survey.leader.is_none() => {
            Some("no member leads, so whether others have the data, is not known")
        }
        () if survey.leader.as_deref() == Some(name) => {
            Some("it leads the group; hand leadership over first (quorate switchover)")
        }
        () if !survey.nodes.iter().any(is_donor) => {
            Some("no other server is Synced that it could fetch the data from")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_live::ServerReport;

    #[test]
    fn a_server_is_back_once_it_is_another_process_and_has_all_data() {
        let own = |incarnation, state: &str, ready| OwnReport {
            incarnation,
            primary: true,
            server: Some(ServerReport { state: state.into(), ready, ..ServerReport::default() }),
            ..OwnReport::default()
        };
        assert!(is_back(&own(8, "Synced", true), 7));
        for not_yet in [own(7, "Synced", true), own(8, "Joiner", false), own(8, "Synced", false)] {
            assert!(!is_back(&not_yet, 7), "{not_yet:?}");
        }
        assert_eq!(stage(&own(7, "Synced", true), 7), "its server has not ended yet");
        assert_eq!(stage(&own(8, "Joiner", false), 7), "its server is Joiner");
    }

    #[test]
    fn data_is_given_up_only_where_another_server_has_it() {
        let node = |name: &str, state: &str| NodeSurvey {
            name: name.into(),
            state: state.into(),
            ready: true,
            ..NodeSurvey::default()
        };
        let against = |leader: Option<&str>, state: &str| {
            let mut survey = Survey::unknown("c");
            survey.leader = leader.map(str::to_owned);
            survey.nodes = vec![node("a", state), node("b", "Down")];
            reason_against(&survey, "b")
        };
        assert_eq!(against(Some("a"), "Synced"), None);
        let refused = [
            (Some("b"), "Synced", "hand leadership over first"),
            (Some("a"), "Donor/Desynced", "no other server is Synced"),
            (None, "Synced", "no member leads"),
        ];
        for (leader, state, part) in refused {
            let reason = against(leader, state).unwrap_or_default();
            assert!(reason.contains(part), "{reason}");
        }
    }
}
