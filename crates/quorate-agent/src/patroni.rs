//! The group as Patroni's `GET /cluster` tells it, for scripts that were written for that.
//!
//! Invariant: nobody is said to be the leader by a report that is too old to count.

use crate::lag;
use crate::schedule::Shown;
use crate::verdict::{serves, state};
use quorate_live::port::{MemberReport, Report};
use serde::Serialize;
use serde_json::{json, Value};

#[derive(Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// By name.
    pub members: Vec<Member>,
    /// Name of the group.
    pub scope: String,
    pub pause: bool,
    /// At this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_switchover: Option<Shown>,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct Member {
    pub name: String,
    /// `leader`, `replica`, or `logger`, which has no database and is never the leader of one.
    pub role: &'static str,
    /// As Patroni says it of a leader that is well, `running`, or of a replica, `streaming`; else why it is not.
    pub state: String,
    /// Where clients connect, if it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Bytes of log that it has not applied, by an estimate ([`lag::bytes`]), or `"unknown"`. None of the leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<Value>,
}

impl Cluster {
    /// As the member that reports knows it, which is all but what is scheduled; `fresh` tells whether the report counts.
    pub fn of(report: &Report, fresh: bool) -> Cluster {
        let mut members: Vec<Member> =
            report.members.iter().map(|member| Member::of(member, report, fresh)).collect();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        let scope = report.group_name.clone();
        Cluster { members, scope, pause: report.rules.paused, scheduled_switchover: None }
    }
}

impl Member {
    fn of(member: &MemberReport, report: &Report, fresh: bool) -> Member {
        let leads = fresh && report.leader.as_ref() == Some(&member.id);
        let role = match member.role.as_str() {
            "logger" => "logger",
            _ if leads => "leader",
            _ => "replica",
        };
        let state = if fresh { state_of(member, role, report) } else { "unknown" };
        let lag = lag_of(member, report).filter(|_| fresh);
        let (host, port) = place(&member.client_address);
        Member {
            name: member.name.clone(),
            role,
            state: state.to_owned(),
            host,
            port,
            lag: (role == "replica").then(|| lag.map_or(json!("unknown"), |bytes| json!(bytes))),
        }
    }
}

fn state_of<'a>(member: &MemberReport, role: &str, report: &'a Report) -> &'a str {
    let well = if role == "leader" { "running" } else { "streaming" };
    if member.id == report.own.id {
        return if serves(report) { well } else { state(report) };
    }
    match &member.standing {
        _ if !member.connected => "not connected",
        _ if role == "logger" => "keeps the log",
        Some(standing) if standing.synced => well,
        Some(_) => "catching up",
        // It is of a release that does not say so.
        None => "unknown",
    }
}

fn lag_of(member: &MemberReport, report: &Report) -> Option<u64> {
    let own = report.own.server.as_ref();
    let told = |member: &MemberReport| member.standing.map(|standing| standing.seqno);
    let applied = match member.id == report.own.id {
        true => own.map(|server| server.seqno),
        false => told(member),
    };
    // Of a logger's report: what some server has applied.
    let committed = own.map(|server| server.committed);
    let committed = committed.or_else(|| report.members.iter().filter_map(told).max());
    let write_sets = committed?.saturating_sub(applied?).max(0) as u64;
    Some(lag::bytes(report, write_sets))
}

/// Host, without the brackets of an IPv6 address, and port.
fn place(address: &str) -> (Option<String>, Option<u16>) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let host = host.trim_matches(['[', ']']);
    ((!host.is_empty()).then(|| host.to_owned()), port.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::report;
    use quorate_live::port::StandingReport;

    fn member(id: &str, role: &str, standing: Option<StandingReport>) -> MemberReport {
        MemberReport {
            id: id.into(),
            name: format!("n-{id}"),
            role: role.into(),
            client_address: if role == "logger" { "" } else { "[fd00::2]:3306" }.into(),
            connected: id != "gone",
            standing,
            ..MemberReport::default()
        }
    }

    /// As `b` sees it, which is well and lags by ten write sets of 1000 bytes.
    fn group() -> Report {
        let standing = |synced, seqno| Some(StandingReport { synced, seqno, ..<_>::default() });
        let mut report = report(false, "single");
        report.group_name = "shop".into();
        report.leader = Some("c".into());
        report.own.id = "b".into();
        (report.own.log.first_index, report.own.log.bytes, report.own.last_index) = (1, 50_000, 50);
        report.members = vec![
            member("c", "voter", standing(true, 100)),
            member("b", "voter", None),
            member("late", "learner", standing(false, 40)),
            member("gone", "voter", None),
            member("log", "logger", None),
        ];
        report
    }

    #[test]
    fn members_are_told_as_patroni_tells_them() {
        let mut report = group();
        report.rules.paused = true;
        let told = serde_json::to_value(Cluster::of(&report, true)).unwrap();
        let place = |mut member: Value| {
            (member["host"], member["port"]) = (json!("fd00::2"), json!(3306));
            member
        };
        let members = [
            place(json!({ "name": "n-b", "role": "replica", "state": "streaming", "lag": 10_000 })),
            place(json!({ "name": "n-c", "role": "leader", "state": "running" })),
            place(
                json!({ "name": "n-gone", "role": "replica", "state": "not connected", "lag": "unknown" }),
            ),
            place(
                json!({ "name": "n-late", "role": "replica", "state": "catching up", "lag": 60_000 }),
            ),
            json!({ "name": "n-log", "role": "logger", "state": "keeps the log" }),
        ];
        assert_eq!(told, json!({ "members": members, "scope": "shop", "pause": true }));
    }

    #[test]
    fn an_old_report_names_no_leader_and_one_that_is_not_well_is_said_to_be_something_else() {
        for member in Cluster::of(&group(), false).members {
            assert!(member.role != "leader" && member.state == "unknown", "{member:?}");
            assert!(member.lag.is_none_or(|lag| lag == "unknown"));
        }
        let mut report = group();
        report.own.primary = false;
        assert_eq!(Cluster::of(&report, true).members[0].state, "no majority");
    }

    #[test]
    fn the_agent_of_a_logger_knows_how_far_servers_are_by_what_they_say() {
        let mut report = group();
        (report.own.id, report.own.server) = ("log".into(), None);
        let lags = Cluster::of(&report, true).members.into_iter().map(|member| member.lag);
        let unknown = Some(json!("unknown"));
        let expected = [unknown.clone(), None, unknown, Some(json!(60_000)), None];
        assert_eq!(lags.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_place_is_a_host_and_a_port_as_far_as_it_says_so() {
        for (address, host, port) in [
            ("10.0.0.1:3306", Some("10.0.0.1"), Some(3306)),
            ("db1", Some("db1"), None),
            (":3306", None, Some(3306)),
            ("", None, None),
        ] {
            assert_eq!(place(address), (host.map(str::to_owned), port), "{address}");
        }
    }
}
