//! What a report means for whoever wants to send writes or reads to the member's server.
//!
//! Invariant: with a single primary, of two members whose reports are younger than the election timeout at most
//! one is primary; a report that is older says nothing.

use crate::lag::{is_within, LagMax};
use quorate_live::port::Report;

/// Its server answers clients, and is in step with the group.
pub fn serves(report: &Report) -> bool {
    let own = &report.own;
    let ready = own.server.as_ref().is_some_and(|server| server.ready);
    ready && own.primary && !own.failed && !own.isolated
}

/// It leads, and takes writes. Where every server takes writes, this is the one whose commits are quickest.
pub fn is_primary(report: &Report) -> bool {
    serves(report) && report.own.leads
}

/// It takes writes.
pub fn takes_writes(report: &Report) -> bool {
    match report.rules.primary_mode.as_str() {
        "single" => is_primary(report),
        _ => serves(report),
    }
}

/// It can be read from beside the primary.
pub fn is_replica(report: &Report, lag_max: Option<LagMax>) -> bool {
    serves(report) && !report.own.leads && is_within(report, lag_max)
}

/// `primary`, `replica`, `logger`, or `none` if it is neither.
pub fn role(report: &Report) -> &'static str {
    match () {
        () if is_primary(report) => "primary",
        () if is_replica(report, None) => "replica",
        () if report.own.server.is_none() => "logger",
        () => "none",
    }
}

/// In the words of the server, if it is in step with the group.
pub fn state(report: &Report) -> &str {
    let own = &report.own;
    match (&own.server, own.primary) {
        _ if own.failed => "out of service",
        _ if own.isolated => "isolated",
        (_, false) => "no majority",
        (Some(server), true) => &server.state,
        (None, true) => "keeps the log",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use quorate_live::{CommitLatencyReport, CommitReport, ServerReport};

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
