//! What a report means for whoever wants to send writes or reads to the member's server.
//!
//! Invariant: with a single primary, of two members whose reports are younger than the election timeout at most
//! one is primary; a report that is older says nothing.

use quorate_live::port::Report;
use serde::Deserialize;
use std::time::Duration;

/// How much a server may lag: `max_lag=500` write sets, or `max_lag=2s`, `max_lag=200ms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub enum LagMax {
    WriteSets(u64),
    Age(Duration),
}

impl TryFrom<String> for LagMax {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Ok(count) = text.parse() {
            return Ok(LagMax::WriteSets(count));
        }
        let age = humantime::parse_duration(&text);
        age.map(LagMax::Age)
            .map_err(|_| "a lag is a number of write sets, or a time like 2s or 200ms".into())
    }
}

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
    serves(report) && !report.own.leads && lags_at_most(report, lag_max)
}

pub fn lags_at_most(report: &Report, max: Option<LagMax>) -> bool {
    let (Some(server), Some(max)) = (&report.own.server, max) else { return true };
    match max {
        LagMax::WriteSets(max) => lag(report) <= max,
        LagMax::Age(max) => u128::from(server.lag_ms) <= max.as_millis(),
    }
}

/// Write sets that are committed in the group and not applied here.
pub fn lag(report: &Report) -> u64 {
    let server = report.own.server.as_ref();
    server.map_or(0, |server| (server.committed - server.seqno).max(0) as u64)
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

    #[test]
    fn lag_is_in_write_sets_or_in_time() {
        let max = |text: &str| LagMax::try_from(text.to_owned());
        let replica = report(false, "multi");
        for (text, is) in
            [("10", true), ("9", false), ("2s", true), ("1s", false), ("1500ms", true)]
        {
            assert_eq!(is_replica(&replica, max(text).ok()), is, "{text}");
        }
        assert!(max("soon").is_err());
    }
}
