//! A run: the visits of a plan, one after the other, each cell kept as soon as it is measured.
//!
//! A cell that fails is kept with its reason, and ends nothing: the next one begins with a new fleet.

use crate::fleet::Fleet;
use crate::meter;
use crate::plan::{self, Step, Visit};
use crate::record::{Cell, Key, Place, Results, Run, Setup, Store};
use crate::suite::{self, Scale, Site, Test};
use crate::system::System;
use anyhow::{Context, Result};
use quorate_lab::leftovers;
use quorate_lab::net::Topology;
use quorate_lab::process::Syncs;
use std::cell::Cell as Flag;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The primary of a fleet that was just started.
const FIRST: usize = 0;

/// What is to be measured.
pub struct Wish {
    pub tests: Vec<&'static dyn Test>,
    pub systems: Vec<Arc<dyn System>>,
    pub networks: Vec<Topology>,
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

    /// What the loads of each test take, about. Systems have to be started and filled besides.
    pub fn takes(&self) -> BTreeMap<String, Duration> {
        let mut takes = BTreeMap::new();
        for step in self.plan(&BTreeSet::new()).into_iter().flat_map(|visit| visit.steps) {
            *takes.entry(step.place.test).or_default() += step.takes;
        }
        takes
    }

    /// All that is not done yet.
    fn plan(&self, done: &BTreeSet<Key>) -> Vec<Visit> {
        let systems: Vec<_> = self.systems.iter().map(|system| system.name().to_owned()).collect();
        let networks: Vec<_> = self.networks.iter().map(Topology::to_string).collect();
        let asked: Vec<_> = self.tests.iter().map(|test| suite::ask(*test, &self.scale)).collect();
        let is_wanted = |key: &Key| !done.contains(key) && self.is_for(&key.1, &key.0);
        plan::lay_out(&asked, &systems, &networks, 1..=self.rounds, is_wanted)
    }

    /// Whether the grid has a place, and a system can do what is done there.
    fn is_for(&self, system: &str, place: &Place) -> bool {
        let test = self.tests.iter().find(|test| test.name() == place.test);
        let is_first =
            || self.networks.first().is_some_and(|first| first.to_string() == place.network);
        match (test, self.system(system)) {
            (Some(test), Ok(system)) => {
                (test.is_everywhere(&self.scale) || is_first()) && test.is_for(&**system, place)
            }
            _ => false,
        }
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

/// Measures what is not in `folder` yet. `run` is completed by what is only known once systems run.
pub fn run(wish: &Wish, run: &mut Run, folder: &Path, live: &dyn Fn(&Live)) -> Result<()> {
    let mut done = BTreeSet::new();
    if Store::exists(folder) {
        // What is gone on with has told of its systems and networks.
        let former = Results::read(folder)?;
        done = former.done();
        (run.systems, run.networks) = (former.run.systems, former.run.networks);
    }
    let mut store = Store::open(folder, run)?;
    for network in &wish.networks {
        if !run.networks.iter().any(|known| known.name == network.to_string()) {
            run.networks.push(meter::measure(*network)?);
        }
    }
    let visits = wish.plan(&done);
    let steps = visits.iter().flat_map(|visit| &visit.steps);
    let mut at = Live { all: steps.map(|step| step.takes).sum(), ..Live::default() };
    let mut fleets = Fleets { wish, kept: HashMap::new(), told: BTreeSet::new() };
    for visit in &visits {
        for Step { place, takes } in &visit.steps {
            let words = place.words();
            at.now = format!("round {}: {}, {words}, {}", visit.round, place.test, visit.system);
            live(&at);
            let cell = fleets.measure(visit, place, run)?;
            // A cell that a signal has cut short is none.
            leftovers::wait_if_ending();
            store.append(&cell)?;
            store.describe(run)?;
            at.done += *takes;
        }
        if !wish.reuse {
            fleets.kept.clear();
        }
    }
    live(&at);
    Ok(())
}

/// What runs at the moment.
struct Fleets<'a> {
    wish: &'a Wish,
    /// By system, number of members, and whether they sync.
    kept: HashMap<Kind, Kept>,
    /// Systems whose setup the record has been told in this run.
    told: BTreeSet<String>,
}

type Kind = (String, usize, Syncs);

struct Kept {
    fleet: Fleet,
    network: Topology,
    /// Whether it has the tables of sysbench.
    filled: Flag<bool>,
}

impl Fleets<'_> {
    /// One cell, with its figures or the reason why it has none.
    fn measure(&mut self, visit: &Visit, place: &Place, run: &mut Run) -> Result<Cell> {
        let test = suite::named(&place.test)?;
        let wish = self.wish;
        let system = wish.system(&visit.system)?;
        let mut cell = Cell {
            place: place.clone(),
            system: visit.system.clone(),
            round: visit.round,
            ..Cell::default()
        };
        let kind = (visit.system.clone(), visit.members, test.syncs(place));
        let measured = self.fleet(system, visit, &kind, run).and_then(|kept| {
            let site = Site { fleet: &kept.fleet, scale: &wish.scale, filled: &kept.filled };
            let found = test.measure(&site, place)?;
            Ok((found, kept.fleet.primary().ok()))
        });
        // Whoever comes next finds the fleet as it was at its beginning, or a new one.
        let begins_at = measured.as_ref().ok().and_then(|(_, primary)| *primary);
        let is_changed = test.spends() || test.harms() && begins_at != Some(FIRST);
        match measured {
            Ok((found, primary)) => {
                cell.primary = primary.map(|member| format!("node{}", member + 1));
                (cell.figures, cell.curves) = (found.figures, found.curves);
                (cell.events, cell.facts) = (found.events, found.facts);
            }
            Err(error) => cell.failed = Some(format!("{error:#}")),
        }
        if is_changed || cell.failed.is_some() {
            self.kept.remove(&kind);
        }
        Ok(cell)
    }

    /// The visit's fleet: one that runs, or a new one, of which the record is told.
    fn fleet(
        &mut self,
        system: &Arc<dyn System>,
        visit: &Visit,
        kind: &Kind,
        run: &mut Run,
    ) -> Result<&Kept> {
        let network: Topology = visit.network.parse()?;
        if !self.kept.contains_key(kind) {
            let (_, members, syncs) = *kind;
            let fleet = Fleet::start_with(system.clone(), network, members, syncs)?;
            let setup = fleet.setup()?;
            // A fleet of another size differs in its addresses: the first of a system tells.
            if self.told.insert(setup.name.clone()) && !run.systems.contains(&setup) {
                run.systems.retain(|known| known.name != setup.name);
                run.systems.push(setup);
                // As they were asked for; those of a former run after them.
                let place = |setup: &Setup| {
                    let mut asked = self.wish.systems.iter();
                    asked.position(|system| system.name() == setup.name).unwrap_or(usize::MAX)
                };
                run.systems.sort_by_key(place);
            }
            self.kept.insert(kind.clone(), Kept { fleet, network, filled: Flag::new(false) });
        }
        let kept = self.kept.get_mut(kind).context("it was put there")?;
        if kept.network != network {
            kept.fleet.network().shape(network);
            kept.network = network;
        }
        Ok(kept)
    }
}
