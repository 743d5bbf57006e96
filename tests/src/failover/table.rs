//! The measurements beside what they may be at most.

use super::fault::{BACK_WITHIN, RATE_LEAST};
use super::{Back, Fault, Outcome};
use std::time::Duration;

/// Prints a line as each fault is done, and counts what is beyond its limit.
#[derive(Default)]
pub struct Table {
    backs: Vec<Back>,
    missed: usize,
    lost: usize,
}

impl Table {
    pub fn head(network: &str) {
        println!("{network}: longest time without an acknowledged commit");
        println!(
            "{:<17} {:>6} {:>16} {:>16} {:>11} {:>8} {:>5}",
            "fault", "rounds", "p50 (limit)", "worst (limit)", "throughput", "acked", "lost"
        );
    }

    /// `lost_at_end`: of all rounds together.
    pub fn add(&mut self, fault: Fault, outcomes: &[Outcome], lost_at_end: usize) {
        let limit = fault.limit();
        let (half, worst) = spread(outcomes.iter().map(|outcome| outcome.gap));
        let rates = outcomes.iter().filter_map(|outcome| outcome.rate_ratio);
        let rate = middle(rates).filter(|_| !fault.hits_leader());
        let lost = outcomes.iter().map(|outcome| outcome.lost).fold(lost_at_end, usize::max);
        let missed = half > limit.half
            || limit.worst.is_some_and(|limit| worst > limit)
            || rate.is_some_and(|rate| rate < RATE_LEAST);
        println!(
            "{:<17} {:>6} {:>16} {:>16} {:>11} {:>8} {:>5}{}",
            fault.name(),
            outcomes.len(),
            beside(half, Some(limit.half)),
            beside(worst, limit.worst),
            rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.0} %", 100.0 * rate)),
            outcomes.iter().map(|outcome| outcome.acked).sum::<usize>(),
            lost,
            if missed { "  MISSED" } else { "" },
        );
        let after = middle(outcomes.iter().filter_map(|outcome| outcome.rate_ratio_after));
        if let Some(after) = after {
            println!("{:<17} {:.0} % of the throughput afterwards", "", 100.0 * after);
        }
        self.missed += usize::from(missed);
        self.lost = self.lost.max(lost);
        // A node that left has no backlog by a crash, but returns in the same way.
        self.backs.extend(outcomes.iter().filter_map(|outcome| outcome.back));
    }

    /// The line about nodes that returned; how many lines missed a limit, and rows lost.
    pub fn end(mut self) -> (usize, usize) {
        if !self.backs.is_empty() {
            let (half, worst) = spread(self.backs.iter().map(|back| back.took));
            let (gap, worst_gap) = spread(self.backs.iter().map(|back| back.gap));
            let backlog = self.backs.iter().map(|back| back.backlog).max().unwrap_or(0);
            let missed = half > BACK_WITHIN;
            println!(
                "{} nodes were Synced again {:.2} s after their start, at worst {:.2} s (limit {} s, \
                 and the time for a backlog of up to {backlog} rows); writes paused for {:.2} s, \
                 at worst {:.2} s meanwhile{}",
                self.backs.len(),
                half.as_secs_f64(),
                worst.as_secs_f64(),
                BACK_WITHIN.as_secs(),
                gap.as_secs_f64(),
                worst_gap.as_secs_f64(),
                if missed { "  MISSED" } else { "" },
            );
            self.missed += usize::from(missed);
        }
        (self.missed, self.lost)
    }
}

/// Median and maximum.
fn spread(times: impl Iterator<Item = Duration>) -> (Duration, Duration) {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    (at(times.len() / 2), at(times.len().saturating_sub(1)))
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn beside(time: Duration, limit: Option<Duration>) -> String {
    let limit = limit.map_or_else(|| "-".to_owned(), |limit| format!("{:.1}", limit.as_secs_f64()));
    format!("{:.3} s ({limit})", time.as_secs_f64())
}
