//! A run: the visits of a plan, one after the other, each cell kept as soon as it is measured.
//!
//! A cell that fails is kept with its reason, and ends nothing: the next one begins with a new fleet.
//!
//! * `fleets`: the systems that run, and one cell on one of them. `estimate`: how long all takes.
//! * [`build_id`]: of what is measured.

mod build;
mod estimate;
mod fleets;

pub use build::build_id;

use crate::meter;
use crate::plan::{self, Grid, Step, Visit};
use crate::record::{Cell, Key, Place, Results, Run, Settings, Store};
use crate::suite::{self, Scale, Test};
use crate::system::System;
use anyhow::{ensure, Context, Result};
use fleets::Fleets;
use quorate_lab::leftovers;
use quorate_lab::net::Topology;
use quorate_lab::process::Syncs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What to do about a folder that has figures which were measured otherwise.
const ELSEWHERE: &str = "choose another --out (make bench: OUT=DIR), or remove that folder";

/// Loads that are worth the start of a system's servers and the filling of its tables.
const WORTH: Duration = Duration::from_secs(120);

/// Fleets that may stand for each other, whatever their network: system, number of members, and whether they
/// sync.
type Kind = (String, usize, Syncs);

/// What is to be measured.
pub struct Wish {
    pub tests: Vec<&'static dyn Test>,
    pub systems: Vec<Arc<dyn System>>,
    /// Whether somebody has named the systems: then each test is measured on all of them.
    pub named: bool,
    /// None: those of the grid, and those that a test has besides.
    pub networks: Option<Vec<Topology>>,
    pub rounds: u32,
    pub scale: Scale,
    /// Fleets live on from visit to visit, where nobody was hurt.
    pub reuse: bool,
}

impl Wish {
    fn system(&self, name: &str) -> Result<&Arc<dyn System>> {
        let system = self.systems.iter().find(|system| system.name() == name);
        system.with_context(|| format!("{name} was not asked for"))
    }

    /// What each test takes, about.
    pub fn takes(&self) -> BTreeMap<String, Duration> {
        estimate::by_test(self, &self.plan(&BTreeSet::new()))
    }

    /// What is measured of the networks before, about.
    pub fn networks_take(&self) -> Duration {
        self.all_networks().into_iter().map(meter::takes).sum()
    }

    /// By test.
    pub fn settings(&self, build: &str) -> BTreeMap<String, Settings> {
        let scale = &self.scale;
        let of_test = |test: &&'static dyn Test| {
            let settings = Settings {
                grid: scale.grid.name().to_owned(),
                seconds: scale.time.as_secs(),
                tables: scale.tables.to_string(),
                build: build.to_owned(),
                differs: test.differs(scale),
            };
            (test.name().to_owned(), settings)
        };
        self.tests.iter().map(of_test).collect()
    }

    /// All that is not done yet.
    fn plan(&self, done: &BTreeSet<Key>) -> Vec<Visit> {
        let systems: Vec<_> = self.systems.iter().map(|system| system.name().to_owned()).collect();
        let networks: Vec<_> = self.all_networks().iter().map(Topology::to_string).collect();
        let asked: Vec<_> = self.tests.iter().map(|test| suite::ask(*test, &self.scale)).collect();
        let has = |(place, system, _): &Key| self.is_for(system, place);
        let worth = if self.reuse { Duration::ZERO } else { WORTH };
        let visits = plan::lay_out(&asked, (&systems, &networks), 1..=self.rounds, worth, has);
        plan::without(visits, |key| done.contains(key))
    }

    /// Whether nothing of what is asked for now is missing in a cell.
    fn has_all(&self, cell: &Cell) -> bool {
        let of_cell = |test: &&&dyn Test| test.name() == cell.place.test;
        self.tests.iter().find(of_cell).is_none_or(|test| test.has_all(cell, &self.scale))
    }

    /// An error if there is no cell at all.
    fn check(&self) -> Result<()> {
        let tests = self.tests.iter().map(|test| test.name()).collect::<Vec<_>>().join(", ");
        let systems =
            self.systems.iter().map(|system| system.name()).collect::<Vec<_>>().join(", ");
        let networks = self.all_networks().iter().map(Topology::to_string).collect::<Vec<_>>();
        ensure!(
            !self.plan(&BTreeSet::new()).is_empty(),
            "none of what was asked for can be measured: tests {tests}; systems {systems}; networks {}. \
             Some tests are for some networks or systems only: docs/bench.md says which",
            networks.join(", ")
        );
        Ok(())
    }

    /// Where a test is measured.
    fn networks_of(&self, test: &dyn Test) -> Vec<Topology> {
        let grid = self.scale.grid;
        let mut networks = self.networks.clone().unwrap_or_else(|| grid.networks().to_vec());
        if !test.is_everywhere(&self.scale) {
            networks.truncate(1);
        } else if self.networks.is_none() {
            let known = networks.clone();
            let further = test.further_networks(grid).iter();
            networks.extend(further.filter(|network| !known.contains(network)));
        }
        networks
    }

    /// Of all tests.
    fn all_networks(&self) -> Vec<Topology> {
        let mut networks = Vec::new();
        for network in self.tests.iter().flat_map(|test| self.networks_of(*test)) {
            if !networks.contains(&network) {
                networks.push(network);
            }
        }
        networks
    }

    /// Whether the grid has a place, and a system can do what is done there.
    fn is_for(&self, system: &str, place: &Place) -> bool {
        let test = self.tests.iter().find(|test| test.name() == place.test);
        let (Some(test), Ok(system)) = (test, self.system(system)) else { return false };
        let networks = self.networks_of(*test);
        networks.iter().any(|network| network.to_string() == place.network)
            && (self.named || self.is_usual(*test, &**system))
            && test.is_for(&**system, place)
    }

    /// Whether a system is measured where none are named.
    fn is_usual(&self, test: &dyn Test, system: &dyn System) -> bool {
        self.scale.grid != Grid::Default
            || test.usual_systems().is_none_or(|usual| usual.contains(&system.name()))
    }
}

