//! In which order everything is measured.
//!
//! The machine is noisy, and what is compared is the systems: so they take turns, each with all that is
//! measured on one network, and whoever begins changes from round to round. A ratio is taken within a
//! round, between visits that follow one another.
//!
//! Invariant: a plan has every point of every test's grid, for each system and round, exactly once, but
//! for those that are not wanted.

use crate::record::{Key, Place};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How much of the tests' grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grid {
    /// What a quarter of an hour allows: one round.
    Quick,
    Default,
    /// Everything that was published.
    Full,
}

/// A point of a test's grid on one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    pub members: usize,
    pub load: String,
    /// 0 where the test has no such number.
    pub clients: u32,
}

/// What is to be measured of one test.
#[derive(Clone, Debug)]
pub struct Asked {
    pub test: &'static str,
    /// Each with what it takes.
    pub points: Vec<(Point, Duration)>,
    /// Its members are hurt: it comes last in a visit.
    pub harms: bool,
}

/// One system's turn on one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub round: u32,
    pub network: String,
    pub members: usize,
    pub system: String,
    /// The tests in order, each with its points.
    pub steps: Vec<Step>,
}

/// One measurement of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub place: Place,
    pub takes: Duration,
}

/// Lays out the visits of `rounds` for all `systems` and `networks`, with the cells that are wanted: not
/// those that are done, nor those of what a system cannot do.
pub fn lay_out(
    asked: &[Asked],
    systems: &[String],
    networks: &[String],
    rounds: RangeInclusive<u32>,
    is_wanted: impl Fn(&Key) -> bool,
) -> Vec<Visit> {
    let mut asked: Vec<&Asked> = asked.iter().collect();
    asked.sort_by_key(|test| test.harms);
    let sizes: BTreeSet<usize> =
        asked.iter().flat_map(|test| &test.points).map(|(point, _)| point.members).collect();
    let mut visits = Vec::new();
    for round in rounds {
        for network in networks {
            for members in &sizes {
                for turn in 0..systems.len() {
                    let system = &systems[(turn + round as usize) % systems.len()];
                    let visit = visit(&asked, (round, network, *members, system), &is_wanted);
                    visits.extend(visit);
                }
            }
        }
    }
    visits
}

fn visit(
    asked: &[&Asked],
    (round, network, members, system): (u32, &str, usize, &str),
    is_wanted: impl Fn(&Key) -> bool,
) -> Option<Visit> {
    let mut steps = Vec::new();
    for test in asked {
        for (point, takes) in test.points.iter().filter(|(point, _)| point.members == members) {
            let place = Place {
                test: test.test.to_owned(),
                network: network.to_owned(),
                members,
                load: point.load.clone(),
                clients: point.clients,
            };
            let key = (place, system.to_owned(), round);
            if is_wanted(&key) {
                steps.push(Step { place: key.0, takes: *takes });
            }
        }
    }
    let (network, system) = (network.to_owned(), system.to_owned());
    (!steps.is_empty()).then_some(Visit { round, network, members, system, steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(test: &'static str, harms: bool, members: &[usize]) -> Asked {
        let point = |members: &usize| Point { members: *members, load: "all".into(), clients: 4 };
        let points = members.iter().map(|members| (point(members), Duration::from_secs(10)));
        Asked { test, points: points.collect(), harms }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_cell_is_measured_once_and_systems_take_turns() {
        let asked = [asked("failover", true, &[3]), asked("oltp", false, &[3, 5])];
        let (systems, networks) = (names(&["a", "b", "c"]), names(&["lan", "region"]));
        let visits = lay_out(&asked, &systems, &networks, 1..=3, |_| true);
        let all: Vec<Key> = visits.iter().flat_map(keys).collect();
        assert_eq!(all.len(), 3 * 3 * 2 * 3);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for turns in visits.chunks(3) {
            let mut turn: Vec<&str> = turns.iter().map(|visit| visit.system.as_str()).collect();
            turn.sort_unstable();
            assert_eq!(turn, ["a", "b", "c"], "nobody goes twice before all went");
        }
        let first: BTreeSet<&str> =
            visits.iter().step_by(3).map(|visit| visit.system.as_str()).collect();
        assert_eq!(first.len(), 3, "each begins once");
        assert_eq!(visits[0].steps.last().unwrap().place.test, "failover", "harm comes last");
    }

    #[test]
    fn what_is_not_wanted_is_left_out() {
        let asked = [asked("oltp", false, &[3])];
        let (systems, networks) = (names(&["a", "b"]), names(&["lan"]));
        let whole = lay_out(&asked, &systems, &networks, 1..=2, |_| true);
        let first = keys(&whole[0]).next().unwrap();
        let rest = lay_out(&asked, &systems, &networks, 1..=2, |key| *key != first);
        assert_eq!(rest, whole[1..], "a visit without a step is none");
    }

    fn keys(visit: &Visit) -> impl Iterator<Item = Key> + '_ {
        let key = |step: &Step| (step.place.clone(), visit.system.clone(), visit.round);
        visit.steps.iter().map(key)
    }
}
