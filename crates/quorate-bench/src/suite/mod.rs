//! The tests, each named after what it repeats.

mod conflicts;
mod dip;
mod failover;
mod flow;
mod found;
mod jitter;
mod large;
mod latency;
mod oltp;
mod persistence;
mod profiled;
mod replay;
mod rpo;
mod scale;
mod secondary;
mod tpcc;

pub use found::Found;

use crate::drive::sysbench::{self, Load, Outcome, Tables, CATCH_UP_LIMIT};
use crate::fleet::Fleet;
use crate::meter::Meter;
use crate::plan::{Asked, Grid, Point};
use crate::record::{Cell, Place};
use crate::system::System;
use anyhow::{bail, Result};
use quorate_lab::net::Topology;
use quorate_lab::process::Syncs;
use std::cell::Cell as Once;
use std::fmt::Display;
use std::path::PathBuf;
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

    /// Whether another member leads afterwards: what comes next has a new fleet.
    fn moves_primary(&self, _system: &dyn System) -> bool {
        false
    }

    /// Whether it is measured on all networks, rather than on the first.
    fn is_everywhere(&self, scale: &Scale) -> bool {
        scale.grid == Grid::Full
    }

    /// Where else it is measured, unless networks were asked for.
    fn further_networks(&self, _grid: Grid) -> &'static [Topology] {
        &[]
    }

    /// Whether it takes the tables of sysbench.
    fn fills(&self) -> bool {
        true
    }

    /// What is otherwise at this scale than in what was published.
    fn differs(&self, _scale: &Scale) -> Option<String> {
        None
    }

    /// What the default grid measures, of systems that nobody has named: all, or those that say something here.
    fn usual_systems(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Whether a system can do what is done at a place; it has no cell there if not.
    fn is_for(&self, _system: &dyn System, _place: &Place) -> bool {
        true
    }

    /// Whether a cell of an earlier run has what this one is to have.
    fn has_all(&self, _cell: &Cell, _scale: &Scale) -> bool {
        true
    }

    /// Whether the servers that it is measured on sync.
    fn syncs(&self, _place: &Place) -> Syncs {
        Syncs::Done
    }

    fn measure(&self, site: &Site, place: &Place) -> Result<Found>;

    /// Takes away what would be in the way of whatever is measured next.
    fn clear(&self, _fleet: &Fleet) -> Result<()> {
        Ok(())
    }
}

/// `10000 and 50000`.
fn listed<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" and ")
}

/// All tests, in the order in which they are shown.
pub const ALL: [&dyn Test; 13] = [
    &oltp::Oltp,
    &jitter::Jitter,
    &failover::Failover,
    &secondary::Secondary,
    &rpo::Rpo,
    &replay::Replay,
    &scale::ScaleOut,
    &tpcc::Tpcc,
    &latency::Latency,
    &large::Large,
    &persistence::Persistence,
    &conflicts::Conflicts,
    &flow::Flow,
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
    /// Where tests that can profile write what they found, if that is asked for.
    pub profiles: Option<PathBuf>,
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

/// Of what was published with sysbench.
const PUBLISHED_TABLES: Tables = Tables { count: 16, rows: 10_000_000 };

/// What is otherwise in a load of sysbench: its tables, how long a cell takes, which rows are chosen, and what they are
/// on.
fn differ_tables(scale: &Scale, time: Duration) -> Option<String> {
    let (tables, published, seconds) = (scale.tables, PUBLISHED_TABLES, time.as_secs());
    let how = "all rows equally often, a buffer pool of 128 MiB, all members on one machine";
    Some(match tables == published {
        true => format!("{seconds} s a cell, {how}"),
        false => {
            format!("{tables} rows, {seconds} s a cell, {how}; published with {published} rows")
        }
    })
}

/// Each load with each number of clients, on three members.
fn grid(loads: impl IntoIterator<Item = impl Display>, clients: &[u32]) -> Vec<Point> {
    let of_load = |load: String| {
        clients.iter().map(move |clients| Point {
            members: 3,
            load: load.clone(),
            clients: *clients,
        })
    };
    loads.into_iter().flat_map(|load| of_load(load.to_string())).collect()
}

/// A test with its points, for the plan.
pub fn ask(test: &dyn Test, scale: &Scale) -> Asked {
    let timed = |point: Point| {
        let takes = test.each(scale, &point);
        (point, takes)
    };
    let points = test.points(scale).into_iter().map(timed);
    Asked {
        test: test.name(),
        points: points.collect(),
        harms: test.harms(),
        spends: test.spends(),
    }
}

/// Where a test is carried out: a system that runs.
pub struct Site<'a> {
    pub fleet: &'a Fleet,
    pub scale: &'a Scale,
    pub round: u32,
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

    /// A load by sysbench, through the primary: figures, costs, and the curve of throughput.
    fn steady(&self, load: &str, clients: u32, time: Duration) -> Result<Found> {
        self.steady_at(&[self.fleet.primary()?], load, clients, time)
    }

    /// The same with the clients spread over these members.
    fn steady_at(
        &self,
        members: &[usize],
        load: &str,
        clients: u32,
        time: Duration,
    ) -> Result<Found> {
        let outcome = self.outcome_at(members, load, clients, time)?;
        let mut found = Found::default();
        found.set_report(&outcome.report);
        found.set_behind(outcome.behind, CATCH_UP_LIMIT, &outcome.used, &outcome.report);
        Ok(found)
    }

    /// The same, as sysbench tells it.
    fn outcome_at(
        &self,
        members: &[usize],
        load: &str,
        clients: u32,
        time: Duration,
    ) -> Result<Outcome> {
        let tables = self.tables()?;
        let script = format!("oltp_{load}");
        let load = Load { script: &script, clients, seconds: time.as_secs() as u32, members };
        sysbench::run(self.fleet, &Meter::new(self.fleet), tables, &load)
    }
}

/// Whether the system has as many members as the place asks for: one that is alone has nobody who could be
/// behind.
fn replicates(system: &dyn System, place: &Place) -> bool {
    place.members > 1 && system.members(place.members) == place.members
}
