//! How deep a throughput falls after an event, and for how long.
//!
//! It is compared with the throughput before, or with that at the end where this is lower: one member more
//! on the same machine costs all others something for good, and that is no dip.

use crate::record::Spread;

/// A second with less than this share of the throughput is part of the dip.
const NORMAL: f64 = 0.75;
/// A throughput that ends below this share of the one before has not come back.
const BACK: f64 = 0.5;
/// Seconds by which the end is told.
const TAIL: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dip {
    /// Median throughput before it.
    pub before: f64,
    /// How far the worst second lies beneath, in percent.
    pub depth_percent: f64,
    /// Of all seconds that lie clearly beneath.
    pub seconds: f64,
}

/// Of a curve of throughput by the second that ended then; `event` happens within one of them. None if
/// there are no seconds before it, or after it.
pub(super) fn dip(curve: &[(f64, f64)], event: f64) -> Option<Dip> {
    let rates = |after: bool| {
        let there = curve.iter().filter(move |(time, _)| (*time > event) == after);
        there.map(|(_, rate)| *rate)
    };
    // Connections, plans and caches are made in the first second.
    let before = Spread::of(rates(false).skip(1))?.median;
    let after: Vec<f64> = rates(true).collect();
    let end = Spread::of(after[after.len().saturating_sub(TAIL)..].iter().copied())?.median;
    let level = if end < BACK * before { before } else { before.min(end) };
    let worst = after.iter().copied().fold(level, f64::min);
    Some(Dip {
        before,
        depth_percent: 100.0 * (1.0 - worst / level.max(f64::MIN_POSITIVE)),
        seconds: after.iter().filter(|rate| **rate < NORMAL * level).count() as f64,
    })
}

/// Whether the throughput has come back by now: none of the last seconds is far beneath the one before.
pub(super) fn is_back(curve: &[(f64, f64)], event: f64) -> bool {
    let before = curve.iter().filter(|(time, _)| *time <= event).skip(1).map(|(_, rate)| *rate);
    let Some(before) = Spread::of(before) else { return false };
    let after: Vec<f64> =
        curve.iter().filter(|(time, _)| *time > event).map(|(_, rate)| *rate).collect();
    let tail = after.len().checked_sub(TAIL).map(|from| &after[from..]);
    tail.is_some_and(|tail| tail.iter().all(|rate| *rate >= BACK * before.median))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(rates: &[f64]) -> Vec<(f64, f64)> {
        (1..).map(f64::from).zip(rates.iter().copied()).collect()
    }

    #[test]
    fn a_dip_is_measured_from_the_event_on() {
        let curve = curve(&[10.0, 100.0, 90.0, 110.0, 30.0, 0.0, 70.0, 95.0, 105.0, 100.0]);
        let found = Dip { before: 100.0, depth_percent: 100.0, seconds: 3.0 };
        assert_eq!(dip(&curve, 4.3), Some(found));
        assert!(is_back(&curve, 4.3));
    }

    #[test]
    fn noise_is_no_dip() {
        let curve = curve(&[10.0, 100.0, 100.0, 90.0, 110.0, 100.0, 95.0]);
        let Dip { depth_percent, seconds, .. } = dip(&curve, 3.0).unwrap();
        assert_eq!(seconds, 0.0);
        assert!((depth_percent - 10.0).abs() < 1e-9, "{depth_percent}");
    }

    #[test]
    fn a_lower_level_that_stays_is_no_dip_but_a_stall_that_stays_is() {
        let lower = curve(&[10.0, 100.0, 100.0, 20.0, 70.0, 70.0, 70.0]);
        assert_eq!(dip(&lower, 3.0).unwrap().seconds, 1.0);
        let stalled = curve(&[10.0, 100.0, 100.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(dip(&stalled, 3.0).unwrap().seconds, 4.0);
        assert_eq!(dip(&stalled, 3.0).unwrap().depth_percent, 100.0);
        assert!(!is_back(&stalled, 3.0));
    }

    #[test]
    fn more_throughput_is_no_dip() {
        let more = curve(&[10.0, 100.0, 100.0, 120.0, 125.0, 120.0]);
        assert_eq!(dip(&more, 3.0), Some(Dip { before: 100.0, depth_percent: 0.0, seconds: 0.0 }));
    }

    #[test]
    fn without_seconds_on_both_sides_nothing_is_said() {
        assert_eq!(dip(&curve(&[100.0, 100.0]), 5.0), None);
        assert_eq!(dip(&curve(&[100.0, 100.0]), 1.0), None);
        assert!(!is_back(&curve(&[100.0, 100.0, 100.0, 100.0]), 2.0));
    }
}
