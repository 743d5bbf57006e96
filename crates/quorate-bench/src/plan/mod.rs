//! In which order everything is measured.
//!
//! The machine is noisy, and what is compared is the systems: so they take turns, each with a sitting of
//! tests on one network, and both who begins and who comes after whom change from round to round. A ratio is
//! taken within a round, between visits of one sitting. A sitting is as short as the start of servers allows:
//! one test where they are up already, else as many as are worth it. Where servers live on, they do so from
//! network to network, and what spends them comes after all of that.
//!
//! Invariants: a plan has every point of every test's grid, for each system that can do it and each round,
//! exactly once. What is left of an interrupted plan keeps its order.

use crate::record::{Key, Place};
use quorate_lab::net::Topology;
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

impl Grid {
    /// As the record names it.
    pub fn name(self) -> &'static str {
        match self {
            Grid::Quick => "quick",
            Grid::Default => "default",
            Grid::Full => "full",
        }
    }

    /// Unless others are asked for.
    pub fn networks(self) -> &'static [Topology] {
        match self {
            Grid::Quick | Grid::Default => &[Topology::Lan, Topology::TwoRegions],
            Grid::Full => &PUBLISHED,
        }
    }
}

/// Networks that others have measured on.
pub const PUBLISHED: [Topology; 5] = [
    Topology::Lan,
    Topology::Region,
    Topology::TwoRegions,
    Topology::ThreeRegions,
    Topology::TenMs,
];

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
    /// Its members are hurt: it comes after those that hurt nobody.
    pub harms: bool,
    /// Its servers are of no use afterwards: it comes last.
    pub spends: bool,
}

/// One system's turn on one network, with the tests of one sitting.
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

/// Lays out the visits of `rounds` for all `systems` and `networks`, with the cells that the grid has: not
/// those of what a system cannot do. Loads of `worth` are worth the start of a system's servers; zero: they
/// live on from visit to visit.
pub fn lay_out(
    asked: &[Asked],
    (systems, networks): (&[String], &[String]),
    rounds: RangeInclusive<u32>,
    worth: Duration,
    has: impl Fn(&Key) -> bool,
) -> Vec<Visit> {
    let mut asked: Vec<&Asked> = asked.iter().collect();
    asked.sort_by_key(|test| (test.spends, test.harms));
    let sizes: BTreeSet<usize> =
        asked.iter().flat_map(|test| &test.points).map(|(point, _)| point.members).collect();
    let mut visits = Vec::new();
    for round in rounds {
        for (tests, network) in stages(&asked, networks, worth) {
            for members in &sizes {
                for tests in sittings(tests, *members, worth) {
                    let of_system =
                        |system: &String| visit(&tests, (round, network, *members, system), &has);
                    let all = systems.iter().filter_map(of_system).collect();
                    visits.extend(take_turns(all, round));
                }
            }
        }
    }
    visits
}

/// What is left of a plan.
pub fn without(visits: Vec<Visit>, is_done: impl Fn(&Key) -> bool) -> Vec<Visit> {
    let rest = |mut visit: Visit| {
        let (system, round) = (&visit.system, visit.round);
        visit.steps.retain(|step| !is_done(&(step.place.clone(), system.clone(), round)));
        (!visit.steps.is_empty()).then_some(visit)
    };
    visits.into_iter().filter_map(rest).collect()
}

/// The visits of one sitting, in the order of a round: every second round goes backwards, and each pair of rounds
/// begins half of the way further. So in three rounds nobody is always early or always late, nor always after the
/// same one.
fn take_turns(mut visits: Vec<Visit>, round: u32) -> Vec<Visit> {
    let pairs = round.saturating_sub(1) as usize / 2;
    if !visits.is_empty() {
        let begins = pairs * (visits.len() / 2) % visits.len();
        visits.rotate_left(begins);
    }
    if round % 2 == 0 {
        visits.reverse();
    }
    visits
}

/// Which tests on which network, one after the other. Those that spend their servers are the last of `asked`.
fn stages<'a, 'b>(
    asked: &'b [&'a Asked],
    networks: &'b [String],
    worth: Duration,
) -> Vec<(&'b [&'a Asked], &'b String)> {
    let spending = asked.iter().position(|test| test.spends).unwrap_or(asked.len());
    let (keeping, spending) = asked.split_at(spending);
    let parts = if worth.is_zero() { vec![keeping, spending] } else { vec![asked] };
    let on_all = |tests| networks.iter().map(move |network| (tests, network));
    parts.into_iter().flat_map(on_all).collect()
}

/// Tests that follow one another on the same servers.
fn sittings<'a>(asked: &[&'a Asked], members: usize, worth: Duration) -> Vec<Vec<&'a Asked>> {
    let (mut sittings, mut tests, mut loads) = (Vec::new(), Vec::new(), Duration::ZERO);
    for test in asked {
        let of_size = test.points.iter().filter(|(point, _)| point.members == members);
        let takes: Vec<Duration> = of_size.map(|(_, takes)| *takes).collect();
        if takes.is_empty() {
            continue;
        }
        tests.push(*test);
        loads += takes.iter().sum();
        if loads >= worth || test.spends {
            sittings.push(std::mem::take(&mut tests));
            loads = Duration::ZERO;
        }
    }
    sittings.extend((!tests.is_empty()).then_some(tests));
    sittings
}