/// How far a run is.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Of the plan, by time.
    pub done: Duration,
    pub all: Duration,
    /// What is measured now.
    pub now: String,
}

/// Measures what is not in `folder` yet. `run` is completed by what is only known once systems run, and by
/// what the folder tells of earlier times.
pub fn run(wish: &Wish, run: &mut Run, folder: &Path, live: &dyn Fn(&Live)) -> Result<()> {
    wish.check()?;
    let mut done = BTreeSet::new();
    let begin = Instant::now();
    if Store::exists(folder) {
        let former = Results::read(folder)?;
        former.check(&run.machine, &run.settings).with_context(|| {
            let folder = folder.display();
            format!("{folder} has other figures, and nothing was measured: {ELSEWHERE}")
        })?;
        done = former.done();
        for cell in former.cells.iter().filter(|cell| !wish.has_all(cell)) {
            done.remove(&cell.key());
        }
        *run = run.clone().after(former.run);
    }
    let mut store = Store::open(folder, run)?;
    for network in wish.all_networks() {
        if !run.networks.iter().any(|known| known.name == network.to_string()) {
            run.networks.push(meter::measure(network)?);
        }
    }
    let visits = wish.plan(&done);
    let times = estimate::steps(wish, &visits);
    let mut at = Live { all: times.iter().flatten().sum(), ..Live::default() };
    let measured = done.iter().map(|(_, system, _)| system.clone()).collect();
    let mut fleets = Fleets::new(wish, measured);
    for (visit, times) in visits.iter().zip(&times) {
        for (Step { place, .. }, takes) in visit.steps.iter().zip(times) {
            let words = place.words();
            at.now = format!("round {}: {}, {words}, {}", visit.round, place.test, visit.system);
            live(&at);
            let began = SystemTime::now().duration_since(UNIX_EPOCH).context("the time of day")?;
            let mut cell = fleets.measure(visit, place, run)?;
            cell.began_s = began.as_secs();
            // A cell that a signal has cut short is none.
            leftovers::wait_if_ending();
            store.append(&cell)?;
            if let Some(invocation) = run.invocations.last_mut() {
                invocation.took_s = begin.elapsed().as_secs_f64().round();
            }
            store.describe(run)?;
            at.done += *takes;
        }
        if !wish.reuse {
            fleets.clear();
        }
    }
    live(&at);
    Ok(())
}

#[cfg(test)]
mod tests;
