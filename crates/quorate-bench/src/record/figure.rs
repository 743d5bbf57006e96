//! All figures that tests report: what each is called, its unit, and which way is better.

use super::Spread;

/// What a figure is. Its name, in [`crate::record::Cell::figures`], ends in its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub better: Better,
    /// After the point.
    pub digits: usize,
    /// How finely it is measured: what differs by no more is level. 0: as finely as it is told.
    pub step: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
}

use Better::{Higher, Lower};

pub const FIGURES: &[Figure] = &[
    figure("tps", "Throughput", "transactions/s", Higher, 0),
    figure("share_of_lan_percent", "Share of its own throughput on lan", "%", Higher, 0),
    figure("avg_ms", "Average response", "ms", Lower, 2),
    figure("p95_ms", "95th percentile", "ms", Lower, 2),
    figure("p99_ms", "99th percentile", "ms", Lower, 2),
    figure("max_ms", "Longest response", "ms", Lower, 1),
    figure("cpu_us_per_trx", "CPU time, all nodes", "µs/transaction", Lower, 0),
    figure("net_bytes_per_trx", "Bytes on the network", "bytes/transaction", Lower, 0),
    figure("syncs_per_trx", "Syncs, all nodes", "syncs/transaction", Lower, 2),
    figure("packets_per_trx", "Packets on the network", "packets/transaction", Lower, 1),
    figure("lab_us_per_trx", "CPU time of the lab's network", "µs/transaction", Lower, 0),
    figure("conflicts_per_1000_trx", "Conflicts", "conflicts/1000 transactions", Lower, 2),
    figure("behind_s", "Last member has everything after the end", "s", Lower, 2),
    figure("cv_percent", "Variation of throughput", "%", Lower, 1),
    figure("worst_tps", "Worst second", "transactions/s", Higher, 0),
    figure("worst_over_median", "Worst second over median", "×", Higher, 2),
    figure("detect_s", "Failure noticed after", "s", Lower, 2),
    figure("write_again_s", "Writes again after", "s", Lower, 2),
    figure("back_to_three_s", "Whole again after", "s", Lower, 1),
    figure("dip_depth_percent", "Depth of the dip", "%", Lower, 0),
    figure("dip_s", "Length of the dip", "s", Lower, 1).in_steps_of(1.0),
    figure("replay_s", "Last node has everything after", "s", Lower, 1),
    figure("lag_p50_ms", "Lag, median", "ms", Lower, 1),
    figure("lag_p99_ms", "Lag, 99th percentile", "ms", Lower, 1),
    figure("lag_max_ms", "Lag, longest", "ms", Lower, 0),
    figure("apply_over_write", "Applied over written", "×", Higher, 2),
    figure("best_tps", "Best rate without growing lag", "transactions/s", Higher, 0),
    figure("trx_per_cpu_s", "Transactions per CPU second", "transactions", Higher, 0),
    figure("transactions", "Transactions", "transactions", Higher, 0),
    figure("tpm", "New orders", "orders/min", Higher, 0),
    figure("first_replica_s", "First replica done after", "s", Lower, 0),
    figure("replica_elapsed_s", "Last replica done after", "s", Lower, 0),
    figure("replica_tps", "Replica's throughput", "transactions/s", Higher, 0),
    figure("commit_us", "Commit", "µs", Lower, 0),
    figure("build_us", "Commit: build", "µs", Lower, 0),
    figure("queue_us", "Commit: queue", "µs", Lower, 0),
    figure("send_us", "Commit: send", "µs", Lower, 0),
    figure("sync_us", "Commit: sync here", "µs", Lower, 0),
    figure("majority_us", "Commit: majority", "µs", Lower, 0),
    figure("order_us", "Commit: order", "µs", Lower, 0),
    figure("innodb_us", "Commit: InnoDB", "µs", Lower, 0),
    figure("wake_us", "Commit: wake-ups", "µs", Lower, 0),
    figure("wakeups_per_trx", "Wake-ups, all nodes", "wake-ups/transaction", Lower, 1),
    figure("switches_per_trx", "Context switches, all nodes", "switches/transaction", Lower, 1),
    figure("own_cpu_us_per_trx", "CPU of Quorate's own threads", "µs/transaction", Lower, 0),
    figure(
        "own_switches_per_trx",
        "Context switches of Quorate's own threads",
        "switches/transaction",
        Lower,
        1,
    ),
    figure("large_cpu_s", "CPU time until all have the large one, all nodes", "s", Lower, 1),
    figure("large_net_mb", "Bytes on the network until then", "MB", Lower, 0),
    figure("large_syncs", "Syncs until then, all nodes", "syncs", Lower, 0),
    figure("small_commits", "Small transactions committed until then", "transactions", Higher, 0),
    figure("large_s", "Time of the large transaction", "s", Lower, 1),
    figure("gap_s", "Longest gap", "s", Lower, 2),
    figure("primary_gap_s", "Longest gap at the primary", "s", Lower, 2),
    figure("small_failed", "Small transactions that failed", "", Lower, 0),
    figure("memory_mb", "Memory of the largest node", "MB", Lower, 0),
    figure("primary_memory_mb", "Memory of the primary", "MB", Lower, 0),
    figure("goodput_tps", "Goodput", "transactions/s", Higher, 0),
    figure("cert_failures", "Certification failures", "", Lower, 0),
];