fn visit(
    asked: &[&Asked],
    (round, network, members, system): (u32, &str, usize, &str),
    has: impl Fn(&Key) -> bool,
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
            if has(&key) {
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
        Asked { test, points: points.collect(), harms, spends: false }
    }

    fn lay_out_all(
        asked: &[Asked],
        (systems, networks): (&[String], &[String]),
        rounds: RangeInclusive<u32>,
        worth_s: u64,
    ) -> Vec<Visit> {
        lay_out(asked, (systems, networks), rounds, Duration::from_secs(worth_s), |_| true)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_cell_is_measured_once_and_systems_take_turns() {
        let asked = [asked("failover", true, &[3]), asked("oltp", false, &[3, 5])];
        let (systems, networks) = (names(&["a", "b", "c"]), names(&["lan", "region"]));
        let visits = lay_out_all(&asked, (&systems, &networks), 1..=3, 1000);
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

    /// Also where a test has only some of the systems, and those stand together in the list.
    #[test]
    fn nobody_is_always_early_or_always_late_or_always_after_the_same_one() {
        let all: Vec<String> = ('a'..='j').map(String::from).collect();
        for few in [3, 4, 5, 7, 8, 10] {
            let asked = [asked("oltp", false, &[3])];
            let last = &all[all.len() - few..];
            let networks = names(&["lan"]);
            let has = |key: &Key| last.contains(&key.1);
            let visits = lay_out(&asked, (&all, &networks), 1..=3, Duration::ZERO, has);
            let rounds: Vec<Vec<&str>> = visits
                .chunks(few)
                .map(|visits| visits.iter().map(|visit| visit.system.as_str()).collect())
                .collect();
            for system in last {
                let at = |round: &Vec<&str>| round.iter().position(|other| other == system);
                let at: Vec<usize> = rounds.iter().filter_map(at).collect();
                assert_eq!(at.len(), 3, "{system} of {few} in each round");
                let mean = at.iter().sum::<usize>() as f64 / 3.0 / (few - 1) as f64;
                assert!((0.2..=0.8).contains(&mean), "{system} of {few} goes at {at:?}");
                let before: BTreeSet<_> = rounds
                    .iter()
                    .zip(&at)
                    .map(|(round, at)| at.checked_sub(1).map(|before| round[before]))
                    .collect();
                assert!(before.len() > 1, "{system} of {few} always goes after {before:?}");
            }
        }
    }

    /// Each test takes 10 s.
    #[test]
    fn systems_take_turns_as_soon_as_the_start_of_servers_was_worth_it() {
        let spent = Asked { spends: true, ..asked("rpo", true, &[3]) };
        let asked = [
            spent,
            asked("flow", true, &[3]),
            asked("oltp", false, &[3]),
            asked("jitter", false, &[3]),
        ];
        let (systems, networks) = (names(&["a", "b"]), names(&["lan"]));
        let turns = |worth_s| -> Vec<String> {
            let visits = lay_out_all(&asked, (&systems, &networks), 1..=1, worth_s);
            let words = |visit: &Visit| {
                let tests = visit.steps.iter().map(|step| step.place.test.as_str());
                let tests: Vec<&str> = tests.collect();
                format!("{}: {}", visit.system, tests.join(" "))
            };
            visits.iter().map(words).collect()
        };
        let each = ["oltp", "jitter", "flow", "rpo"];
        let each: Vec<String> = each
            .iter()
            .flat_map(|test| ["a", "b"].map(|system| format!("{system}: {test}")))
            .collect();
        assert_eq!(turns(0), each);
        assert_eq!(turns(20), ["a: oltp jitter", "b: oltp jitter", "a: flow rpo", "b: flow rpo"]);
        assert_eq!(turns(1000), ["a: oltp jitter flow rpo", "b: oltp jitter flow rpo"]);
    }

    #[test]
    fn servers_that_live_on_are_spent_after_all_networks() {
        let spent = Asked { spends: true, ..asked("rpo", true, &[3]) };
        let asked = [spent, asked("oltp", false, &[3])];
        let (systems, networks) = (names(&["a"]), names(&["lan", "region"]));
        let order = |worth_s| -> Vec<String> {
            let visits = lay_out_all(&asked, (&systems, &networks), 1..=1, worth_s);
            let steps = visits.iter().flat_map(|visit| &visit.steps);
            steps.map(|step| format!("{} {}", step.place.network, step.place.test)).collect()
        };
        assert_eq!(order(0), ["lan oltp", "region oltp", "lan rpo", "region rpo"]);
        assert_eq!(order(1000), ["lan oltp", "lan rpo", "region oltp", "region rpo"]);
    }

    #[test]
    fn what_is_done_is_left_out_and_the_rest_keeps_its_order() {
        let asked = [asked("oltp", false, &[3])];
        let (systems, networks) = (names(&["a", "b"]), names(&["lan"]));
        let whole = lay_out_all(&asked, (&systems, &networks), 1..=2, 0);
        let first = keys(&whole[0]).next().unwrap();
        let rest = without(whole.clone(), |key| *key == first);
        assert_eq!(rest, whole[1..], "a visit without a step is none");
    }

    fn keys(visit: &Visit) -> impl Iterator<Item = Key> + '_ {
        let key = |step: &Step| (step.place.clone(), visit.system.clone(), visit.round);
        visit.steps.iter().map(key)
    }
}
