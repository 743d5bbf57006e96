//! What Quorate is to reach, and at which points of a run that can be looked at.
//!
//! A goal is judged at the medians of the rounds. A point at which Quorate failed, and what it is compared with did
//! not, has no value, and is missed.

use super::super::standing::{times, QUORATE};
use super::super::Told;
use crate::record::{clients_words, Place};

/// How a value stands to its limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    AtLeast,
    AtMost,
}

/// One point of the grid at which a goal can be judged.
pub(super) struct Point {
    pub at: String,
    /// None: Quorate failed there.
    pub value: Option<f64>,
    pub limit: f64,
}

pub(super) struct Goal {
    /// The test of which the points are.
    pub test: &'static str,
    pub network: &'static str,
    pub load: &'static str,
    pub kind: Kind,
}

/// What is looked at; of all numbers of clients where none are named.
pub(super) enum Kind {
    /// Throughput over a peer's.
    OverPeer {
        peer: &'static str,
        clients: &'static [u32],
        at_least: f64,
    },
    /// Throughput over that of the same load on another network.
    OverNetwork {
        network: &'static str,
        clients: &'static [u32],
        at_least: f64,
    },
    /// The time of a commit, beyond what a server alone, a round trip to another member and a sync take, as they
    /// were measured in the run.
    CommitBeyond {
        alone: &'static str,
        at_most_us: f64,
    },
    /// The time of a commit over that on another member.
    CommitOver {
        load: &'static str,
        at_most: f64,
    },
    Commit {
        at_most_ms: f64,
    },
    /// How much the throughput varies, over how much a peer's does.
    Variation {
        peer: &'static str,
        at_most: f64,
    },
    /// The longest time without a small transaction at the primary.
    Gap {
        at_most_s: f64,
    },
    /// How many times faster replicas apply than was written.
    Applied {
        at_least: f64,
    },
}

use Kind::{Applied, Commit, CommitBeyond, CommitOver, Gap, OverNetwork, OverPeer, Variation};

const ALL: &[u32] = &[];

pub(super) const GOALS: &[Goal] = &[
    oltp("lan", "write_only", OverPeer { peer: "galera", clients: ALL, at_least: 1.15 }),
    oltp("lan", "read_write", OverPeer { peer: "galera", clients: ALL, at_least: 1.15 }),
    oltp("lan", "write_only", OverPeer { peer: "async", clients: ALL, at_least: 1.15 }),
    oltp("two-regions", "write_only", OverPeer { peer: "galera", clients: &[1], at_least: 12.0 }),
    oltp(
        "two-regions",
        "write_only",
        OverPeer { peer: "gr-eventual", clients: &[1], at_least: 12.0 },
    ),
    oltp("two-regions", "write_only", OverPeer { peer: "galera", clients: &[64], at_least: 2.0 }),
    oltp(
        "two-regions",
        "write_only",
        OverPeer { peer: "gr-eventual", clients: &[64], at_least: 1.5 },
    ),
    oltp(
        "two-regions",
        "write_only",
        OverNetwork { network: "region", clients: &[16, 64], at_least: 0.95 },
    ),
    of("latency", "region", "primary", CommitBeyond { alone: "standalone", at_most_us: 150.0 }),
    of("latency", "region", "near member", CommitOver { load: "primary", at_most: 1.15 }),
    of("latency", "two-regions", "far member", Commit { at_most_ms: 32.0 }),
    of("jitter", "region", "read_write", Variation { peer: "standalone", at_most: 1.2 }),
    of("large", "lan", "10 MB", Gap { at_most_s: 0.2 }),
    of("large", "lan", "100 MB", Gap { at_most_s: 0.2 }),
    of("large", "lan", "1 GB", Gap { at_most_s: 0.2 }),
    of("replay", "lan", "50000 events, held back", Applied { at_least: 6.0 }),
];

const fn oltp(network: &'static str, load: &'static str, kind: Kind) -> Goal {
    of("oltp", network, load, kind)
}

const fn of(test: &'static str, network: &'static str, load: &'static str, kind: Kind) -> Goal {
    Goal { test, network, load, kind }
}

