//! The goals of the project: how much Quorate is to make beside its peers, and whether it does.

use super::standing::{times, QUORATE};
use super::Told;
use crate::record::{clients_words, Place, Summary};
use maud::{html, Markup};
use quorate_report::page::{self, Section, Tone};
use serde::Serialize;

const FIGURE: &str = "tps";

/// A least ratio of throughputs in `oltp`, on three members.
struct Goal {
    network: &'static str,
    load: &'static str,
    /// None: at every number.
    clients: Option<u32>,
    peer: &'static str,
    at_least: f64,
}

const GOALS: [Goal; 7] = [
    goal("lan", "write_only", None, "galera", 1.15),
    goal("lan", "read_write", None, "galera", 1.15),
    goal("lan", "write_only", None, "async", 1.0),
    goal("two-regions", "write_only", Some(1), "galera", 12.0),
    goal("two-regions", "write_only", Some(1), "gr-eventual", 12.0),
    goal("two-regions", "write_only", Some(64), "galera", 1.5),
    goal("two-regions", "write_only", Some(64), "gr-eventual", 1.5),
];

/// A goal beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Outcome {
    pub network: &'static str,
    pub load: &'static str,
    pub peer: &'static str,
    pub at_least: f64,
    pub met: bool,
    /// Points of the grid that reach it, and those that were measured.
    pub points_met: usize,
    pub points: usize,
    /// Of them, those at which Quorate has failed while the peer has not: their ratio counts as 0.
    pub points_failed: usize,
    /// The lowest ratio, median of the rounds, and where it is.
    pub lowest: f64,
    pub lowest_clients: u32,
    /// At which number of clients it is to hold; none: at every one.
    pub clients: Option<u32>,
}

/// Of the goals that can be judged: those with cells of Quorate and of the peer.
pub(super) fn outcomes(summary: &Summary) -> Vec<Outcome> {
    GOALS.iter().filter_map(|goal| goal.outcome(summary)).collect()
}

impl Goal {
    fn outcome(&self, summary: &Summary) -> Option<Outcome> {
        let is_meant = |place: &&Place| {
            place.network == self.network
                && place.load == self.load
                && place.members == 3
                && self.clients.is_none_or(|clients| place.clients == clients)
        };
        let ratio = |place: &Place| {
            let ratio = summary.ratio(place, QUORATE, self.peer, FIGURE).map(|ratio| ratio.median);
            let failed = || self.has_failed(summary, place).then_some(0.0);
            Some((ratio.or_else(failed)?, place.clients))
        };
        let ratios: Vec<(f64, u32)> =
            summary.places("oltp").filter(is_meant).filter_map(ratio).collect();
        let (lowest, lowest_clients) =
            ratios.iter().copied().min_by(|one, other| one.0.total_cmp(&other.0))?;
        Some(Outcome {
            network: self.network,
            load: self.load,
            peer: self.peer,
            at_least: self.at_least,
            met: lowest >= self.at_least,
            points_met: ratios.iter().filter(|(ratio, _)| *ratio >= self.at_least).count(),
            points: ratios.len(),
            points_failed: ratios.iter().filter(|(ratio, _)| *ratio == 0.0).count(),
            lowest,
            lowest_clients,
            clients: self.clients,
        })
    }

    /// Whether Quorate was measured at a place, and has no figure there though the peer has one.
    fn has_failed(&self, summary: &Summary, place: &Place) -> bool {
        let has_figure = |system: &str| summary.figure(place, system, FIGURE).is_some();
        let was_measured = !summary.cells(place, QUORATE).is_empty();
        was_measured && !has_figure(QUORATE) && has_figure(self.peer)
    }
}

impl Outcome {
    /// `lan, write_only, every number of clients: at least 1.15× galera`.
    fn words(&self, told: &Told) -> String {
        let clients = match self.clients {
            None => "every number of clients".to_owned(),
            Some(clients) => clients_words(clients),
        };
        let (network, load, peer) = (self.network, self.load, told.title(self.peer));
        format!("{network}, {load}, {clients}: at least {} {peer}", times(self.at_least))
    }

    /// `at 4 of 5 points; lowest 1.12× with 64 clients`.
    fn here(&self) -> String {
        let clients = clients_words(self.lowest_clients);
        let lowest = match self.points_failed {
            0 => format!("{} with {clients}", times(self.lowest)),
            _ => format!("Quorate failed with {clients}"),
        };
        match (self.points, self.points_failed) {
            (1, _) => lowest,
            (points, 0) => format!("at {} of {points} points; lowest {lowest}", self.points_met),
            (points, _) => format!("at {} of {points} points; {lowest}", self.points_met),
        }
    }

