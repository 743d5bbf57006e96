//! The goals of the project: how much Quorate is to make beside its peers and by itself, and whether it does.

mod goal;

use super::Told;
use goal::{Bound, Goal, Point, GOALS};
use maud::{html, Markup};
use quorate_report::page::{self, Section, Tone};
use serde::Serialize;

/// A goal beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Outcome {
    pub goal: String,
    pub met: bool,
    /// Points of the grid that reach it, and those that were measured.
    pub points_met: usize,
    pub points: usize,
    /// Of them, those at which Quorate has failed while what it is compared with has not.
    pub points_failed: usize,
    /// Points that reach it in the median, and not in every round.
    pub points_doubtful: usize,
    /// The value farthest from the goal, and where it is; none: Quorate failed there.
    pub worst: Option<f64>,
    pub worst_at: String,
    /// The same in words.
    pub here: String,
}

/// Of the goals that can be judged: those with cells of Quorate and of what it is compared with.
pub(super) fn outcomes(told: &Told) -> Vec<Outcome> {
    GOALS.iter().filter_map(|goal| outcome(goal, told)).collect()
}

fn outcome(goal: &Goal, told: &Told) -> Option<Outcome> {
    let (points, bound) = (goal.points(told), goal.bound);
    let is_met = |point: &&Point| point.value.is_some_and(|value| bound.is_kept(value));
    let worst = points.iter().min_by(|one, other| {
        // What failed is worse than any value.
        let order = one.value.is_some().cmp(&other.value.is_some());
        let (one, other) = (one.value.unwrap_or(0.0), other.value.unwrap_or(0.0));
        order.then(match bound {
            Bound::AtLeast(_) => one.total_cmp(&other),
            Bound::AtMost(_) => other.total_cmp(&one),
        })
    })?;
    let points_met = points.iter().filter(is_met).count();
    let points_failed = points.iter().filter(|point| point.value.is_none()).count();
    let points_doubtful = points.iter().filter(|point| point.is_doubtful).count();
    Some(Outcome {
        goal: goal.words(told),
        met: points_met == points.len(),
        points_met,
        points: points.len(),
        points_failed,
        points_doubtful,
        worst: worst.value,
        worst_at: worst.at.clone(),
        here: here(goal, worst, (points_met, points_doubtful), points.len()),
    })
}

/// `at 4 of 5 points; lowest 1.12× with 64 clients`.
fn here(goal: &Goal, worst: &Point, (met, doubtful): (usize, usize), points: usize) -> String {
    let told = match worst.value {
        Some(value) => format!("{} with {}", goal.shown(value), worst.at),
        None => format!("Quorate failed with {}", worst.at),
    };
    let farthest = match goal.bound {
        _ if worst.value.is_none() => "",
        Bound::AtLeast(_) => "lowest ",
        Bound::AtMost(_) => "highest ",
    };
    match (points, doubtful) {
        (1, 0) => told,
        (1, _) => format!("{told}, but not in every round"),
        (_, 0) => format!("at {met} of {points} points; {farthest}{told}"),
        _ => format!(
            "at {met} of {points} points, {doubtful} of them not in every round; {farthest}{told}"
        ),
    }
}

impl Outcome {
    fn verdict(&self) -> (Tone, &'static str) {
        match (self.met, self.points_doubtful) {
            (true, 0) => (Tone::Good, "met"),
            (true, _) => (Tone::Warn, "met in the median"),
            (false, _) => (Tone::Bad, "missed"),
        }
    }
}

/// None where no goal can be judged.
pub(super) fn section(told: &Told) -> Option<Section> {
    let outcomes = outcomes(told);
    (!outcomes.is_empty()).then(|| Section {
        id: "goals".into(),
        title: "Goals of the project".into(),
        body: table(&outcomes),
    })
}

fn table(outcomes: &[Outcome]) -> Markup {
    html! {
        p.small.faint {
            "Medians of the rounds, and a ratio is taken within a round; what is never to happen is judged by the \
             worst round. A point at which a round of Quorate's failed is missed."
        }
        (page::scroll(html! { table {
            thead { tr { th { "goal" } th { "here" } th {} } }
            tbody { @for outcome in outcomes {
                @let (tone, verdict) = outcome.verdict();
                tr {
                    td.text { (outcome.goal) }
                    td.text { (outcome.here) }
                    td.(tone.class()) { (verdict) }
                }
            } }
        } }))
    }
}