/// The parts of `commit_us`, in the order of a commit.
pub const COMMIT_PARTS: &[&str] = &[
    "build_us",
    "queue_us",
    "send_us",
    "sync_us",
    "majority_us",
    "order_us",
    "innodb_us",
    "wake_us",
];

pub const ADVANTAGE_MAX: f64 = 999.0;

/// They depend on how busy the machine is least of all.
pub const COSTS: &[&str] = &["cpu_us_per_trx", "net_bytes_per_trx", "syncs_per_trx"];

/// What the lab itself adds to that: the processors that carry the packets are those of the nodes.
pub const LAB: &[&str] = &["packets_per_trx", "lab_us_per_trx"];

/// How often threads sleep and are woken, or make room: of all threads where that was profiled, of Quorate's own
/// wherever costs are.
pub const SWITCHES: &[&str] =
    &["wakeups_per_trx", "switches_per_trx", "own_cpu_us_per_trx", "own_switches_per_trx"];

/// The figure of that name.
pub fn named(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

impl Figure {
    const fn in_steps_of(mut self, step: f64) -> Figure {
        self.step = step;
        self
    }

    /// `18,204`, `0.42`: without the unit.
    pub fn show(&self, value: f64) -> String {
        grouped(value, self.digits)
    }

    /// `17,950–18,310`: from the least to the most of several rounds.
    pub fn show_range(&self, spread: &Spread) -> Option<String> {
        let several = spread.rounds > 1;
        several.then(|| format!("{}–{}", self.show(spread.low), self.show(spread.high)))
    }

    /// `Throughput, transactions/s`.
    pub fn title_with_unit(&self) -> String {
        match self.unit {
            "" => self.title.to_owned(),
            unit => format!("{}, {unit}", self.title),
        }
    }

    /// How good `ours` is beside `theirs`: above 1 is better, whichever way the figure goes. At most
    /// [`ADVANTAGE_MAX`], which stands for something beside nothing.
    pub fn advantage(&self, ours: f64, theirs: f64) -> f64 {
        let (above, below) = match self.better {
            Higher => (ours, theirs),
            Lower => (theirs, ours),
        };
        if above == below || (above - below).abs() <= self.step {
            return 1.0;
        }
        (above / below).clamp(1.0 / ADVANTAGE_MAX, ADVANTAGE_MAX)
    }
}

/// With a comma between thousands.
pub fn grouped(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut shown = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 && digit.is_ascii_digit() {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown + rest
}

const fn figure(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    better: Better,
    digits: usize,
) -> Figure {
    Figure { name, title, unit, better, digits, step: 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_parts_and_costs_are_figures() {
        let names: BTreeSet<&str> = FIGURES.iter().map(|figure| figure.name).collect();
        assert_eq!(names.len(), FIGURES.len());
        for name in COMMIT_PARTS.iter().chain(COSTS).chain(LAB).chain(SWITCHES) {
            assert!(named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(1_234_567.891, 1), "1,234,567.9");
        assert_eq!(grouped(-1234.0, 0), "-1,234");
        assert_eq!(grouped(123.4, 0), "123");
        assert_eq!(grouped(0.5, 2), "0.50");
    }

    #[test]
    fn an_advantage_is_above_one_whichever_way_the_figure_goes() {
        assert_eq!(named("tps").unwrap().advantage(200.0, 100.0), 2.0);
        let dip = named("dip_s").unwrap();
        assert_eq!(dip.advantage(10.0, 20.0), 2.0);
        assert_eq!(dip.advantage(0.0, 20.0), ADVANTAGE_MAX);
        assert_eq!(dip.advantage(0.0, 0.0), 1.0);
        assert_eq!(dip.advantage(0.0, 1.0), 1.0, "it is told by the second");
        assert_eq!(dip.advantage(3.0, 1.0), 1.0 / 3.0);
        assert_eq!(named("gap_s").unwrap().advantage(0.5, 1.0), 2.0);
    }
}
