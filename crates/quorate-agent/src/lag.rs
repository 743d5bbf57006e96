//! How far a server is behind, and how far it may be, as requests say it.
//!
//! Patroni counts bytes of the log, members here count write sets. So bytes are estimated: write sets, times the mean
//! size of an entry of the member's log. That is too much for a young log, whose file is larger than what is in it.
//!
//! An age is the member's word: its clock is compared with that of whoever wrote. Write sets need no clocks.

use quorate_live::port::Report;
use serde::Deserialize;
use std::time::Duration;

/// Who is less behind than this may serve, however many bytes that is by the estimate.
const SHORT: Duration = Duration::from_secs(1);

/// Units of bytes, as PostgreSQL and Patroni write them: each 1024 times the one before.
const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];

/// How much a server may lag: `max_lag=500` write sets, `max_lag=2s`, `max_lag=200ms`, `max_lag=16MB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub enum LagMax {
    WriteSets(u64),
    Age(Duration),
    Bytes(u64),
}

impl TryFrom<String> for LagMax {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let count = text.parse().ok().map(LagMax::WriteSets);
        count.or_else(|| with_unit(&text)).ok_or(
            "a lag is a number of write sets, a time like 2s or 200ms, or a size like 16MB; \
             max_lag=2s is what suits most",
        )
    }
}

impl LagMax {
    /// As Patroni takes it: a number without a unit is one of bytes, and what it does not understand is no limit.
    pub fn of_patroni(text: &str) -> Option<LagMax> {
        text.parse().ok().map(LagMax::Bytes).or_else(|| with_unit(text))
    }
}

fn with_unit(text: &str) -> Option<LagMax> {
    // M is a month there, and megabytes to whoever writes it here.
    let age = || humantime::parse_duration(text).ok().filter(|_| !text.contains('M'));
    size(text).map(LagMax::Bytes).or_else(|| age().map(LagMax::Age))
}

fn size(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let power = UNITS.iter().position(|known| known.eq_ignore_ascii_case(unit.trim()))?;
    let number: f64 = number.parse().ok()?;
    Some((number * 1024_f64.powi(power as i32)) as u64)
}

/// Whether the server lags by no more than that. Of a member without a server there is nothing to say.
pub fn is_within(report: &Report, max: Option<LagMax>) -> bool {
    let (Some(server), Some(max)) = (&report.own.server, max) else { return true };
    let age = Duration::from_millis(server.lag_ms);
    match max {
        LagMax::WriteSets(max) => write_sets(report) <= max,
        LagMax::Age(max) => age <= max,
        LagMax::Bytes(max) => age < SHORT || bytes(report, write_sets(report)) <= max,
    }
}

/// Write sets that are committed in the group and not applied here.
pub fn write_sets(report: &Report) -> u64 {
    let server = report.own.server.as_ref();
    server.map_or(0, |server| (server.committed - server.seqno).max(0) as u64)
}

/// About as many bytes of the log as these write sets are.
pub fn bytes(report: &Report, write_sets: u64) -> u64 {
    let own = &report.own;
    let entries = (own.last_index + 1).saturating_sub(own.log.first_index).max(1);
    (u128::from(write_sets) * u128::from(own.log.bytes) / u128::from(entries)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::report;

    fn max(text: &str) -> Option<LagMax> {
        LagMax::try_from(text.to_owned()).ok()
    }

    #[test]
    fn a_lag_is_in_write_sets_in_time_or_in_bytes() {
        let lags = report(false, "multi");
        for (text, is) in
            [("10", true), ("9", false), ("2s", true), ("1s", false), ("1500ms", true)]
        {
            assert_eq!(is_within(&lags, max(text)), is, "{text}");
        }
        assert_eq!(max("16MB"), Some(LagMax::Bytes(16 << 20)));
        for wrong in ["", "soon", "-1", "16XB", "16M", "1Month", "."] {
            assert_eq!(max(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn patronis_lag_is_in_bytes_and_what_it_does_not_understand_is_no_limit() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("1024kB", 1 << 20),
            ("16MB", 16 << 20),
            ("1.5 GB", 3 << 29),
            ("1TB", 1 << 40),
        ] {
            assert_eq!(LagMax::of_patroni(text), Some(LagMax::Bytes(bytes)), "{text}");
        }
        assert_eq!(LagMax::of_patroni("2s"), Some(LagMax::Age(Duration::from_secs(2))));
        for other in ["", "much", "-5MB", "16M", "5 apples"] {
            assert_eq!(LagMax::of_patroni(other), None, "{other}");
        }
    }

    #[test]
    fn bytes_are_those_of_as_many_entries_and_who_is_hardly_behind_may_serve() {
        let mut lags = report(false, "multi");
        assert!(is_within(&lags, max("0B")), "without a log, nothing is known of its bytes");
        // Entries 101 to 1100, of 1000 bytes each; ten write sets are missing, since a second and a half.
        (lags.own.log.first_index, lags.own.last_index) = (101, 1100);
        lags.own.log.bytes = 1_000_000;
        assert_eq!(bytes(&lags, write_sets(&lags)), 10_000);
        assert!(is_within(&lags, max("10kB")) && !is_within(&lags, max("9kB")));
        lags.own.server.as_mut().unwrap().lag_ms = 999;
        assert!(is_within(&lags, max("9kB")));
    }
}
