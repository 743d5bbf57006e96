//! The tests, each named after what it repeats.

mod conflicts;
mod dip;
mod failover;
mod jitter;
mod large;
mod latency;
mod oltp;
mod rpo;
mod secondary;
mod tpcc;

use crate::drive::sysbench::{self, Load, Tables};
use crate::fleet::Fleet;
use crate::meter::{Meter, Used};
use crate::plan::{Asked, Grid, Point};
use crate::record::Place;
use crate::system::System;
use anyhow::{bail, Context, Result};
use std::cell::Cell as Once;
use std::collections::BTreeMap;
use std::time::Duration;

/// A test of the suite.
pub trait Test: Sync {
    fn name(&self) -> &'static str;

    /// What is done, in a line.
    fn about(&self) -> &'static str;

    /// An error that says what is missing on this machine, and how to get it.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Its grid on one network.
    fn points(&self, scale: &Scale) -> Vec<Point>;

    /// What a point takes, about.
    fn each(&self, scale: &Scale, point: &Point) -> Duration;

    /// Whether members are hurt. They are whole again afterwards, or the cell has failed.
    fn harms(&self) -> bool {
        false
    }

    /// Whether nothing can be measured on its fleet afterwards.
    fn spends(&self) -> bool {
        false
    }

    /// Whether it is measured on all networks, rather than on the first.
    fn is_everywhere(&self, _scale: &Scale) -> bool {
        true
    }

    /// Whether a system can do what is done at a place; it has no cell there if not.
    fn is_for(&self, _system: &dyn System, _place: &Place) -> bool {
        true
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found>;
}

/// All tests, in the order in which they are shown.
pub const ALL: [&dyn Test; 9] = [
    &oltp::Oltp,
    &jitter::Jitter,
    &failover::Failover,
    &secondary::Secondary,
    &rpo::Rpo,
    &tpcc::Tpcc,
    &latency::Latency,
    &large::Large,
    &conflicts::Conflicts,
];

/// The test of this name.
pub fn named(name: &str) -> Result<&'static dyn Test> {
    match ALL.into_iter().find(|test| test.name() == name) {
        Some(test) => Ok(test),
        None => {
            let names: Vec<&str> = ALL.iter().map(|test| test.name()).collect();
            bail!("no test {name:?}; there are {}", names.join(", "))
        }
    }
}

/// What the command line says of all tests.
#[derive(Clone, Debug)]
pub struct Scale {
    pub grid: Grid,
    /// Of a steady load.
    pub time: Duration,
    /// In the place of a test's own numbers of clients.
    pub clients: Option<Vec<u32>>,
    pub tables: Tables,
}

impl Scale {
    /// The test's own numbers of clients by grid, unless others were asked for.
    fn clients(&self, quick: &[u32], usual: &[u32], full: &[u32]) -> Vec<u32> {
        self.clients.clone().unwrap_or_else(|| match self.grid {
            Grid::Quick => quick.to_vec(),
            Grid::Default => usual.to_vec(),
            Grid::Full => full.to_vec(),
        })
    }
}

/// A test with its points, for the plan.
pub fn ask(test: &dyn Test, scale: &Scale) -> Asked {
    let timed = |point: Point| {
        let takes = test.each(scale, &point);
        (point, takes)
    };
    let points = test.points(scale).into_iter().map(timed);
    Asked { test: test.name(), points: points.collect(), harms: test.harms() }
}

/// Where a test is carried out: a system that runs.
pub struct Site<'a> {
    pub fleet: &'a Fleet,
    pub scale: &'a Scale,
    /// Whether the fleet has the tables of sysbench.
    pub filled: &'a Once<bool>,
}

impl Site<'_> {
    /// The tables of sysbench, filled once in the life of a fleet.
    fn tables(&self) -> Result<Tables> {
        if !self.filled.replace(true) {
            sysbench::prepare(self.fleet, self.scale.tables)?;
        }
        Ok(self.scale.tables)
    }

    /// The place's load by sysbench, through the primary: figures, costs, and the curve of throughput.
    fn sysbench(&self, place: &Place, time: Duration) -> Result<Found> {
        let tables = self.tables()?;
        let primary = self.fleet.primary().context("no member is the primary")?;
        let script = format!("oltp_{}", place.load);
        let load = Load {
            script: &script,
            clients: place.clients,
            seconds: time.as_secs() as u32,
            members: &[primary],
        };
        let outcome = sysbench::run(self.fleet, &Meter::new(self.fleet), tables, &load)?;
        let mut found = Found::default();
        let report = outcome.report;
        for (name, value) in
            [("tps", report.tps), ("avg_ms", report.average_ms), ("p95_ms", report.p95_ms)]
        {
            found.figures.insert(name.into(), value);
        }
        found.set_costs(&outcome.used, report.transactions);
        found.curves.insert("tps".into(), report.curve);
        Ok(found)
    }
}

/// What a measurement has found; the rest of a cell is known before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub figures: BTreeMap<String, f64>,
    pub curves: BTreeMap<String, Vec<(f64, f64)>>,
    pub events: Vec<(f64, String)>,
    pub facts: BTreeMap<String, String>,
}

impl Found {
    /// What a transaction costs; what could not be counted stands among the facts, with its reason.
    fn set_costs(&mut self, used: &Used, transactions: f64) {
        let each = |sum: f64| sum / transactions.max(1.0);
        self.figures.insert("net_bytes_per_trx".into(), each(used.bytes));
        let cpu = used.cpu_s.clone().map(|seconds| seconds * 1e6);
        for (name, sum) in [("cpu_us_per_trx", cpu), ("syncs_per_trx", used.syncs.clone())] {
            match sum {
                Ok(sum) => drop(self.figures.insert(name.into(), each(sum))),
                Err(reason) => drop(self.facts.insert(name.into(), reason)),
            }
        }
    }

    /// The median, as `commit_us`, and what is slower.
    fn set_percentiles(&mut self, mut times: Vec<Duration>) {
        times.sort_unstable();
        let Some(last) = times.len().checked_sub(1) else { return };
        let at = |share: f64| times[(last as f64 * share).round() as usize].as_secs_f64();
        self.figures.insert("commit_us".into(), at(0.5) * 1e6);
        for (name, share) in [("p95_ms", 0.95), ("p99_ms", 0.99), ("max_ms", 1.0)] {
            self.figures.insert(name.into(), at(share) * 1e3);
        }
    }
}

/// Whether the system has as many members as the place asks for: one that is alone has nobody who could be
/// behind.
fn replicates(system: &dyn System, place: &Place) -> bool {
    place.members > 1 && system.members(place.members) == place.members
}
