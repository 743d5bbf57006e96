//! The fleets that run, and what is measured on them.
//!
//! Invariant: a cell begins on a fleet whose members all have the same, and which is led by the member that
//! led it at first: one that was just started, or one that a cell has left like that.

use super::{Kind, Wish, ELSEWHERE};
use crate::fleet::Fleet;
use crate::plan::Visit;
use crate::record::{Cell, Place, Run, Setup};
use crate::suite::{self, Found, Site, Test};
use crate::system::System;
use anyhow::{anyhow, bail, ensure, Context, Result};
use quorate_lab::net::Topology;
use std::cell::Cell as Flag;
use std::collections::{BTreeSet, HashMap};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The primary of a fleet that was just started.
const FIRST: usize = 0;
/// For what the last cell has left to be applied.
const LEVEL_LIMIT: Duration = Duration::from_secs(120);
/// Each takes minutes to fail, and the next one is no better.
const STARTS_MAX: u32 = 2;

/// What runs at the moment.
pub(super) struct Fleets<'a> {
    wish: &'a Wish,
    kept: HashMap<Kind, Kept>,
    /// Systems that the folder had figures of before this run.
    measured: BTreeSet<String>,
    /// Systems whose setup the record has been told in this run.
    told: BTreeSet<String>,
    failures: Failures,
}

struct Kept {
    fleet: Fleet,
    network: Topology,
    /// Whether it has the tables of sysbench.
    filled: Flag<bool>,
}

/// What a test has found, and who led before it and after.
struct Measured {
    found: Found,
    before: Option<usize>,
    after: Option<usize>,
}

impl Fleets<'_> {
    /// `measured`: systems that the folder has figures of.
    pub fn new(wish: &Wish, measured: BTreeSet<String>) -> Fleets<'_> {
        let (kept, told) = (HashMap::new(), BTreeSet::new());
        Fleets { wish, kept, measured, told, failures: Failures::default() }
    }

    /// Ends all of them.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// One cell, with its figures or the reason why it has none. An error if figures of this system cannot
    /// stand beside those that the folder has.
    pub fn measure(&mut self, visit: &Visit, place: &Place, run: &mut Run) -> Result<Cell> {
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
        let begin = Instant::now();
        let mut ready = self.make_ready(system, visit, &kind);
        if let Ok(Some(setup)) = &mut ready {
            self.tell(std::mem::take(setup), run)?;
        }
        let measured = ready.and_then(|_| {
            let Kept { fleet, filled, .. } = self.kept.get(&kind).context("it is ready")?;
            let site = Site { fleet, scale: &wish.scale, round: visit.round, filled };
            caught(|| measure(test, &site, place))
        });
        cell.took_s = begin.elapsed().as_secs_f64();
        let is_over = match measured {
            Ok(measured) => {
                let is_over = test.spends() || measured.after != Some(FIRST);
                describe(&mut cell, measured, test);
                let clear = |kept: &Kept| caught(|| test.clear(&kept.fleet));
                is_over || self.kept.get(&kind).is_none_or(|kept| clear(kept).is_err())
            }
            Err(error) => {
                cell.failed = Some(format!("{error:#}"));
                true
            }
        };
        if is_over {
            self.kept.remove(&kind);
        }
        Ok(cell)
    }

    /// The visit's fleet: one that runs and is level, or a new one, with its setup.
    fn make_ready(
        &mut self,
        system: &Arc<dyn System>,
        visit: &Visit,
        kind: &Kind,
    ) -> Result<Option<Setup>> {
        let network: Topology = visit.network.parse()?;
        if let Some(kept) = self.kept.get_mut(kind) {
            if kept.network != network {
                kept.fleet.network().shape(network);
                kept.network = network;
            }
            if let Err(error) = kept.fleet.wait_level(LEVEL_LIMIT) {
                eprintln!("{} begins anew, as it is not level: {error:#}", visit.system);
                self.kept.remove(kind);
            }
        }
        if self.kept.contains_key(kind) {
            return Ok(None);
        }
        if !self.wish.reuse {
            // Servers that idle on the same processors are no part of what is measured.
            self.kept.clear();
        }
        self.failures.check(visit, kind)?;
        let started = caught(|| start(system, network, kind));
        let (fleet, setup) = self.failures.note(kind, started)?;
        self.kept.insert(kind.clone(), Kept { fleet, network, filled: Flag::new(false) });
        Ok(Some(setup))
    }

    /// Tells the record of a system: once in a run, as one of another size differs in its addresses. An error
    /// if the folder has figures of it as it was otherwise.
    fn tell(&mut self, setup: Setup, run: &mut Run) -> Result<()> {
        if !self.told.insert(setup.name.clone()) || run.systems.contains(&setup) {
            return Ok(());
        }
        let mut known = run.systems.iter().filter(|known| known.name == setup.name);
        if let Some(former) = known.next().filter(|_| self.measured.contains(&setup.name)) {
            let differ = former.differences(&setup);
            ensure!(
                differ.is_empty(),
                "{} has other settings than when its figures of this folder were measured: {}. It was not \
                 measured again: {ELSEWHERE}",
                setup.name,
                differ.join(", ")
            );
        }
        run.systems.retain(|known| known.name != setup.name);
        run.systems.push(setup);
        // As they were asked for; those of a former run after them.
        let asked = &self.wish.systems;
        let place = |name: &str| asked.iter().position(|system| system.name() == name);
        run.systems.sort_by_key(|setup| place(&setup.name).unwrap_or(usize::MAX));
        Ok(())
    }
}

