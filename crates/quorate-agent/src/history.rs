//! What has changed from one report to the next, as events with their time.

use quorate_live::port::{MemberReport, Report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::SystemTime;

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Event {
    /// RFC 3339, in UTC.
    pub time: String,
    /// `leader`, `contact`, `state`, `member`, `rules`, `fault`, `answer`.
    pub kind: &'static str,
    pub what: String,
}

impl Event {
    pub fn new(at: SystemTime, kind: &'static str, what: impl Into<String>) -> Event {
        Event { time: humantime::format_rfc3339_millis(at).to_string(), kind, what: what.into() }
    }
}

/// What happened between two reports of one member.
pub fn between(before: &Report, now: &Report, at: SystemTime) -> Vec<Event> {
    let mut events = Vec::new();
    let mut add = |kind, what: String| events.push(Event::new(at, kind, what));
    if before.leader != now.leader || before.term != now.term {
        let term = now.term;
        match now.leading() {
            Some(leader) => add("leader", format!("{} leads, in term {term}", leader.name)),
            None => add("leader", format!("nobody leads that this member knows, in term {term}")),
        }
    }
    if before.own.primary != now.own.primary {
        let what =
            if now.own.primary { "a majority is back" } else { "contact with a majority is lost" };
        add("contact", what.to_owned());
    }
    let state = |report: &Report| {
        report.own.server.as_ref().map(|server| (server.state.clone(), server.ready))
    };
    if let (before, Some((name, ready))) = (state(before), state(now)) {
        if before != Some((name.clone(), ready)) {
            let ready = if ready { "" } else { ", and not ready" };
            add("state", format!("the server is {name}{ready}"));
        }
    }
    members(before, now, &mut add);
    if before.rules != now.rules {
        add("rules", now.rules.to_string());
    }
    let fault = |report: &Report| report.own.last_fault.as_ref().map(|fault| fault.message.clone());
    match fault(now) {
        Some(message) if fault(before).as_ref() != Some(&message) => add("fault", message),
        _ => {}
    }
    events
}

fn members(before: &Report, now: &Report, add: &mut impl FnMut(&'static str, String)) {
    let by_id = |report: &Report| -> BTreeMap<String, MemberReport> {
        report.members.iter().map(|member| (member.id.clone(), member.clone())).collect()
    };
    let (old, new) = (by_id(before), by_id(now));
    for (id, member) in &new {
        let name = &member.name;
        let Some(was) = old.get(id) else {
            add("member", format!("{name} is a member, as a {}", member.role));
            continue;
        };
        if was.joining && !member.joining {
            add("member", format!("{name} has caught up, and counts"));
        }
        if was.connected != member.connected {
            let what = if member.connected { "is connected" } else { "is not connected any more" };
            add("member", format!("{name} {what}"));
        }
        let rank = |member: &MemberReport| {
            (member.role.clone(), member.priority, member.votes, member.zone.clone())
        };
        if rank(was) != rank(member) {
            let (role, priority, votes, zone) = rank(member);
            let zone = if zone.is_empty() { zone } else { format!(", zone {zone}") };
            add(
                "member",
                format!("{name} is a {role} with priority {priority}, votes {votes}{zone}"),
            );
        }
    }
    for (_, gone) in old.iter().filter(|(id, _)| !new.contains_key(*id)) {
        add("member", format!("{} is no member any more", gone.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::report;
    use std::time::UNIX_EPOCH;

    fn whats(before: &Report, now: &Report) -> Vec<String> {
        between(before, now, UNIX_EPOCH).into_iter().map(|event| event.what).collect()
    }

    fn member(id: &str, connected: bool) -> MemberReport {
        MemberReport {
            id: id.into(),
            name: format!("node-{id}"),
            role: "voter".into(),
            connected,
            ..MemberReport::default()
        }
    }

    #[test]
    fn nothing_happens_between_equal_reports_and_positions_are_no_events() {
        let first = report(true, "multi");
        let mut second = first.clone();
        second.own.commit_index += 7;
        second.own.server.as_mut().unwrap().seqno += 3;
        assert_eq!(whats(&first, &second), Vec::<String>::new());
    }

    #[test]
    fn a_failover_is_told_by_all_that_it_changes() {
        let mut first = report(false, "multi");
        first.members = vec![member("a", true), member("b", true), member("c", true)];
        (first.leader, first.term) = (Some("a".into()), 4);
        let mut second = first.clone();
        second.members[0].connected = false;
        second.members.remove(2);
        second.members[1].priority = 80;
        (second.leader, second.term) = (Some("b".into()), 5);
        second.own.primary = false;
        assert_eq!(
            whats(&first, &second),
            [
                "node-b leads, in term 5",
                "contact with a majority is lost",
                "node-a is not connected any more",
                "node-b is a voter with priority 80, votes 0",
                "node-c is no member any more",
            ]
        );
        assert_eq!(between(&first, &second, UNIX_EPOCH)[0].time, "1970-01-01T00:00:00.000Z");
    }
}
