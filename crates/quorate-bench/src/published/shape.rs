//! The shape of what was published, as checks on the figures here.
//!
//! A figure is reproduced where ours is within a factor of [`FACTOR`] of the published one: on the same order,
//! whatever the machine. A ratio is to be nearer to the published one than to 1 besides, or within a quarter of it.
//! The checks are of the peers only; where Quorate stands is no part of them.

use super::{rows, PUBLISHED};
use crate::record::{clients_words, Cell, Place, Spread, Summary};
use serde::Serialize;

/// How far a figure may be from the published one, either way.
pub const FACTOR: f64 = 2.0;
/// A ratio that is as near says the same, on whatever side of 1.
const NEARLY: f64 = 1.25;
/// A number of clients near a published one stands in for it: 64 for 50.
const NEAR: f64 = 1.5;

/// Whether the peers here show what was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Reproduced,
    Partly,
    NotReproduced,
    /// The cells that it takes are missing, or the system is.
    CannotBeSaid,
    NothingPublished,
}

/// One thing that was published, beside what is seen here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    pub published: String,
    pub here: String,
    /// None: cells are missing.
    pub holds: Option<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// In words, what was published; empty if nothing.
    pub published: &'static str,
    pub checks: Vec<Check>,
}

impl Judgement {
    pub fn shape(&self) -> Shape {
        let count = |holds| self.checks.iter().filter(|check| check.holds == Some(holds)).count();
        match (count(true), count(false)) {
            _ if self.published.is_empty() => Shape::NothingPublished,
            (0, 0) => Shape::CannotBeSaid,
            (_, 0) => Shape::Reproduced,
            (0, _) => Shape::NotReproduced,
            _ => Shape::Partly,
        }
    }
}

impl Shape {
    pub fn words(self) -> &'static str {
        match self {
            Shape::Reproduced => "reproduced",
            Shape::Partly => "partly reproduced",
            Shape::NotReproduced => "not reproduced",
            Shape::CannotBeSaid => "cannot be said",
            Shape::NothingPublished => "nothing published",
        }
    }
}

/// What was published of a test, and whether the peers' cells here show it.
pub fn judge(test: &str, summary: &Summary) -> Judgement {
    let judge = Judge { summary };
    let (published, checks) = match test {
        "oltp" => (
            "Group Replication with EVENTUAL keeps 4 % of its lan throughput in two-regions at one \
             client of write_only, and 23 % at 256; DN keeps 49 % and 96 %. With AFTER it stays behind \
             EVENTUAL, the further the more clients: 2 % of it at 256. At a round trip of 10 ms, a Group \
             Replication with a log on disk has 21 % of asynchronous replication at 50 clients of \
             read_write, and 94 % at 500.",
            judge.oltp(),
        ),
        "jitter" => (
            "Throughput of Group Replication varies by 6 to 10 % from second to second, that of DN by \
             2.6 to 4.1 %.",
            judge.jitter(),
        ),
        "failover" => (
            "After a kill of the idle leader, Group Replication notices at 5 s, goes on at 23 s and has \
             three members again at 37 s; DN at 5, 8 and 15 s.",
            judge.failover(),
        ),
        "secondary" => (
            "Group Replication stops for about 20 s when a secondary is killed, and for 12 s when it \
             returns; after its redesign it dips to 70 % for 5 s. DN gains 20 % and stays available.",
            judge.secondary(),
        ),
        "rpo" => (
            "Group Replication with EVENTUAL loses the row that was committed; DN keeps it.",
            judge.rpo(),
        ),
        "replay" => (
            "The time until a replica of DN has everything is 3 to 4 % of that of Group Replication.",
            replay(),
        ),
        "tpcc" => (
            "The primary makes 546 transactions a second with asynchronous replication, 525 with \
             semi-synchronous and 461 with Group Replication, whose replicas end last: 561 s against \
             435 s and 414 s.",
            judge.tpcc(),
        ),
        "flow" => (
            "With flow control of Group Replication, the primary is the slower the lower the threshold: \
             273, 295 and 452 transactions a second at 100, 1000 and 10000.",
            judge.flow(),
        ),
        "scale" => (
            "Group Replication makes 2.8 times as much as Galera in read_write and 5.5 times in \
             update_index when durable, 1.8 and 1.6 times when not; 84 % and 60 % of asynchronous \
             replication.",
            judge.scale(),
        ),
        "large" => (
            "Group Replication refuses transactions above 143 MB by default, and above 2 GB at all; DN \
             has no such limit.",
            judge.large(),
        ),
        "persistence" => (
            "A redesigned Group Replication keeps 84 to 88 % of its throughput when its log is synced.",
            judge.persistence(),
        ),
        _ => ("", Vec::new()),
    };
    Judgement { published, checks }
}