fn start(system: &Arc<dyn System>, network: Topology, kind: &Kind) -> Result<(Fleet, Setup)> {
    let (_, members, syncs) = *kind;
    let fleet = Fleet::start_with(system.clone(), network, members, syncs)?;
    let primary = fleet.primary()?;
    ensure!(
        primary == FIRST,
        "node{} leads, and not the first one, that clients are beside",
        primary + 1
    );
    let setup = fleet.setup()?;
    Ok((fleet, setup))
}

fn measure(test: &dyn Test, site: &Site, place: &Place) -> Result<Measured> {
    let before = site.fleet.primary().ok();
    let found = test.measure(site, place)?;
    found.check()?;
    Ok(Measured { found, before, after: site.fleet.primary().ok() })
}

fn describe(cell: &mut Cell, measured: Measured, test: &dyn Test) {
    let Measured { found, before, after } = measured;
    let name = |member: Option<usize>| member.map(|member| format!("node{}", member + 1));
    (cell.began_with, cell.primary) = (name(before), name(after));
    (cell.figures, cell.curves) = (found.figures, found.curves);
    (cell.events, cell.facts) = (found.events, found.facts);
    if before != after && !test.harms() {
        let moved = [&cell.began_with, &cell.primary].map(|it| it.as_deref().unwrap_or("none"));
        cell.facts.insert("primary moved".into(), moved.join(" → "));
    }
}

/// A panic is a failure like any other: the run goes on.
fn caught<T>(act: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(anyhow!("a fault of this program: {}", words.unwrap_or("a panic")))
    })
}

/// Fleets that could not be started, in one visit: the next one may come at a better time.
#[derive(Default)]
struct Failures {
    at: Option<Visit>,
    /// How often one after the other, and why the last time.
    starts: HashMap<Kind, (u32, String)>,
}

impl Failures {
    /// An error if another start is not worth its time.
    fn check(&mut self, visit: &Visit, kind: &Kind) -> Result<()> {
        if self.at.as_ref() != Some(visit) {
            (self.at, self.starts) = (Some(visit.clone()), HashMap::new());
        }
        match self.starts.get(kind) {
            Some((count, reason)) if *count >= STARTS_MAX => {
                bail!("it was not started again, after {count} starts that failed: {reason}")
            }
            _ => Ok(()),
        }
    }