    fn verdict(&self) -> (Tone, &'static str) {
        match self.met {
            true => (Tone::Good, "met"),
            false => (Tone::Bad, "missed"),
        }
    }
}

/// None where no goal can be judged.
pub(super) fn section(told: &Told) -> Option<Section> {
    let outcomes = outcomes(&told.summary);
    (!outcomes.is_empty()).then(|| Section {
        id: "goals".into(),
        title: "Goals of the project".into(),
        body: table(told, &outcomes),
    })
}

fn table(told: &Told, outcomes: &[Outcome]) -> Markup {
    html! {
        p.small.faint { "Quorate's throughput over the peer's, median of the ratios within a round." }
        (page::scroll(html! { table {
            thead { tr { th { "goal" } th { "here" } th {} } }
            tbody { @for outcome in outcomes {
                @let (tone, verdict) = outcome.verdict();
                tr {
                    td.text { (outcome.words(told)) }
                    td.text { (outcome.here()) }
                    td.(tone.class()) { (verdict) }
                }
            } }
        } }))
    }
}

/// The same; nothing where no goal can be judged.
pub(super) fn markdown(told: &Told) -> String {
    let outcomes = outcomes(&told.summary);
    if outcomes.is_empty() {
        return String::new();
    }
    let row = |outcome: &Outcome| {
        let (words, here) = (outcome.words(told), outcome.here());
        format!("| {words} | {here} | {} |\n", outcome.verdict().1)
    };
    let rows: String = outcomes.iter().map(row).collect();
    format!("\n## Goals of the project\n\n| goal | here | |\n|---|---|---|\n{rows}")
}

/// How many are met; none where no goal can be judged.
pub(super) fn line(told: &Told) -> Option<String> {
    let outcomes = outcomes(&told.summary);
    let met = outcomes.iter().filter(|outcome| outcome.met).count();
    let words = format!("Goals of the project: {met} of {} met.\n", outcomes.len());
    (!outcomes.is_empty()).then_some(words)
}

const fn goal(
    network: &'static str,
    load: &'static str,
    clients: Option<u32>,
    peer: &'static str,
    at_least: f64,
) -> Goal {
    Goal { network, load, clients, peer, at_least }
}

#[cfg(test)]
mod tests {
    use super::super::tests::cell;
    use super::*;
    use crate::record::Cell;

    #[test]
    fn a_goal_is_met_where_the_lowest_ratio_reaches_it() {
        let far = |system: &str, clients, tps| {
            let mut cell: Cell = cell(system, clients, tps);
            cell.place.network = "two-regions".into();
            cell
        };
        let cells = [
            cell(QUORATE, 1, 120.0),
            cell("galera", 1, 100.0),
            cell("async", 1, 100.0),
            cell(QUORATE, 64, 110.0),
            cell("galera", 64, 100.0),
            cell("async", 64, 110.0),
            far(QUORATE, 1, 1200.0),
            far("galera", 1, 100.0),
            far(QUORATE, 16, 10.0),
            far("galera", 16, 100.0),
        ];
        let outcomes = outcomes(&Summary::new(&cells));
        let told: Vec<(&str, &str, bool, usize, usize, u32)> = outcomes
            .iter()
            .map(|it| (it.network, it.peer, it.met, it.points_met, it.points, it.lowest_clients))
            .collect();
        assert_eq!(
            told,
            [
                ("lan", "galera", false, 1, 2, 64),
                ("lan", "async", true, 2, 2, 64),
                ("two-regions", "galera", true, 1, 1, 1),
            ]
        );
        assert_eq!(outcomes[0].here(), "at 1 of 2 points; lowest 1.10× with 64 clients");
    }

    #[test]
    fn a_point_at_which_quorate_failed_is_missed() {
        let failed = |cell: Cell| Cell { failed: Some("no server".into()), ..cell };
        let cells = [
            cell(QUORATE, 1, 120.0),
            cell("galera", 1, 100.0),
            failed(cell(QUORATE, 64, 0.0)),
            cell("galera", 64, 100.0),
            failed(cell("async", 64, 0.0)),
            // Quorate was not measured there yet.
            cell("galera", 256, 100.0),
        ];
        let outcomes = outcomes(&Summary::new(&cells));
        let [outcome] = &outcomes[..] else { panic!("async has no figure: {outcomes:?}") };
        let counts = (outcome.points_met, outcome.points, outcome.points_failed);
        assert_eq!((outcome.peer, outcome.met, counts), ("galera", false, (1, 2, 1)));
        assert_eq!(outcome.here(), "at 1 of 2 points; Quorate failed with 64 clients");
    }
}
