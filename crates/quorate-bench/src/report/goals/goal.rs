//! What Quorate is to reach, and at which points of a run that can be looked at.
//!
//! A ratio, and what a commit takes, is judged by the median of the rounds. What is never to happen is judged by the
//! worst round. A point at which Quorate failed in any round has no value, and is missed, unless there is nothing to
//! compare it with.

use super::super::standing::{times, QUORATE};
use super::super::Told;
use crate::record::{clients_words, Place, Spread};

/// How a value stands to its limit.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// One point of the grid at which a goal can be judged.
pub(super) struct Point {
    pub at: String,
    /// None: Quorate failed there.
    pub value: Option<f64>,
    /// Whether the median keeps the limit, and a round does not.
    pub is_doubtful: bool,
}

pub(super) struct Goal {
    /// The test of which the points are.
    pub test: &'static str,
    pub network: &'static str,
    pub load: &'static str,
    /// None: at every number.
    pub clients: &'static [u32],
    pub kind: Kind,
    pub bound: Bound,
}

/// What is looked at, and the unit of its limit.
pub(super) enum Kind {
    /// Throughput over a peer's.
    OverPeer(&'static str),
    /// Throughput over that of the same load on another network.
    OverNetwork(&'static str),
    /// The time of a commit, in µs, beyond what this server alone, which does not sync, a round trip to another
    /// member and a sync take, as they were measured in the run.
    CommitBeyond(&'static str),
    /// The time of a commit over that of another load.
    CommitOver(&'static str),
    /// The time of a commit, in ms.
    Commit,
    /// How much the throughput varies, over how much a peer's does.
    Variation(&'static str),
    /// The longest time without a small transaction at the primary, in s.
    Gap,
    /// Memory of the primary, in MB, beyond what the same large transaction takes this server alone: the one that
    /// flushes its redo log as Quorate's servers do, for that decides on InnoDB's memory, too.
    MemoryBeyond(&'static str),
    /// Small transactions beside a large one that failed.
    Failed,
    /// Throughput of the primary in its worst second.
    WorstSecond,
    /// How many times faster replicas apply than was written.
    Applied,
}

use Bound::{AtLeast, AtMost};
use Kind::{
    Applied, Commit, CommitBeyond, CommitOver, Failed, Gap, MemoryBeyond, OverNetwork, OverPeer,
    Variation, WorstSecond,
};

const ALL: &[u32] = &[];
const FAR: &str = "two-regions";
const WRITES: &str = "write_only";
/// In MB.
const MIB_64: f64 = 67.1;

pub(super) const GOALS: &[Goal] = &[
    oltp("lan", WRITES, ALL, OverPeer("galera"), AtLeast(1.15)),
    oltp("lan", "read_write", ALL, OverPeer("galera"), AtLeast(1.15)),
    oltp("lan", WRITES, ALL, OverPeer("async"), AtLeast(1.0)),
    oltp("lan", WRITES, ALL, OverPeer("async"), AtLeast(1.15)),
    oltp("lan", WRITES, &[16], OverPeer("quorate-plain"), AtLeast(0.95)),
    oltp(FAR, WRITES, &[1], OverPeer("galera"), AtLeast(12.0)),
    oltp(FAR, WRITES, &[1], OverPeer("gr-eventual"), AtLeast(12.0)),
    oltp(FAR, WRITES, &[64], OverPeer("galera"), AtLeast(1.5)),
    oltp(FAR, WRITES, &[64], OverPeer("galera"), AtLeast(2.0)),
    oltp(FAR, WRITES, &[64], OverPeer("gr-eventual"), AtLeast(1.5)),
    oltp(FAR, WRITES, &[64], OverPeer("gr-tuned"), AtLeast(1.5)),
    oltp(FAR, WRITES, &[16, 64], OverNetwork("region"), AtLeast(0.95)),
    of("latency", "region", "primary", CommitBeyond("standalone-relaxed"), AtMost(150.0)),
    of("latency", "region", "near member", CommitOver("primary"), AtMost(1.15)),
    of("latency", FAR, "far member", Commit, AtMost(32.0)),
    of("jitter", "lan", "read_write", Variation("standalone"), AtMost(1.2)),
    of("jitter", "region", "read_write", Variation("standalone"), AtMost(1.2)),
    of("large", "lan", "10 MB", Gap, AtMost(0.2)),
    of("large", "lan", "100 MB", Gap, AtMost(0.2)),
    of("large", "lan", "1 GB", Gap, AtMost(0.2)),
    of("large", FAR, "10 MB", Gap, AtMost(0.2)),
    of("large", FAR, "100 MB", Gap, AtMost(0.2)),
    of("large", FAR, "1 GB", Gap, AtMost(0.2)),
    of("large", "lan", "100 MB of short rows", Gap, AtMost(0.2)),
    of("large", "lan", "100 MB", MemoryBeyond("standalone-relaxed"), AtMost(MIB_64)),
    of("large", "lan", "100 MB of short rows", MemoryBeyond("standalone-relaxed"), AtMost(MIB_64)),
    of("large", "lan", "1 GB", MemoryBeyond("standalone-relaxed"), AtMost(MIB_64)),
    of("large", "lan", "100 MB of short rows", Failed, AtMost(0.0)),
    of("large", "lan", "10 MB", Failed, AtMost(0.0)),
    of("large", "lan", "100 MB", Failed, AtMost(0.0)),
    of("large", "lan", "1 GB", Failed, AtMost(0.0)),
    of("flow", "lan", "threshold 100", WorstSecond, AtLeast(1.0)),
    of("flow", "lan", "threshold 1000", WorstSecond, AtLeast(1.0)),
    of("flow", "lan", "threshold 10000", WorstSecond, AtLeast(1.0)),
    of("replay", "lan", "50000 events, held back", Applied, AtLeast(6.0)),
];

const fn oltp(
    network: &'static str,
    load: &'static str,
    clients: &'static [u32],
    kind: Kind,
    bound: Bound,
) -> Goal {
    Goal { clients, ..of("oltp", network, load, kind, bound) }
}

const fn of(
    test: &'static str,
    network: &'static str,
    load: &'static str,
    kind: Kind,
    bound: Bound,
) -> Goal {
    Goal { test, network, load, clients: ALL, kind, bound }
}

impl Goal {
    /// `lan, write_only, every number of clients: at least 1.15× Galera`.
    pub fn words(&self, told: &Told) -> String {
        let limit = self.bound.limit();
        let wanted = match self.kind {
            OverPeer(peer) => format!("at least {} {}", times(limit), told.title(peer)),
            OverNetwork(network) => format!("at least {} the same on {network}", times(limit)),
            CommitBeyond(alone) => format!(
                "a commit takes at most {limit} µs more than {}, a round trip and a sync together",
                told.title(alone)
            ),
            CommitOver(load) => {
                format!("a commit takes at most {} as long as on the {load}", times(limit))
            }
            Commit => format!("a commit takes at most {limit} ms"),
            Variation(peer) => {
                let (limit, peer) = (times(limit), told.title(peer));
                format!("the throughput varies at most {limit} as much as that of {peer}")
            }
            Gap => format!("the primary commits a small transaction at least every {limit} s"),
            MemoryBeyond(alone) => {
                format!(
                    "the primary takes at most {limit} MB more memory than {}",
                    told.title(alone)
                )
            }
            Failed => "no small transaction fails".to_owned(),
            WorstSecond => "no second in which the primary writes nothing".to_owned(),
            Applied => format!("replicas apply at least {} as fast as was written", times(limit)),
        };
        match self.test {
            "oltp" => {
                format!("{}, {}, {}: {wanted}", self.network, self.load, numbers(self.clients))
            }
            test => format!("{test}, {}, {}: {wanted}", self.network, self.load),
        }
    }

    /// A value in the unit of this goal.
    pub fn shown(&self, value: f64) -> String {
        match self.kind {
            CommitBeyond(_) => format!("{value:.0} µs"),
            Commit => format!("{value:.1} ms"),
            // One digit more than the limits have: what misses one does not look as if it kept it.
            Gap => format!("{value:.3} s"),
            MemoryBeyond(_) => format!("{value:.1} MB"),
            Failed => format!("{value:.0}"),
            WorstSecond => format!("{value:.0} transactions/s"),
            _ => times(value),
        }
    }

    /// Where it can be judged: Quorate has cells there, and so has what it is compared with.
    pub fn points(&self, told: &Told) -> Vec<Point> {
        let places = told.summary.places(self.test).filter(|place| {
            place.network == self.network
                && place.load == self.load
                && place.members == 3
                && (self.clients.is_empty() || self.clients.contains(&place.clients))
        });
        places.filter_map(|place| self.point(told, place)).collect()
    }

    fn point(&self, told: &Told, place: &Place) -> Option<Point> {
        let beside = self.beside(told, place)?;
        let has_failed = has_failed(told, place) || has_failed(told, &self.base(place));
        let spread = match has_failed {
            true => None,
            false => Some(self.value(told, place, beside)?),
        };
        let is_doubtful = spread.is_some_and(|Spread { low, median, high, .. }| {
            let [least, median, most] = [low, median, high].map(|value| self.bound.is_kept(value));
            median && !(least && most)
        });
        let value = spread.map(|spread| spread.median);
        Some(Point { at: clients_words(place.clients), value, is_doubtful })
    }

    /// Where Quorate is compared with itself; elsewhere the place is its own.
    fn base(&self, place: &Place) -> Place {
        match self.kind {
            OverNetwork(network) => Place { network: network.into(), ..place.clone() },
            CommitOver(load) => Place { load: load.into(), ..place.clone() },
            _ => place.clone(),
        }
    }

    /// What others have at the place, where Quorate is compared with them; else 0. None: what it is compared with was
    /// not measured.
    fn beside(&self, told: &Told, place: &Place) -> Option<f64> {
        let theirs = |system: &str, name: &str| {
            told.summary.figure(place, system, name).map(|spread| spread.median)
        };
        match self.kind {
            OverPeer(peer) => theirs(peer, "tps"),
            Variation(peer) => theirs(peer, "cv_percent"),
            CommitBeyond(alone) => {
                Some(theirs(alone, "commit_us")? + told.round_trip_and_sync_us(self.network)?)
            }
            MemoryBeyond(alone) => theirs(alone, "primary_memory_mb"),
            _ => {
                let ours = told.summary.cells(&self.base(place), QUORATE);
                (!ours.is_empty()).then_some(0.0)
            }
        }
    }

    /// Over the rounds; of what is never to happen, the worst one alone. None: Quorate, or what it is compared with, was
    /// not measured, or never in one round.
    fn value(&self, told: &Told, place: &Place, beside: f64) -> Option<Spread> {
        let ours = |name: &str| told.summary.figure(place, QUORATE, name);
        let less = |spread: Spread, by: f64| each(spread, |value| value - by);
        let most = |name: &str| ours(name).map(|spread| each(spread, |_| spread.high));
        let ratio = |system: &str, name: &str| {
            let base = self.base(place);
            told.summary.ratio_between((place, QUORATE), (&base, system), name)
        };
        match self.kind {
            OverPeer(peer) => ratio(peer, "tps"),
            OverNetwork(_) => ratio(QUORATE, "tps"),
            CommitBeyond(_) => ours("commit_us").map(|spread| less(spread, beside)),
            CommitOver(_) => ratio(QUORATE, "commit_us"),
            Commit => ours("commit_us").map(|spread| each(spread, |us| us / 1e3)),
            Variation(peer) => ratio(peer, "cv_percent"),
            Gap => most("primary_gap_s"),
            MemoryBeyond(_) => most("primary_memory_mb").map(|spread| less(spread, beside)),
            Failed => most("small_failed"),
            WorstSecond => ours("worst_tps").map(|spread| each(spread, |_| spread.low)),
            Applied => ours("apply_over_write"),
        }
    }
}

fn each(spread: Spread, change: impl Fn(f64) -> f64) -> Spread {
    let Spread { low, median, high, rounds } = spread;
    Spread { low: change(low), median: change(median), high: change(high), rounds }
}

/// Whether a round of Quorate's has.
fn has_failed(told: &Told, place: &Place) -> bool {
    told.summary.cells(place, QUORATE).iter().any(|cell| cell.failed.is_some())
}

/// `every number of clients`, `16 and 64 clients`.
fn numbers(clients: &[u32]) -> String {
    let Some((last, others)) = clients.split_last() else {
        return "every number of clients".to_owned();
    };
    let others: String = others.iter().map(|number| format!("{number} and ")).collect();
    others + &clients_words(*last)
}

impl Bound {
    pub fn limit(self) -> f64 {
        match self {
            AtLeast(limit) | AtMost(limit) => limit,
        }
    }

    pub fn is_kept(self, value: f64) -> bool {
        match self {
            AtLeast(limit) => value >= limit,
            AtMost(limit) => value <= limit,
        }
    }
}
