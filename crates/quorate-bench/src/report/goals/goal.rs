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
    /// The longest time without one at any member, in s, beyond what the same large transaction takes this server
    /// alone.
    GapBeyond(&'static str),
    /// Small transactions beside a large one that failed.
    Failed,
    /// Throughput of the primary in its worst second.
    WorstSecond,
    /// How many times faster replicas apply than was written.
    Applied,
}

use Bound::{AtLeast, AtMost};
use Kind::{
    Applied, Commit, CommitBeyond, CommitOver, Failed, Gap, GapBeyond, OverNetwork, OverPeer,
    Variation, WorstSecond,
};

const ALL: &[u32] = &[];
const FAR: &str = "two-regions";
const WRITES: &str = "write_only";

pub(super) const GOALS: &[Goal] = &[
    oltp("lan", WRITES, ALL, OverPeer("galera"), AtLeast(1.15)),
    oltp("lan", "read_write", ALL, OverPeer("galera"), AtLeast(1.15)),
    oltp("lan", WRITES, ALL, OverPeer("async"), AtLeast(1.0)),
    oltp("lan", WRITES, ALL, OverPeer("async"), AtLeast(1.15)),
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
    of("large", "lan", "10 MB", GapBeyond("standalone"), AtMost(0.2)),
    of("large", "lan", "100 MB", GapBeyond("standalone"), AtMost(0.2)),
    of("large", "lan", "1 GB", GapBeyond("standalone"), AtMost(0.2)),
    of("large", FAR, "10 MB", Gap, AtMost(0.2)),
    of("large", FAR, "100 MB", Gap, AtMost(0.2)),
    of("large", FAR, "1 GB", Gap, AtMost(0.2)),
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
            GapBeyond(alone) => format!(
                "members stand still for at most {limit} s longer than {} takes for the large transaction",
                told.title(alone)
            ),
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
            Gap | GapBeyond(_) => format!("{value:.2} s"),
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
        let value = self.value(told, place)?;
        let value = value.filter(|_| !has_failed(told, place));
        Some(Point { at: clients_words(place.clients), value })
    }

    /// None: there is nothing to compare with, or Quorate was not measured. `Some(None)`: there is, and Quorate has
    /// no value.
    fn value(&self, told: &Told, place: &Place) -> Option<Option<f64>> {
        let summary = &told.summary;
        let spread = |place: &Place, system: &str, name: &str| summary.figure(place, system, name);
        let median = |place: &Place, system: &str, name: &str| {
            spread(place, system, name).map(|spread| spread.median)
        };
        let ours = |name: &str| self.ours(told, place, spread(place, QUORATE, name));
        let ratio = |other: &Place, system: &str, name: &str| {
            let failed = system == QUORATE && has_failed(told, other);
            if !failed {
                median(other, system, name)?;
            }
            let ratio = summary.ratio_between((place, QUORATE), (other, system), name);
            let ratio = ratio.filter(|_| !failed).map(|spread| spread.median);
            (ratio.is_some() || failed || has_failed(told, place)).then_some(ratio)
        };
        let on = |network: &str| Place { network: network.into(), ..place.clone() };
        let with = |load: &str| Place { load: load.into(), ..place.clone() };
        match self.kind {
            OverPeer(peer) => ratio(place, peer, "tps"),
            OverNetwork(network) => ratio(&on(network), QUORATE, "tps"),
            CommitBeyond(alone) => {
                let beside = median(place, alone, "commit_us")?
                    + told.round_trip_and_sync_us(self.network)?;
                ours("commit_us").map(|here| here.map(|here| here - beside))
            }
            CommitOver(load) => ratio(&with(load), QUORATE, "commit_us"),
            Commit => ours("commit_us").map(|us| us.map(|us| us / 1e3)),
            Variation(peer) => ratio(place, peer, "cv_percent"),
            Gap => ours("primary_gap_s"),
            GapBeyond(alone) => {
                let large = median(place, alone, "large_s")?;
                ours("gap_s").map(|gap| gap.map(|gap| gap - large))
            }
            Failed => ours("small_failed"),
            WorstSecond => ours("worst_tps"),
            Applied => ours("apply_over_write"),
        }
    }

    /// A figure of Quorate's, as this goal judges it.
    fn ours(&self, told: &Told, place: &Place, spread: Option<Spread>) -> Option<Option<f64>> {
        let value = spread.map(|spread| match self.kind {
            Gap | GapBeyond(_) | Failed => spread.high,
            WorstSecond => spread.low,
            _ => spread.median,
        });
        (value.is_some() || has_failed(told, place)).then_some(value)
    }
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
