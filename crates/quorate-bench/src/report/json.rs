//! Everything for programs: `results.json`.

use super::chapter::Chapter;
use super::goals::{self, Outcome};
use super::standing::{standings, Standing, QUORATE};
use super::Told;
use crate::published::{judge, rows_at, Check, Row};
use crate::record::figure::COSTS;
use crate::record::{Cell, Place, Run, Spread};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Serialize)]
struct Json<'a> {
    run: &'a Run,
    warnings: &'a [String],
    goals: Vec<Outcome>,
    tests: Vec<JsonTest>,
    medians: Vec<Median<'a>>,
    ratios: Vec<Ratio<'a>>,
    /// At the places of the run.
    published: Vec<&'static Row>,
    cells: &'a [Cell],
}

#[derive(Serialize)]
struct JsonTest {
    test: &'static str,
    published: &'static str,
    shape: &'static str,
    checks: Vec<Check>,
    quorate: Vec<Standing>,
}

#[derive(Serialize)]
struct Median<'a> {
    #[serde(flatten)]
    place: &'a Place,
    system: &'a str,
    figure: &'a str,
    #[serde(flatten)]
    spread: Spread,
}

/// Quorate's figure divided by the peer's, within each round.
#[derive(Serialize)]
struct Ratio<'a> {
    #[serde(flatten)]
    place: &'a Place,
    peer: &'a str,
    figure: &'static str,
    #[serde(flatten)]
    spread: Spread,
}

pub(super) fn json(told: &Told) -> Result<Vec<u8>> {
    let tests = told.chapters().map(|chapter| {
        let judgement = judge(chapter.test, &told.summary);
        JsonTest {
            test: chapter.test,
            published: judgement.published,
            shape: judgement.shape().words(),
            checks: judgement.checks,
            quorate: standings(chapter, &told.summary, &told.order),
        }
    });
    let json = Json {
        run: &told.results.run,
        warnings: &told.results.warnings,
        goals: goals::outcomes(told),
        tests: tests.collect(),
        medians: medians(told),
        ratios: told.chapters().flat_map(|chapter| ratios(told, chapter)).collect(),
        published: published(told),
        cells: &told.results.cells,
    };
    serde_json::to_vec_pretty(&json).context("results as JSON")
}

fn published(told: &Told) -> Vec<&'static Row> {
    let places: BTreeSet<&Place> = told.results.cells.iter().map(|cell| &cell.place).collect();
    let mut rows: Vec<&Row> = Vec::new();
    for row in places.into_iter().flat_map(rows_at) {
        // One without a number of clients belongs to several places.
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

fn medians<'a>(told: &Told<'a>) -> Vec<Median<'a>> {
    let mut points: BTreeSet<(&Place, &str, &str)> = BTreeSet::new();
    for cell in &told.results.cells {
        for figure in cell.figures.keys() {
            points.insert((&cell.place, &cell.system, figure));
        }
    }
    points
        .into_iter()
        .filter_map(|(place, system, figure)| {
            let spread = told.summary.figure(place, system, figure)?;
            Some(Median { place, system, figure, spread })
        })
        .collect()
}

/// Of the figures that have tables, and of the costs.
fn ratios<'a>(told: &'a Told, chapter: &Chapter) -> Vec<Ratio<'a>> {
    let mut ratios = Vec::new();
    for place in told.summary.places(chapter.test) {
        for peer in told.order.iter().filter(|system| *system != QUORATE) {
            for figure in chapter.main.iter().chain(chapter.too).chain(COSTS).copied() {
                let spread = told.summary.ratio(place, QUORATE, peer, figure);
                ratios.extend(spread.map(|spread| Ratio { place, peer, figure, spread }));
            }
        }
    }
    ratios
}
