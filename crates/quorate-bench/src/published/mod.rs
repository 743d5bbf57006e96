//! What others have published: figures with their set-ups, and whether the peers here show the same.
//!
//! * [`rows`]: the figures, by the place of a test's grid where they belong.
//! * [`judge`]: what shape they have, and whether the peers' figures here have it, too.
//!
//! Their machines were larger than most, so figures are not compared but the *shape*: ratios between
//! systems, networks and numbers of clients.

mod shape;

pub use shape::{judge, Check, Judgement, Shape};

use crate::record::Place;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Systems by what is to be read of them, in the order of [`Oltp::clients`] and such.
type BySystem<T> = BTreeMap<String, T>;

#[derive(Debug, Deserialize)]
struct Published {
    oltp: Oltp,
    jitter: Jitter,
    failover: Failover,
    secondary: Words,
    rpo: Words,
    replay: Replay,
    tpcc: Tpcc,
    flow: Flow,
    scale: Scale,
    persistence: Persistence,
    ten_ms: TenMs,
}

#[derive(Debug, Deserialize)]
struct Oltp {
    setup: String,
    clients: Vec<u32>,
    /// By network and sysbench's name of the load.
    tps: BTreeMap<String, BTreeMap<String, BySystem<Vec<f64>>>>,
}

#[derive(Debug, Deserialize)]
struct Jitter {
    setup: String,
    cv_percent: BySystem<BTreeMap<String, f64>>,
}

/// Seconds until the failure was found, writes went on, all were back.
#[derive(Debug, Deserialize)]
struct Failover {
    setup: String,
    gr: [f64; 3],
    dn: [f64; 3],
}

/// What was told in words: only its set-up is shown, [`shape`] has the words.
#[derive(Debug, Deserialize)]
struct Words {
    setup: String,
}

#[derive(Debug, Deserialize)]
struct Replay {
    setup: String,
    /// DN's time as a share of that of Group Replication, from least to most.
    dn_over_gr_percent: [f64; 2],
}

#[derive(Debug, Deserialize)]
struct Tpcc {
    setup: String,
    #[serde(flatten)]
    systems: BySystem<TpccFigures>,
}

#[derive(Debug, Deserialize)]
struct TpccFigures {
    primary_tps: f64,
    replica_elapsed_s: OfReplicas,
}

#[derive(Debug, Deserialize)]
struct Flow {
    setup: String,
    thresholds: Vec<u32>,
    primary_tps: Vec<f64>,
    replica_elapsed_s: Vec<OfReplicas>,
}

/// Of two replicas.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum OfReplicas {
    Both(f64),
    Each([f64; 2]),
}

impl OfReplicas {
    fn first(self) -> f64 {
        match self {
            OfReplicas::Both(seconds) => seconds,
            OfReplicas::Each([first, second]) => first.min(second),
        }
    }

    fn last(self) -> f64 {
        match self {
            OfReplicas::Both(seconds) => seconds,
            OfReplicas::Each([first, second]) => first.max(second),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Scale {
    setup: String,
    oltp_rw: BySystem<Durabilities>,
    update_index: BySystem<Durabilities>,
    /// By load.
    gr_share_of_async: BTreeMap<String, f64>,
}

#[derive(Debug, Deserialize)]
struct Durabilities {
    durable: f64,
    relaxed: f64,
}

#[derive(Debug, Deserialize)]
struct Persistence {
    setup: String,
    clients: Vec<u32>,
    tps: BySystem<Vec<Option<f64>>>,
    response_ms: BySystem<Vec<Option<f64>>>,
}

#[derive(Debug, Deserialize)]
struct TenMs {
    setup: String,
    #[serde(rename = "async")]
    asynchronous: BTreeMap<String, f64>,
    #[serde(rename = "gr-persisted")]
    gr_persisted: BTreeMap<String, f64>,
}

static PUBLISHED: LazyLock<Published> = LazyLock::new(|| {
    serde_json::from_str(include_str!("published.json")).expect("the crate's own file")
});

/// A published figure, at the place of the grid where it belongs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub place: Place,
    /// Named as here, where it runs here as well; `dn` does not.
    pub system: String,
    /// See [`crate::record::figure`].
    pub figure: &'static str,
    pub value: f64,
}

/// All of them.
pub fn rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| PUBLISHED.rows());
    &ROWS
}

/// Those of one place; a number of clients of 0 stands for any.
pub fn rows_at(place: &Place) -> impl Iterator<Item = &'static Row> + '_ {
    rows().iter().filter(move |row| {
        let (here, there) = (place, &row.place);
        here.test == there.test
            && here.network == there.network
            && here.load == there.load
            && here.members == there.members
            && (here.clients == there.clients || there.clients == 0)
    })
}

/// How a test's published figures were measured.
pub fn setups(test: &str) -> Vec<&'static str> {
    let published = &*PUBLISHED;
    match test {
        "oltp" => vec![&published.oltp.setup, &published.ten_ms.setup],
        "jitter" => vec![&published.jitter.setup],
        "failover" => vec![&published.failover.setup],
        "secondary" => vec![&published.secondary.setup],
        "rpo" => vec![&published.rpo.setup],
        "replay" => vec![&published.replay.setup],
        "tpcc" => vec![&published.tpcc.setup],
        "flow" => vec![&published.flow.setup],
        "scale" => vec![&published.scale.setup],
        "persistence" => vec![&published.persistence.setup],
        _ => Vec::new(),
    }
}

