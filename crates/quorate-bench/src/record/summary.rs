//! What the rounds of a run come to: medians with their spread, and ratios taken within a round.

use super::figure::Figure;
use super::{Cell, Place};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A figure over the rounds. `low` ≤ `median` ≤ `high`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
    pub rounds: usize,
}

impl Spread {
    /// None of none; what is no number is left out.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = match values.len() % 2 {
            0 => (values[half - 1] + values[half]) / 2.0,
            _ => values[half],
        };
        // Half of a sum is rounded, and the sum of the largest numbers overflows.
        Some(Spread { low, median: median.clamp(low, high), high, rounds: values.len() })
    }
}

/// The cells of a run, found by place and system.
pub struct Summary<'a> {
    cells: BTreeMap<&'a Place, BTreeMap<&'a str, Vec<&'a Cell>>>,
}

impl<'a> Summary<'a> {
    pub fn new(cells: &'a [Cell]) -> Summary<'a> {
        let mut by_place: BTreeMap<&Place, BTreeMap<&str, Vec<&Cell>>> = BTreeMap::new();
        for cell in cells {
            let systems = by_place.entry(&cell.place).or_default();
            systems.entry(&cell.system).or_default().push(cell);
        }
        Summary { cells: by_place }
    }

    /// All that one test has, in order.
    pub fn places<'b>(&'b self, test: &'b str) -> impl Iterator<Item = &'a Place> + 'b {
        self.cells.keys().copied().filter(move |place| place.test == test)
    }

    /// Systems with cells of a test, by name.
    pub fn systems(&self, test: &str) -> BTreeSet<&'a str> {
        let of_test = self.cells.iter().filter(|(place, _)| place.test == test);
        of_test.flat_map(|(_, systems)| systems.keys().copied()).collect()
    }

    /// The rounds of a system at a place, also those that failed.
    pub fn cells(&self, place: &Place, system: &str) -> &[&'a Cell] {
        self.cells.get(place).and_then(|systems| systems.get(system)).map_or(&[], Vec::as_slice)
    }

    /// A figure of one system at one place.
    pub fn figure(&self, place: &Place, system: &str, figure: &str) -> Option<Spread> {
        Spread::of(values(self.cells(place, system), figure).into_values())
    }

    /// `above` over `below`, in each round that has both.
    pub fn ratio(&self, place: &Place, above: &str, below: &str, figure: &str) -> Option<Spread> {
        self.ratio_between((place, above), (place, below), figure)
    }

    /// The same between places, such as a network and `lan`.
    pub fn ratio_between(
        &self,
        above: (&Place, &str),
        below: (&Place, &str),
        figure: &str,
    ) -> Option<Spread> {
        Spread::of(self.pairs(above, below, figure).iter().map(|(above, below)| above / below))
    }

    /// How good `ours` is beside `theirs`, by [`Figure::advantage`], taken within a round.
    pub fn advantage(
        &self,
        place: &Place,
        ours: &str,
        theirs: &str,
        figure: &Figure,
    ) -> Option<Spread> {
        let pairs = self.pairs((place, ours), (place, theirs), figure.name);
        Spread::of(pairs.iter().map(|(ours, theirs)| figure.advantage(*ours, *theirs)))
    }

    /// Of each round that has both.
    fn pairs(&self, one: (&Place, &str), other: (&Place, &str), figure: &str) -> Vec<(f64, f64)> {
        let others = values(self.cells(other.0, other.1), figure);
        let ones = values(self.cells(one.0, one.1), figure);
        ones.iter().filter_map(|(round, one)| Some((*one, *others.get(round)?))).collect()
    }

    /// What is no number, where all rounds say the same; else each round's, one after the other.
    pub fn fact(&self, place: &Place, system: &str, name: &str) -> Option<String> {
        let cells = self.cells(place, system);
        let said: Vec<&str> =
            cells.iter().filter_map(|cell| cell.facts.get(name)).map(String::as_str).collect();
        let first = said.first()?;
        let same = said.iter().all(|fact| fact == first);
        Some(if same { (*first).to_owned() } else { said.join(", ") })
    }
}

/// By round, of cells that have it.
fn values(cells: &[&Cell], figure: &str) -> BTreeMap<u32, f64> {
    let value = |cell: &&Cell| Some((cell.round, *cell.figures.get(figure)?));
    cells.iter().filter(|cell| cell.failed.is_none()).filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(system: &str, round: u32, tps: f64) -> Cell {
        let figures = BTreeMap::from([("tps".to_owned(), tps)]);
        Cell { system: system.into(), round, figures, ..Cell::default() }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was half as fast in the second round: the ratio is not.
        let cells =
            [cell("a", 1, 100.0), cell("b", 1, 50.0), cell("a", 2, 50.0), cell("b", 2, 25.0)];
        let summary = Summary::new(&cells);
        let ratio = summary.ratio(&Place::default(), "a", "b", "tps").unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high, ratio.rounds), (2.0, 2.0, 2.0, 2));
    }

    #[test]
    fn a_round_that_lacks_either_or_failed_has_no_ratio() {
        let failed = Cell { failed: Some("no server".into()), ..cell("b", 2, 1.0) };
        let cells = [cell("a", 1, 100.0), cell("a", 2, 100.0), failed];
        let summary = Summary::new(&cells);
        assert_eq!(summary.ratio(&Place::default(), "a", "b", "tps"), None);
        assert_eq!(summary.cells(&Place::default(), "b").len(), 1);
        assert_eq!(summary.figure(&Place::default(), "b", "tps"), None);
    }

    #[test]
    fn facts_that_differ_are_all_told() {
        let with = |round, row: &str| Cell {
            facts: BTreeMap::from([("row".to_owned(), row.to_owned())]),
            ..cell("a", round, 1.0)
        };
        let cells = [with(1, "kept"), with(2, "lost")];
        let fact = |cells| Summary::new(cells).fact(&Place::default(), "a", "row");
        assert_eq!(fact(&cells).unwrap(), "kept, lost");
        assert_eq!(fact(&cells[..1]).unwrap(), "kept");
        assert_eq!(fact(&[]), None);
    }

    proptest! {
        #[test]
        fn a_median_has_as_many_below_as_above(values in prop::collection::vec(-1e12..1e12f64, 1..30)) {
            let spread = Spread::of(values.clone()).unwrap();
            prop_assert!(spread.low <= spread.median && spread.median <= spread.high);
            prop_assert_eq!(spread.rounds, values.len());
            let below = values.iter().filter(|value| **value < spread.median).count();
            let above = values.iter().filter(|value| **value > spread.median).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
            let mut turned = values;
            turned.reverse();
            prop_assert_eq!(Spread::of(turned).unwrap(), spread);
        }

        #[test]
        fn how_fast_the_machine_is_in_a_round_changes_no_ratio(
            rounds in prop::collection::vec((1.0..1e5f64, 1.0..1e5f64, 0.1..10.0f64), 1..8),
        ) {
            let cells = |speed: bool| -> Vec<Cell> {
                rounds.iter().zip(1..).flat_map(|((a, b, factor), round)| {
                    let factor = if speed { *factor } else { 1.0 };
                    [cell("a", round, a * factor), cell("b", round, b * factor)]
                }).collect()
            };
            let (even, uneven) = (cells(false), cells(true));
            let ratio = |cells: &[Cell]| {
                Summary::new(cells).ratio(&Place::default(), "a", "b", "tps").unwrap().median
            };
            prop_assert!((ratio(&even) / ratio(&uneven) - 1.0).abs() < 1e-9);
        }
    }
}