/// The same; nothing where no goal can be judged.
pub(super) fn markdown(told: &Told) -> String {
    let outcomes = outcomes(told);
    if outcomes.is_empty() {
        return String::new();
    }
    let row = |outcome: &Outcome| {
        format!("| {} | {} | {} |\n", outcome.goal, outcome.here, outcome.verdict().1)
    };
    let rows: String = outcomes.iter().map(row).collect();
    format!("\n## Goals of the project\n\n| goal | here | |\n|---|---|---|\n{rows}")
}

/// How many are met; none where no goal can be judged.
pub(super) fn line(told: &Told) -> Option<String> {
    let outcomes = outcomes(told);
    let met = outcomes.iter().filter(|outcome| outcome.met).count();
    let words = format!("Goals of the project: {met} of {} met.\n", outcomes.len());
    (!outcomes.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::super::standing::QUORATE;
    use super::super::tests::cell;
    use super::*;
    use crate::record::{Cell, Measured, Results};

    fn results(cells: impl IntoIterator<Item = Cell>) -> Results {
        Results { cells: cells.into_iter().collect(), ..Results::default() }
    }

    /// Goal, and what is told of it; whether it is met.
    fn told(results: &Results) -> Vec<(String, String, bool)> {
        let outcomes = outcomes(&Told::new(results));
        outcomes.into_iter().map(|it| (it.goal, it.here, it.met)).collect()
    }

    fn on(network: &str, cell: Cell) -> Cell {
        let place = crate::record::Place { network: network.into(), ..cell.place };
        Cell { place, ..cell }
    }

    fn failed(cell: Cell) -> Cell {
        Cell { failed: Some("no server".into()), ..cell }
    }

    /// A cell of another test with one figure.
    fn figure(test: &str, load: &str, system: &str, name: &str, value: f64) -> Cell {
        let mut cell = cell(system, 1, value);
        (cell.place.test, cell.place.load) = (test.into(), load.into());
        cell.figures = [(name.to_owned(), value)].into();
        cell
    }

    #[test]
    fn a_goal_is_met_where_the_lowest_ratio_reaches_it() {
        let far = |system: &str, clients, tps| on("two-regions", cell(system, clients, tps));
        let results = results([
            cell(QUORATE, 1, 120.0),
            cell("galera", 1, 100.0),
            cell("async", 1, 100.0),
            cell(QUORATE, 64, 110.0),
            cell("galera", 64, 100.0),
            cell("async", 64, 90.0),
            far(QUORATE, 1, 1200.0),
            far("galera", 1, 100.0),
            far(QUORATE, 16, 10.0),
            far("galera", 16, 100.0),
        ]);
        let line = |goal: &str, here: &str, met| (goal.to_owned(), here.to_owned(), met);
        assert_eq!(
            told(&results),
            [
                line(
                    "lan, write_only, every number of clients: at least 1.15× galera",
                    "at 1 of 2 points; lowest 1.10× with 64 clients",
                    false
                ),
                line(
                    "lan, write_only, every number of clients: at least 1.00× async",
                    "at 2 of 2 points; lowest 1.20× with 1 client",
                    true
                ),
                line(
                    "lan, write_only, every number of clients: at least 1.15× async",
                    "at 2 of 2 points; lowest 1.20× with 1 client",
                    true
                ),
                line(
                    "two-regions, write_only, 1 client: at least 12.0× galera",
                    "12.0× with 1 client",
                    true
                ),
            ]
        );
    }

    #[test]
    fn a_point_at_which_quorate_failed_is_missed() {
        let results = results([
            cell(QUORATE, 1, 120.0),
            cell("galera", 1, 100.0),
            failed(cell(QUORATE, 64, 0.0)),
            cell("galera", 64, 100.0),
            failed(cell("async", 64, 0.0)),
            // Quorate was not measured there yet.
            cell("galera", 256, 100.0),
        ]);
        let outcomes = outcomes(&Told::new(&results));
        let [outcome] = &outcomes[..] else { panic!("async has no figure: {outcomes:?}") };
        let counts = (outcome.points_met, outcome.points, outcome.points_failed);
        assert_eq!((outcome.met, counts), (false, (1, 2, 1)));
        assert_eq!(outcome.here, "at 1 of 2 points; Quorate failed with 64 clients");
    }

    #[test]
    fn what_was_never_in_one_round_with_quorate_is_not_judged() {
        let second = Cell { round: 2, ..cell("galera", 1, 100.0) };
        // Of an older run: it does not tell the primary's gap.
        let older = figure("large", "10 MB", QUORATE, "gap_s", 0.1);
        assert_eq!(told(&results([cell(QUORATE, 1, 120.0), second, older])), []);
    }

    #[test]
    fn a_network_is_compared_with_another_one() {
        let results = results([
            on("two-regions", cell(QUORATE, 16, 96.0)),
            on("region", cell(QUORATE, 16, 100.0)),
            on("two-regions", cell(QUORATE, 64, 90.0)),
            on("region", cell(QUORATE, 64, 100.0)),
        ]);
        let [(goal, here, false)] = &told(&results)[..] else { panic!("{:?}", told(&results)) };
        assert_eq!(
            goal,
            "two-regions, write_only, 16 and 64 clients: at least 0.95× the same on region"
        );
        assert_eq!(here, "at 1 of 2 points; lowest 0.90× with 64 clients");
    }

    #[test]
    fn a_commit_is_judged_beside_what_the_machine_and_the_network_take() {
        let commit = |load: &str, system: &str, us| {
            on("region", figure("latency", load, system, "commit_us", us))
        };
        let mut results = results([
            commit("primary", QUORATE, 1_700.0),
            commit("primary", "standalone-relaxed", 400.0),
            commit("near member", QUORATE, 1_870.0),
        ]);
        // Of networks and disks that were not measured nothing can be said.
        assert_eq!(told(&results).len(), 1);
        results.run.machine.sync_us = 100.0;
        results.run.networks = vec![Measured {
            name: "region".into(),
            measured_ms: [1.1, 1.2, 9.0],
            ..Measured::default()
        }];
        let told = told(&results);
        let [(_, beyond, true), (_, near, true)] = &told[..] else { panic!("{told:?}") };
        assert_eq!(
            (beyond.as_str(), near.as_str()),
            ("100 µs with 1 client", "1.10× with 1 client")
        );

        // With a sync of 100 µs, no server that syncs commits in 90.
        results.cells.push(commit("primary", "standalone", 90.0));
        assert_eq!(self::told(&results).len(), 1, "the sync was not measured well");
    }

    #[test]
    fn what_is_never_to_happen_is_judged_by_the_worst_round() {
        let round = |round, failed_ones| Cell {
            round,
            ..figure("large", "10 MB", QUORATE, "small_failed", failed_ones)
        };
        let mut results = results([round(1, 0.0), round(2, 0.0), round(3, 5.0)]);
        let [(_, here, false)] = &told(&results)[..] else { panic!("{:?}", told(&results)) };
        assert_eq!(here, "5 with 1 client");
        // Nor is it known of a round that failed.
        results.cells[2] = failed(round(3, 0.0));
        let outcomes = told(&results);
        let missed = |(_, here, met): &(String, String, bool)| {
            !met && here == "Quorate failed with 1 client"
        };
        assert!(outcomes.iter().all(missed), "{outcomes:?}");
    }

    #[test]
    fn what_is_to_be_low_is_judged_by_the_highest() {
        let gap = |clients, seconds| {
            let mut cell = figure("large", "10 MB", QUORATE, "primary_gap_s", seconds);
            cell.place.clients = clients;
            cell
        };
        let results = results([
            gap(4, 0.1),
            gap(8, 0.3),
            on("region", figure("jitter", "read_write", QUORATE, "cv_percent", 12.0)),
            on("region", figure("jitter", "read_write", "standalone", "cv_percent", 10.0)),
        ]);
        let told = told(&results);
        let [(_, even, true), (_, gap, false)] = &told[..] else { panic!("{told:?}") };
        assert_eq!(even, "1.20× with 1 client");
        assert_eq!(gap, "at 1 of 2 points; highest 0.300 s with 8 clients");
    }
}
