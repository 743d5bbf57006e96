//! A figure of a test by place and system: what tables, the terminal and the summary show.

use super::chapter::Chapter;
use super::standing::{Side, QUORATE};
use crate::record::figure::Figure;
use crate::record::{Place, Spread, Summary};

pub struct Grid<'a> {
    pub systems: Vec<String>,
    pub rows: Vec<(&'a Place, Vec<Entry>)>,
}

/// A system at a place.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// It was not asked for.
    Nothing,
    /// All rounds did.
    Failed,
    /// Where it has numbers; how Quorate stands beside it.
    Figure(Spread, Option<Spread>),
    /// Where it has none.
    Fact(String),
}

impl Entry {
    /// Without its spread.
    pub fn words(&self, figure: Option<&Figure>) -> String {
        match (self, figure) {
            (Entry::Nothing, _) => String::new(),
            (Entry::Failed, _) => "failed".to_owned(),
            (Entry::Figure(spread, _), Some(figure)) => figure.show(spread.median),
            (Entry::Figure(spread, _), None) => spread.median.to_string(),
            (Entry::Fact(fact), _) => fact.clone(),
        }
    }

    /// With its spread, where there is one.
    pub fn words_with_spread(&self, figure: Option<&Figure>) -> String {
        let words = self.words(figure);
        match (self, figure) {
            (Entry::Figure(spread, _), Some(figure)) => match figure.show_range(spread) {
                Some(range) => format!("{words} [{range}]"),
                None => words,
            },
            _ => words,
        }
    }

    /// How Quorate stands beside it.
    pub fn side(&self) -> Option<(Side, f64)> {
        match self {
            Entry::Figure(_, Some(advantage)) => Some((Side::of(advantage), advantage.median)),
            _ => None,
        }
    }
}

impl<'a> Grid<'a> {
    /// Of this figure, or else of facts. `order`: of all systems; those without a cell of this test have no column. Places
    /// where nobody has anything have no row.
    pub fn new(
        chapter: &Chapter,
        figure: Option<&Figure>,
        summary: &Summary<'a>,
        order: &[String],
    ) -> Grid<'a> {
        let here = summary.systems(chapter.test);
        let known = |system: &&String| here.contains(system.as_str());
        let systems: Vec<String> = order.iter().filter(known).cloned().collect();
        let entries = |place: &Place| {
            let entry = |system| entry(chapter, figure, summary, (place, system));
            systems.iter().map(entry).collect::<Vec<_>>()
        };
        let rows = summary.places(chapter.test).map(|place| (place, entries(place)));
        let has_some = |(_, entries): &(&Place, Vec<Entry>)| {
            entries.iter().any(|entry| !matches!(entry, Entry::Nothing))
        };
        let rows = rows.filter(has_some).collect();
        Grid { systems, rows }
    }
}

fn entry(
    chapter: &Chapter,
    figure: Option<&Figure>,
    summary: &Summary,
    (place, system): (&Place, &String),
) -> Entry {
    let cells = summary.cells(place, system);
    if cells.is_empty() {
        return Entry::Nothing;
    }
    if cells.iter().all(|cell| cell.failed.is_some()) {
        return Entry::Failed;
    }
    if let Some(spread) = figure.and_then(|figure| summary.figure(place, system, figure.name)) {
        let beside = figure.filter(|_| *system != QUORATE);
        let advantage = beside.and_then(|figure| summary.advantage(place, QUORATE, system, figure));
        return Entry::Figure(spread, advantage);
    }
    if figure.map(|figure| figure.name) != chapter.main {
        return Entry::Nothing;
    }
    let names = cells.iter().flat_map(|cell| cell.facts.keys());
    let names: std::collections::BTreeSet<&String> = names.collect();
    let facts: Vec<String> = names
        .into_iter()
        .filter_map(|name| Some(format!("{name}: {}", summary.fact(place, system, name)?)))
        .collect();
    match facts.is_empty() {
        true => Entry::Nothing,
        false => Entry::Fact(facts.join("; ")),
    }
}
