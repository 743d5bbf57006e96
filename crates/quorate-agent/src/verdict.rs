//! What a report means for whoever wants to send writes or reads to the member's server.
//!
//! Invariants:
//! - with a single primary, of two members whose reports are younger than the election timeout at most one is primary;
//!   a report that is older says nothing;
//! - nobody is said to take writes that says itself that it refuses them.

use crate::lag::{is_within, LagMax};
use quorate_live::port::Report;

/// It takes part in what the group does, with a server or without one.
fn is_in_step(report: &Report) -> bool {
    let own = &report.own;
    own.primary && !own.failed && !own.isolated
}

/// Its server answers clients, and is in step with the group.
pub fn serves(report: &Report) -> bool {
    let ready = report.own.server.as_ref().is_some_and(|server| server.ready);
    ready && is_in_step(report)
}

/// It serves, and does not refuse writes, as far as it says so: one of an older release says nothing of it.
fn may_write(report: &Report) -> bool {
    let refuses = report.own.server.as_ref().is_some_and(|server| server.writes == Some(false));
    serves(report) && !refuses && report.can_commit()
}

/// It leads, and takes writes. Where every server takes writes, this is the one whose commits are quickest.
pub fn is_primary(report: &Report) -> bool {
    may_write(report) && report.own.leads
}

/// It takes writes.
pub fn takes_writes(report: &Report) -> bool {
    match report.rules.primary_mode.as_str() {
        "single" => is_primary(report),
        _ => may_write(report),
    }
}

/// It can be read from beside the primary.
pub fn is_replica(report: &Report, lag_max: Option<LagMax>) -> bool {
    serves(report) && !report.own.leads && is_within(report, lag_max)
}

/// `primary`, `replica`, `logger`, or `none` if it is none of these now.
pub fn role(report: &Report) -> &'static str {
    match () {
        () if is_primary(report) => "primary",
        () if is_replica(report, None) => "replica",
        () if report.own.server.is_none() && is_in_step(report) => "logger",
        () => "none",
    }
}

/// In the words of the server, if it is in step with the group, and takes the writes that a leader is to take.
pub fn state(report: &Report) -> &str {
    let own = &report.own;
    match (&own.server, own.primary) {
        _ if own.failed => "out of service",
        _ if own.isolated => "isolated",
        (_, false) => "no majority",
        _ if own.leads && serves(report) && !may_write(report) => "takes no writes",
        (Some(server), true) => &server.state,
        (None, true) => "keeps the log",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use quorate_live::port::MemberReport;
    use quorate_live::{CommitLatencyReport, CommitReport, ServerReport};

    pub(crate) fn voter(id: &str) -> MemberReport {
        MemberReport {
            id: id.into(),
            role: "voter".into(),
            priority: 50,
            ..MemberReport::default()
        }
    }

    /// Of a server that is well.
    pub(crate) fn report(leads: bool, mode: &str) -> Report {
        let mut report = Report::default();
        report.rules.primary_mode = mode.into();
        report.own.name = "n1".into();
        report.own.leads = leads;
        report.own.primary = true;
        report.own.server = Some(ServerReport {
            state: "Synced".into(),
            ready: true,
            seqno: 90,
            committed: 100,
            lag_ms: 1500,
            commits: Some(CommitReport { cert_failures: 3, ..CommitReport::default() }),
            commit_latency: Some(CommitLatencyReport::default()),
            ..ServerReport::default()
        });
        report
    }

    #[test]
    fn one_takes_writes_with_a_single_primary_and_all_without() {
        let of = |leads, mode| {
            let report = report(leads, mode);
            (is_primary(&report), takes_writes(&report), is_replica(&report, None))
        };
        assert_eq!(of(true, "single"), (true, true, false));
        assert_eq!(of(false, "single"), (false, false, true));
        assert_eq!(of(true, "multi"), (true, true, false));
        assert_eq!(of(false, "multi"), (false, true, true));
    }

    #[test]
    fn where_nobody_there_may_lead_nobody_takes_writes() {
        let member = |id, priority, connected| MemberReport { priority, connected, ..voter(id) };
        for mode in ["single", "multi"] {
            let mut led = report(true, mode);
            led.leader = Some("b".into());
            led.members = vec![member("a", 50, false), member("b", 0, true)];
            assert!(!is_primary(&led) && !takes_writes(&led) && serves(&led), "{mode}");
            assert_eq!(state(&led), "takes no writes");
            led.members[0].connected = true;
            assert!(takes_writes(&led), "{mode}: leadership is being handed over");
            led.members[0].connected = false;
            led.members[1].priority = 1;
            assert!(takes_writes(&led), "{mode}");
        }
    }

    #[test]
    fn a_leader_that_refuses_writes_is_no_primary_and_can_be_read_from() {
        for (mode, writes, takes) in [
            ("single", None, true),
            ("single", Some(true), true),
            ("single", Some(false), false),
            ("multi", Some(true), true),
            ("multi", Some(false), false),
        ] {
            let mut report = report(true, mode);
            report.own.server.as_mut().unwrap().writes = writes;
            assert_eq!((is_primary(&report), takes_writes(&report)), (takes, takes), "{mode}");
            assert!(serves(&report) && !is_replica(&report, None), "{mode} {writes:?}");
            let told = if takes { ("primary", "Synced") } else { ("none", "takes no writes") };
            assert_eq!((role(&report), state(&report)), told, "{mode} {writes:?}");
        }
        // As its operator made it, where every server takes writes.
        let mut report = report(false, "multi");
        report.own.server.as_mut().unwrap().writes = Some(false);
        assert!(!takes_writes(&report));
        assert_eq!((role(&report), state(&report)), ("replica", "Synced"));
    }

    #[test]
    fn a_logger_is_one_as_long_as_it_takes_part() {
        let changes: [(fn(&mut Report), _); 4] = [
            (|_| {}, ("logger", "keeps the log")),
            (|report| report.own.primary = false, ("none", "no majority")),
            (|report| report.own.failed = true, ("none", "out of service")),
            (|report| report.own.isolated = true, ("none", "isolated")),
        ];
        for (change, told) in changes {
            let mut report = report(false, "single");
            report.own.server = None;
            change(&mut report);
            assert_eq!((role(&report), state(&report)), told);
        }
    }

    #[test]
    fn who_is_cut_off_failed_or_not_ready_serves_nobody() {
        let changes: [fn(&mut Report); 5] = [
            |report| report.own.primary = false,
            |report| report.own.failed = true,
            |report| report.own.isolated = true,
            |report| report.own.server.as_mut().unwrap().ready = false,
            |report| report.own.server = None,
        ];
        for change in changes {
            let mut report = report(true, "multi");
            change(&mut report);
            assert!(!serves(&report) && !is_primary(&report) && !takes_writes(&report));
        }
    }
}