impl Goal {
    /// `lan, write_only, every number of clients: at least 1.15× Galera`.
    pub fn words(&self, told: &Told) -> String {
        let wanted = match &self.kind {
            OverPeer { peer, clients, at_least } => {
                let (clients, least) = (numbers(clients), times(*at_least));
                return format!("{}, {clients}: at least {least} {}", self.head(), told.title(peer));
            }
            OverNetwork { network, clients, at_least } => {
                let (clients, least) = (numbers(clients), times(*at_least));
                return format!("{}, {clients}: at least {least} the same on {network}", self.head());
            }
            CommitBeyond { alone, at_most_us } => format!(
                "a commit takes at most {at_most_us} µs more than {}, a round trip and a sync together",
                told.title(alone)
            ),
            CommitOver { load, at_most } => {
                format!("a commit takes at most {} as long as on the {load}", times(*at_most))
            }
            Commit { at_most_ms } => format!("a commit takes at most {at_most_ms} ms"),
            Variation { peer, at_most } => {
                format!("the throughput varies at most {} as much as that of {}", times(*at_most), told.title(peer))
            }
            Gap { at_most_s } => {
                format!("the primary commits a small transaction at least every {at_most_s} s")
            }
            Applied { at_least } => {
                format!("replicas apply at least {} as fast as was written", times(*at_least))
            }
        };
        format!("{}: {wanted}", self.head())
    }

    fn head(&self) -> String {
        match self.test {
            "oltp" => format!("{}, {}", self.network, self.load),
            test => format!("{test}, {}, {}", self.network, self.load),
        }
    }

    pub fn bound(&self) -> Bound {
        match self.kind {
            OverPeer { .. } | OverNetwork { .. } | Applied { .. } => Bound::AtLeast,
            CommitBeyond { .. }
            | CommitOver { .. }
            | Commit { .. }
            | Variation { .. }
            | Gap { .. } => Bound::AtMost,
        }
    }

    /// A value in the unit of this goal.
    pub fn shown(&self, value: f64) -> String {
        match self.kind {
            CommitBeyond { .. } => format!("{value:.0} µs"),
            Commit { .. } => format!("{value:.1} ms"),
            Gap { .. } => format!("{value:.2} s"),
            _ => times(value),
        }
    }

    /// Where it can be judged: Quorate has cells there, and so has what it is compared with.
    pub fn points(&self, told: &Told) -> Vec<Point> {
        let places = told.summary.places(self.test).filter(|place| {
            place.network == self.network && place.load == self.load && place.members == 3
        });
        places.filter_map(|place| self.point(told, place)).collect()
    }

    fn point(&self, told: &Told, place: &Place) -> Option<Point> {
        let summary = &told.summary;
        let figure = |place: &Place, system: &str, name: &str| {
            summary.figure(place, system, name).map(|spread| spread.median)
        };
        let ratio = |other: (&Place, &str), name: &str| {
            let ratio = summary.ratio_between((place, QUORATE), other, name);
            // Without Quorate's, the other one must have it: else there is nothing to reach.
            (ratio.is_some() || figure(other.0, other.1, name).is_some())
                .then(|| ratio.map(|it| it.median))
        };
        let (value, limit) = match &self.kind {
            OverPeer { clients, .. } | OverNetwork { clients, .. }
                if !clients.is_empty() && !clients.contains(&place.clients) =>
            {
                return None;
            }
            OverPeer { peer, at_least, .. } => (ratio((place, peer), "tps")?, *at_least),
            OverNetwork { network, at_least, .. } => {
                let other = Place { network: (*network).into(), ..place.clone() };
                (ratio((&other, QUORATE), "tps")?, *at_least)
            }
            CommitBeyond { alone, at_most_us } => {
                let beside = figure(place, alone, "commit_us")?
                    + told.round_trip_and_sync_us(self.network)?;
                (figure(place, QUORATE, "commit_us").map(|here| here - beside), *at_most_us)
            }
            CommitOver { load, at_most } => {
                let other = Place { load: (*load).into(), ..place.clone() };
                (ratio((&other, QUORATE), "commit_us")?, *at_most)
            }
            Commit { at_most_ms } => {
                (figure(place, QUORATE, "commit_us").map(|us| us / 1e3), *at_most_ms)
            }
            Variation { peer, at_most } => (ratio((place, peer), "cv_percent")?, *at_most),
            Gap { at_most_s } => (figure(place, QUORATE, "primary_gap_s"), *at_most_s),
            Applied { at_least } => (figure(place, QUORATE, "apply_over_write"), *at_least),
        };
        let was_measured = !summary.cells(place, QUORATE).is_empty();
        was_measured.then(|| Point { at: clients_words(place.clients), value, limit })
    }
}

/// `every number of clients`, `16 and 64 clients`.
fn numbers(clients: &[u32]) -> String {
    match clients {
        [] => "every number of clients".to_owned(),
        [several @ .., last] if !several.is_empty() => {
            let several: Vec<String> = several.iter().map(u32::to_string).collect();
            format!("{} and {}", several.join(", "), clients_words(*last))
        }
        [one] => clients_words(*one),
        _ => unreachable!("a slice is empty, of one, or of several"),
    }
}

impl Bound {
    pub fn is_kept(self, value: f64, limit: f64) -> bool {
        match self {
            Bound::AtLeast => value >= limit,
            Bound::AtMost => value <= limit,
        }
    }
}