struct Judge<'a> {
    summary: &'a Summary<'a>,
}

impl Judge<'_> {
    fn oltp(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for network in ["region", "two-regions", "three-regions"] {
            for clients in [1, 256] {
                let above = oltp(network, clients);
                let what =
                    format!("gr-eventual, share of its lan, {network}, {}", clients_words(clients));
                let pair = ((&above, "gr-eventual"), (&oltp("lan", clients), "gr-eventual"));
                checks.push(self.ratio(&what, "tps", pair));
            }
        }
        for clients in [1, 256] {
            let place = oltp("lan", clients);
            let what = format!("gr-after over gr-eventual, lan, {}", clients_words(clients));
            checks.push(self.ratio(&what, "tps", ((&place, "gr-after"), (&place, "gr-eventual"))));
        }
        for clients in [50, 500] {
            let place =
                Place { load: "read_write".into(), network: "10ms".into(), ..oltp("lan", clients) };
            let what = format!("gr-eventual over async, 10ms, {clients} clients, read_write");
            let published = ratio_of(
                published(&place, "gr-persisted", "tps"),
                published(&place, "async", "tps"),
            );
            let here = self.ratio_here("tps", ((&place, "gr-eventual"), (&place, "async")));
            checks.push(ratio_check(&what, published, here));
        }
        checks
    }

    fn jitter(&self) -> Vec<Check> {
        let networks = ["lan", "region", "two-regions", "three-regions"];
        let check = |network: &&str| {
            let place = place("jitter", network, "read_write", 256);
            self.value("gr-eventual", "cv_percent", &place, &format!("variation, {network}"), "%")
        };
        networks.iter().map(check).collect()
    }

    fn failover(&self) -> Vec<Check> {
        let place = place("failover", "lan", "kill idle", 0);
        [
            ("detect_s", "failure noticed"),
            ("write_again_s", "writes again"),
            ("back_to_three_s", "three members again"),
        ]
        .into_iter()
        .map(|(figure, what)| self.value("gr-eventual", figure, &place, what, "s"))
        .collect()
    }

    fn secondary(&self) -> Vec<Check> {
        [("kill", 20.0), ("restart", 12.0)]
            .into_iter()
            .map(|(load, seconds)| {
                let place = self.on_lan("secondary", |place| place.load == load);
                let here =
                    place.and_then(|place| self.summary.figure(place, "gr-eventual", "dip_s"));
                let what = format!("gr-eventual, dip after {load}");
                value_check(&what, Some(seconds), here, "s")
            })
            .collect()
    }

    fn rpo(&self) -> Vec<Check> {
        let place = self.on_lan("rpo", |_| true);
        let fact = place.and_then(|place| self.summary.fact(place, "gr-eventual", "row"));
        let here = match fact.as_deref() {
            None => NO_CELLS.to_owned(),
            Some("lost") => "row lost".to_owned(),
            // Published members were held before the row was on their disks.
            Some(fact) => format!("row {fact}: those that were held had received it"),
        };
        vec![Check {
            published: "gr-eventual: row lost".to_owned(),
            here,
            holds: (fact.as_deref() == Some("lost")).then_some(true),
        }]
    }

    fn tpcc(&self) -> Vec<Check> {
        let place = place("tpcc", "lan", "tpcc", 32);
        let check = |what: &str, figure, above| {
            self.ratio(what, figure, ((&place, above), (&place, "async")))
        };
        vec![
            check("semisync over async, primary", "tps", "semisync"),
            check("gr-eventual over async, primary", "tps", "gr-eventual"),
            check("gr-eventual over async, last replica", "replica_elapsed_s", "gr-eventual"),
        ]
    }

    fn flow(&self) -> Vec<Check> {
        let at = |threshold: u32| place("flow", "lan", &format!("threshold {threshold}"), 0);
        [100, 1000]
            .into_iter()
            .map(|threshold| {
                let what = format!("gr-eventual, threshold {threshold} over 10000");
                let pair = ((&at(threshold), "gr-eventual"), (&at(10_000), "gr-eventual"));
                self.ratio(&what, "tps", pair)
            })
            .collect()
    }

    fn scale(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for load in ["read_write", "update_index"] {
            for kind in ["durable", "relaxed"] {
                let place = place("scale", "lan", &format!("{load} {kind}"), 0);
                let what = format!("gr-eventual over galera, {load} {kind}");
                let pair = ((&place, "gr-eventual"), (&place, "galera"));
                checks.push(self.ratio(&what, "best_tps", pair));
            }
        }
        for (load, name) in [("read_write", "oltp_rw"), ("update_index", "update_index")] {
            let place = place("scale", "lan", &format!("{load} durable"), 0);
            let here = self.ratio_here("best_tps", ((&place, "gr-eventual"), (&place, "async")));
            let published = PUBLISHED.scale.gr_share_of_async.get(name).copied();
            let what = format!("gr-eventual over async, {load} durable");
            checks.push(ratio_check(&what, published, here));
        }
        checks
    }

    /// Of a Group Replication that has been redesigned, with a log on disk. That of MySQL has none, and what is taken
    /// away here are the syncs of its servers: that can be looked at, but shows nothing.
    fn persistence(&self) -> Vec<Check> {
        let at = |load: &str, clients| place("persistence", "lan", load, clients);
        let check = |clients: u32| {
            let (synced, unsynced) = (at("log synced", clients), at("log unsynced", clients));
            let of = |place| published(place, "gr-redesigned", "tps");
            let pair = ((&synced, "gr-eventual"), (&unsynced, "gr-eventual"));
            let what = format!("log synced over unsynced, {}", clients_words(clients));
            let published = ratio_of(of(&synced), of(&unsynced));
            Check { holds: None, ..ratio_check(&what, published, self.ratio_here("tps", pair)) }
        };
        [50, 100].map(check).into()
    }

    fn large(&self) -> Vec<Check> {
        let place = self.on_lan("large", |place| place.load.ends_with("GB"));
        let cells = place.map_or(&[][..], |place| self.summary.cells(place, "gr-eventual"));
        let (here, holds) = match cells {
            [] => (NO_CELLS, None),
            cells if cells.iter().all(|cell| is_refused(cell)) => ("refused", Some(true)),
            cells if cells.iter().any(|cell| cell.failed.is_none()) => ("done", Some(false)),
            _ => ("failed otherwise", None),
        };
        vec![Check {
            published: "gr-eventual refuses 1 GB".to_owned(),
            here: here.to_owned(),
            holds,
        }]
    }

    /// The ratio between two published figures beside the one here.
    fn ratio(&self, what: &str, figure: &str, pair: ((&Place, &str), (&Place, &str))) -> Check {
        let (above, below) = pair;
        let theirs =
            ratio_of(published(above.0, above.1, figure), published(below.0, below.1, figure));
        ratio_check(what, theirs, self.ratio_here(figure, pair))
    }

    /// Between two figures here, each at the place that is near.
    fn ratio_here(
        &self,
        figure: &str,
        (above, below): ((&Place, &str), (&Place, &str)),
    ) -> Option<Spread> {
        let (above, below) = ((self.near(above.0)?, above.1), (self.near(below.0)?, below.1));
        self.summary.ratio_between(above, below, figure)
    }

    /// A figure that does not depend on how fast a machine is, as it is.
    fn value(&self, system: &str, figure: &str, place: &Place, what: &str, unit: &str) -> Check {
        let here = self.near(place).and_then(|place| self.summary.figure(place, system, figure));
        let what = format!("{system}, {what}");
        value_check(&what, published(place, system, figure), here, unit)
    }

    /// The first such place of a test on the network that was published.
    fn on_lan(&self, test: &str, is_meant: impl Fn(&Place) -> bool) -> Option<&Place> {
        self.summary.places(test).find(|place| place.network == "lan" && is_meant(place))
    }

    /// The place that was measured and is the same but for the number of clients, if that is near; 0
    /// stands for any.
    fn near(&self, place: &Place) -> Option<&Place> {
        let away = |found: &&Place| match (found.clients, place.clients) {
            (_, 0) => 1.0,
            (here, there) => (f64::from(here) / f64::from(there)).ln().abs().exp(),
        };
        self.summary
            .places(&place.test)
            .filter(|found| Place { clients: place.clients, ..(*found).clone() } == *place)
            .filter(|found| away(found) <= NEAR)
            .min_by(|one, other| away(one).total_cmp(&away(other)))
    }
}