    fn note<T>(&mut self, kind: &Kind, started: Result<T>) -> Result<T> {
        match &started {
            Ok(_) => drop(self.starts.remove(kind)),
            Err(error) => {
                let (count, reason) = self.starts.entry(kind.clone()).or_default();
                (*count, *reason) = (*count + 1, format!("{error:#}"));
            }
        }
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::sysbench::Tables;
    use crate::plan::Grid;
    use crate::suite::Scale;
    use quorate_lab::process::Syncs;

    fn found(tps: f64) -> Found {
        Found { figures: [("tps".to_owned(), tps)].into(), ..Found::default() }
    }

    #[test]
    fn a_primary_that_moved_is_told_unless_the_test_moves_it() {
        let told = |test: &str, before, after| {
            let mut cell = Cell::default();
            let measured = Measured { found: found(1.0), before, after };
            describe(&mut cell, measured, suite::named(test).unwrap());
            (cell.began_with, cell.primary, cell.facts.get("primary moved").cloned())
        };
        let node = |name: &str| Some(name.to_owned());
        let moved = node("node1 → node3");
        assert_eq!(told("oltp", Some(0), Some(2)), (node("node1"), node("node3"), moved));
        assert_eq!(told("oltp", Some(0), Some(0)), (node("node1"), node("node1"), None));
        assert_eq!(told("oltp", Some(0), None).2, node("node1 → none"));
        assert_eq!(told("failover", Some(0), Some(2)).2, None);
    }

    #[test]
    fn figures_of_another_version_are_not_added_to() {
        let tests = vec![suite::named("oltp").unwrap()];
        let scale = Scale {
            grid: Grid::Quick,
            time: Duration::from_secs(3),
            clients: None,
            tables: Tables { count: 1, rows: 1 },
            profiles: None,
        };
        let wish = Wish {
            tests,
            systems: Vec::new(),
            named: false,
            networks: None,
            rounds: 1,
            scale,
            reuse: true,
        };
        let setup = |version: &str| Setup {
            name: "galera".into(),
            version: version.into(),
            ..Setup::default()
        };
        let tell = |measured: &[&str], version: &str| {
            let measured = measured.iter().map(|name| (*name).to_owned()).collect();
            let mut run = Run { systems: vec![setup("26.4.13")], ..Run::default() };
            let told = Fleets::new(&wish, measured).tell(setup(version), &mut run);
            (told.map_err(|error| error.to_string()), run.systems[0].version.clone())
        };
        let (refused, kept) = tell(&["galera"], "26.4.14");
        let refused = refused.unwrap_err();
        assert!(refused.contains("26.4.14") && refused.contains("another --out"), "{refused}");
        assert_eq!(kept, "26.4.13", "the figures that are there keep their settings");
        assert_eq!(tell(&["galera"], "26.4.13"), (Ok(()), "26.4.13".to_owned()));
        assert_eq!(tell(&["quorate"], "26.4.14"), (Ok(()), "26.4.14".to_owned()));
    }

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        let told = |result: Result<()>| result.unwrap_err().to_string();
        assert!(told(caught(|| panic!("index {}", 7))).contains("index 7"));
        assert!(told(caught(|| panic!("nobody"))).contains("nobody"));
        assert_eq!(caught(|| Ok(1)).unwrap(), 1);
    }

    #[test]
    fn a_system_that_does_not_start_is_not_started_for_ever() {
        let visit = |round| {
            let (network, system) = ("lan".to_owned(), "galera".to_owned());
            Visit { round, network, members: 3, system, steps: Vec::new() }
        };
        let kind = ("galera".to_owned(), 3, Syncs::Done);
        let mut failures = Failures::default();
        let mut start = |round, started: Result<()>| {
            failures.check(&visit(round), &kind).and_then(|()| failures.note(&kind, started))
        };
        start(1, Err(anyhow!("no server"))).unwrap_err();
        start(1, Ok(())).unwrap();
        start(1, Err(anyhow!("no server"))).unwrap_err();
        start(1, Err(anyhow!("no disk"))).unwrap_err();
        let refused = start(1, Ok(())).unwrap_err().to_string();
        assert!(refused.contains("2 starts") && refused.contains("no disk"), "{refused}");
        start(2, Ok(())).unwrap();
    }
}