impl Published {
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut add = |test: &str, at: (&str, &str, u32), system: &str, figure, value: f64| {
            let (network, load, clients) = at;
            let (test, network, load) = (test.to_owned(), network.to_owned(), load.to_owned());
            let place = Place { test, network, members: 3, load, clients };
            rows.push(Row { place, system: system.to_owned(), figure, value });
        };
        for (network, loads) in &self.oltp.tps {
            for (load, systems) in loads {
                let load = load.trim_start_matches("oltp_");
                for (system, values) in systems {
                    for (clients, value) in self.oltp.clients.iter().zip(values) {
                        add("oltp", (network, load, *clients), system, "tps", *value);
                    }
                }
            }
        }
        for (system, clients) in
            [("async", &self.ten_ms.asynchronous), ("gr-persisted", &self.ten_ms.gr_persisted)]
        {
            for (number, value) in clients {
                let number = number.parse().unwrap_or(0);
                add("oltp", ("10ms", "read_write", number), system, "tps", *value);
            }
        }
        for (system, networks) in &self.jitter.cv_percent {
            for (network, value) in networks {
                add("jitter", (network, "read_write", 256), system, "cv_percent", *value);
            }
        }
        for (system, values) in [("gr-eventual", self.failover.gr), ("dn", self.failover.dn)] {
            for (figure, value) in
                ["detect_s", "write_again_s", "back_to_three_s"].into_iter().zip(values)
            {
                add("failover", ("lan", "kill idle", 0), system, figure, value);
            }
        }
        for (system, figures) in &self.tpcc.systems {
            let system = if system == "gr" { "gr-eventual" } else { system };
            let elapsed = figures.replica_elapsed_s;
            for (figure, value) in [
                ("tps", figures.primary_tps),
                ("first_replica_s", elapsed.first()),
                ("replica_elapsed_s", elapsed.last()),
            ] {
                add("tpcc", ("lan", "tpcc", 32), system, figure, value);
            }
        }
        let flow = self.flow.primary_tps.iter().zip(&self.flow.replica_elapsed_s);
        for (threshold, (tps, elapsed)) in self.flow.thresholds.iter().zip(flow) {
            let load = format!("threshold {threshold}");
            add("flow", ("lan", &load, 0), "gr-eventual", "tps", *tps);
            add("flow", ("lan", &load, 0), "gr-eventual", "replica_elapsed_s", elapsed.last());
        }
        for (load, systems) in
            [("read_write", &self.scale.oltp_rw), ("update_index", &self.scale.update_index)]
        {
            for (system, rates) in systems {
                let system = if system == "gr" { "gr-eventual" } else { system };
                for (kind, rate) in [("durable", rates.durable), ("relaxed", rates.relaxed)] {
                    let load = format!("{load} {kind}");
                    add("scale", ("lan", &load, 0), system, "best_tps", rate);
                }
            }
        }
        for (figure, systems) in
            [("tps", &self.persistence.tps), ("avg_ms", &self.persistence.response_ms)]
        {
            for (kind, values) in systems {
                let load = if kind == "persisted" { "log synced" } else { "log unsynced" };
                for (clients, value) in self.persistence.clients.iter().zip(values) {
                    let Some(value) = value else { continue };
                    add("persistence", ("lan", load, *clients), "gr-redesigned", figure, *value);
                }
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::figure;

    fn at(test: &str, network: &str, load: &str, clients: u32) -> Place {
        let (test, network, load) = (test.into(), network.into(), load.into());
        Place { test, network, members: 3, load, clients }
    }

    #[test]
    fn figures_stand_where_they_were_published() {
        let found = |place: &Place, system: &str, figure: &str| {
            rows_at(place).find(|row| row.system == system && row.figure == figure).unwrap().value
        };
        let place = at("oltp", "two-regions", "write_only", 256);
        assert_eq!(found(&place, "gr-eventual", "tps"), 3705.51);
        assert_eq!(found(&place, "dn", "tps"), 14478.38);
        let tpcc = at("tpcc", "lan", "tpcc", 32);
        let semisync = ["tps", "first_replica_s", "replica_elapsed_s"]
            .map(|figure| found(&tpcc, "semisync", figure));
        assert_eq!(semisync, [525.0, 361.0, 414.0]);
        let flow = at("flow", "lan", "threshold 10000", 16);
        assert_eq!(found(&flow, "gr-eventual", "tps"), 452.0);
        assert_eq!(found(&flow, "gr-eventual", "replica_elapsed_s"), 556.0);
        assert_eq!(found(&at("oltp", "10ms", "read_write", 500), "gr-persisted", "tps"), 22600.0);
    }

    #[test]
    fn every_published_figure_is_one_that_tests_report() {
        for row in rows() {
            assert!(figure::named(row.figure).is_some(), "{row:?}");
            assert!(!setups(&row.place.test).is_empty(), "{row:?}");
        }
        assert_eq!(rows().len(), 180 + 4 + 8 + 6 + 15 + 6 + 8 + 4 + 8);
    }
}
