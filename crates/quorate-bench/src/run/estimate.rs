//! What a run takes, about: loads, and what it takes besides to start systems, to fill their tables, and to
//! wait until members have everything.

use super::{Kind, Wish};
use crate::plan::{Step, Visit};
use crate::suite;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Until the servers of a system take part.
const START: Duration = Duration::from_secs(15);
/// Rows of sysbench's tables, until all members have them.
const ROWS_PER_SECOND: u64 = 20_000;
/// Around a load: a warm-up of a second, members that catch up, counters.
const AROUND: Duration = Duration::from_secs(2);

/// A visit's time, by step.
pub(super) fn steps(wish: &Wish, visits: &[Visit]) -> Vec<Vec<Duration>> {
    let mut running = Running { wish, fleets: HashMap::new() };
    let of_visit = |visit: &Visit| {
        let steps = visit.steps.iter();
        let steps = steps.map(|step| running.step(visit, step)).collect();
        if !wish.reuse {
            running.fleets.clear();
        }
        steps
    };
    visits.iter().map(of_visit).collect()
}

/// By test.
pub(super) fn by_test(wish: &Wish, visits: &[Visit]) -> BTreeMap<String, Duration> {
    let mut takes = BTreeMap::new();
    for (visit, times) in visits.iter().zip(steps(wish, visits)) {
        for (step, time) in visit.steps.iter().zip(times) {
            *takes.entry(step.place.test.clone()).or_default() += time;
        }
    }
    takes
}

/// The fleets that run at that moment, and whether their tables are filled.
struct Running<'a> {
    wish: &'a Wish,
    fleets: HashMap<Kind, bool>,
}

impl Running<'_> {
    fn step(&mut self, visit: &Visit, Step { place, takes }: &Step) -> Duration {
        let mut takes = *takes + AROUND;
        // A plan has no other tests and systems.
        let (Ok(test), Ok(system)) = (suite::named(&place.test), self.wish.system(&visit.system))
        else {
            return takes;
        };
        let fleet = (visit.system.clone(), visit.members, test.syncs(place));
        let filled = self.fleets.get(&fleet).copied();
        if filled.is_none() {
            takes += START;
        }
        if test.fills() && filled != Some(true) {
            let tables = self.wish.scale.tables;
            let rows = u64::from(tables.count) * u64::from(tables.rows);
            takes += Duration::from_secs(rows / ROWS_PER_SECOND);
        }
        match test.spends() || test.moves_primary(&**system) {
            true => drop(self.fleets.remove(&fleet)),
            false => drop(self.fleets.insert(fleet, test.fills() || filled == Some(true))),
        }
        takes
    }
}
