//! The measurements beside what they may be at most.

use super::fault::{BACK_WITHIN, RATE_LEAST};
use super::{Back, Fault, Outcome};
use std::time::Duration;

/// Of one network. Prints a line as each fault is done, and tells what is beyond its limit.
pub struct Table {
    pub network: String,
    pub lines: Vec<Line>,
    backs: Vec<Back>,
}

/// All rounds of a fault.
pub struct Line {
    pub fault: Fault,
    pub rounds: usize,
    /// The longest time without an acknowledged commit: median of the rounds, and at worst.
    pub half: Duration,
    pub worst: Duration,
    /// Throughput meanwhile, over that before, where it has a limit.
    pub rate: Option<f64>,
    /// The same over that afterwards.
    pub rate_after: Option<f64>,
    pub acked: usize,
    pub lost: usize,
    pub missed: bool,
}

/// Nodes that were started again.
pub struct Returned {
    pub nodes: usize,
    /// From their start until they were Synced: median, and at worst.
    pub half: Duration,
    pub worst: Duration,
    /// Without an acknowledged commit meanwhile.
    pub gap: Duration,
    pub worst_gap: Duration,
    /// Rows.
    pub backlog: usize,
    pub missed: bool,
}

impl Table {
    pub fn begin(network: &str) -> Table {
        println!("{network}: longest time without an acknowledged commit");
        println!(
            "{:<17} {:>6} {:>16} {:>16} {:>11} {:>8} {:>5}",
            "fault", "rounds", "p50 (limit)", "worst (limit)", "throughput", "acked", "lost"
        );
        Table { network: network.to_owned(), lines: Vec::new(), backs: Vec::new() }
    }

    /// `lost_at_end`: of all rounds together.
    pub fn add(&mut self, fault: Fault, outcomes: &[Outcome], lost_at_end: usize) {
        let line = Line::of(fault, outcomes, lost_at_end);
        println!("{}", line.text());
        if let Some(after) = line.rate_after {
            println!("{:<17} {:.0} % of the throughput afterwards", "", 100.0 * after);
        }
        self.lines.push(line);
        // A node that left has no backlog by a crash, but returns in the same way.
        self.backs.extend(outcomes.iter().filter_map(|outcome| outcome.back));
    }

    /// None if no node was started again.
    pub fn returned(&self) -> Option<Returned> {
        let backlog = self.backs.iter().map(|back| back.backlog).max()?;
        let (half, worst) = spread(self.backs.iter().map(|back| back.took));
        let (gap, worst_gap) = spread(self.backs.iter().map(|back| back.gap));
        let (nodes, missed) = (self.backs.len(), half > BACK_WITHIN);
        Some(Returned { nodes, half, worst, gap, worst_gap, backlog, missed })
    }

    /// How many lines missed a limit, that about nodes that returned included.
    pub fn missed(&self) -> usize {
        let lines = self.lines.iter().filter(|line| line.missed).count();
        lines + usize::from(self.returned().is_some_and(|returned| returned.missed))
    }

    pub fn lost(&self) -> usize {
        self.lines.iter().map(|line| line.lost).max().unwrap_or(0)
    }
}

impl Line {
    fn of(fault: Fault, outcomes: &[Outcome], lost_at_end: usize) -> Line {
        let limit = fault.limit();
        let (half, worst) = spread(outcomes.iter().map(|outcome| outcome.gap));
        let rates = outcomes.iter().filter_map(|outcome| outcome.rate_ratio);
        let rate = middle(rates).filter(|_| !fault.hits_leader());
        Line {
            fault,
            rounds: outcomes.len(),
            half,
            worst,
            rate,
            rate_after: middle(outcomes.iter().filter_map(|outcome| outcome.rate_ratio_after)),
            acked: outcomes.iter().map(|outcome| outcome.acked).sum(),
            lost: outcomes.iter().map(|outcome| outcome.lost).fold(lost_at_end, usize::max),
            missed: half > limit.half
                || limit.worst.is_some_and(|limit| worst > limit)
                || rate.is_some_and(|rate| rate < RATE_LEAST),
        }
    }

    fn text(&self) -> String {
        let limit = self.fault.limit();
        format!(
            "{:<17} {:>6} {:>16} {:>16} {:>11} {:>8} {:>5}{}",
            self.fault.name(),
            self.rounds,
            beside(self.half, Some(limit.half)),
            beside(self.worst, limit.worst),
            self.rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.0} %", 100.0 * rate)),
            self.acked,
            self.lost,
            if self.missed { "  MISSED" } else { "" },
        )
    }
}

impl Returned {
    pub fn text(&self) -> String {
        format!(
            "{} nodes were Synced again {:.2} s after their start, at worst {:.2} s (limit {} s, and \
             the time for a backlog of up to {} rows); writes paused for {:.2} s, at worst {:.2} s \
             meanwhile{}",
            self.nodes,
            self.half.as_secs_f64(),
            self.worst.as_secs_f64(),
            BACK_WITHIN.as_secs(),
            self.backlog,
            self.gap.as_secs_f64(),
            self.worst_gap.as_secs_f64(),
            if self.missed { "  MISSED" } else { "" },
        )
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

/// `0.312 s (0.5)`.
pub(super) fn beside(time: Duration, limit: Option<Duration>) -> String {
    let limit = limit.map_or_else(|| "-".to_owned(), |limit| format!("{:.1}", limit.as_secs_f64()));
    format!("{:.3} s ({limit})", time.as_secs_f64())
}