/// It compares DN, which is not among the systems here.
fn replay() -> Vec<Check> {
    let [least, most] = PUBLISHED.replay.dn_over_gr_percent;
    vec![Check {
        published: format!("dn over gr-eventual, last replica: {least} to {most} %"),
        here: "DN is not measured here".to_owned(),
        holds: None,
    }]
}

/// Whether the limit on transactions has ended it: Group Replication says no more to the client than that its
/// hook before the commit has failed.
fn is_refused(cell: &Cell) -> bool {
    const HOOK_FAILED: &str = "ERROR 3100 ";
    const LIMIT: &str = "group_replication_transaction_size_limit";
    let reason = cell.failed.as_deref().unwrap_or_default();
    reason.contains(HOOK_FAILED) || reason.contains(LIMIT)
}

const NO_CELLS: &str = "no cells";

fn place(test: &str, network: &str, load: &str, clients: u32) -> Place {
    let (test, network, load) = (test.to_owned(), network.to_owned(), load.to_owned());
    Place { test, network, members: 3, load, clients }
}

fn oltp(network: &str, clients: u32) -> Place {
    place("oltp", network, "write_only", clients)
}

fn published(place: &Place, system: &str, figure: &str) -> Option<f64> {
    let mut rows = rows().iter();
    let row = rows.find(|row| row.place == *place && row.system == system && row.figure == figure);
    row.map(|row| row.value)
}

