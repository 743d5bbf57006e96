//! What a run takes, about: loads, and what it takes besides to start systems, to fill their tables, and to
//! wait until members have everything.

use super::Wish;
use crate::plan::Visit;
use std::collections::BTreeMap;
use std::time::Duration;

/// Until the servers of a system take part.
const START: Duration = Duration::from_secs(15);
/// Rows of sysbench's tables, until all members have them.
const ROWS_PER_SECOND: u64 = 20_000;
/// Around a load: a warm-up of a second, members that catch up, counters.
const AROUND: Duration = Duration::from_secs(2);

/// A visit's time, by step.
pub(super) fn steps(wish: &Wish, visits: &[Visit]) -> Vec<Vec<Duration>> {
    let mut running = Running { wish, fleets: BTreeMap::new() };
    let of_visit = |visit: &Visit| {
        let steps = visit.steps.iter();
        let steps = steps.map(|step| running.step(visit, &step.place.test, step.takes)).collect();
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

/// Systems by size that run at that moment, and whether their tables are filled.
struct Running<'a> {
    wish: &'a Wish,
    fleets: BTreeMap<(String, usize), bool>,
}

impl Running<'_> {
    fn step(&mut self, visit: &Visit, test: &str, load: Duration) -> Duration {
        let mut tests = self.wish.tests.iter();
        let test = tests.find(|known| known.name() == test);
        let (fills, spends) = test.map_or((false, false), |test| (test.fills(), test.spends()));
        let fleet = (visit.system.clone(), visit.members);
        let mut takes = load + AROUND;
        let filled = self.fleets.get(&fleet).copied();
        if filled.is_none() {
            takes += START;
        }
        if fills && filled != Some(true) {
            let tables = self.wish.scale.tables;
            let rows = u64::from(tables.count) * u64::from(tables.rows);
            takes += Duration::from_secs(rows / ROWS_PER_SECOND);
        }
        match spends {
            true => drop(self.fleets.remove(&fleet)),
            false => drop(self.fleets.insert(fleet, fills || filled == Some(true))),
        }
        takes
    }
}