fn ratio_of(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    Some(above? / below?)
}

fn ratio_check(what: &str, published: Option<f64>, here: Option<Spread>) -> Check {
    let show = |ratio: f64| match ratio {
        ratio if ratio < 1.0 => format!("{:.0} %", ratio * 100.0),
        ratio => format!("{ratio:.1}×"),
    };
    // Between 1 and the published ratio, the middle is where it turns.
    let near = |theirs: f64| (theirs.ln().abs() / 2.0).clamp(NEARLY.ln(), FACTOR.ln());
    check(what, published, here, near, show)
}

fn value_check(what: &str, published: Option<f64>, here: Option<Spread>, unit: &str) -> Check {
    check(what, published, here, |_| FACTOR.ln(), |value| format!("{value:.1} {unit}"))
}

/// `near`: how far the logarithm of what is here may be from that of what was published.
fn check(
    what: &str,
    published: Option<f64>,
    here: Option<Spread>,
    near: impl Fn(f64) -> f64,
    show: impl Fn(f64) -> String,
) -> Check {
    let holds = |theirs: f64, ours: f64| (ours / theirs).ln().abs() <= near(theirs);
    Check {
        published: match published {
            Some(value) => format!("{what}: {}", show(value)),
            None => what.to_owned(),
        },
        here: here.map_or_else(|| NO_CELLS.to_owned(), |here| show(here.median)),
        holds: published.zip(here).map(|(theirs, ours)| holds(theirs, ours.median)),
    }
}

#[cfg(test)]
mod tests;
