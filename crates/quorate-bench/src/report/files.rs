//! The same as the page, for programs and for the terminal.

use super::chapter::Chapter;
use super::grid::{Entry, Grid};
use super::standing::{standings, times, Standing};
use super::verdict::{shape_words, stand_lines, Overall};
use super::Told;
use crate::published::judge;
use crate::record::{Cell, Place, Results, Run};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Rows of a test's table on the terminal.
const ROWS_SHOWN: usize = 16;

#[derive(Serialize)]
struct Json<'a> {
    run: &'a Run,
    warnings: &'a [String],
    tests: Vec<JsonTest>,
    medians: Vec<Median<'a>>,
    cells: &'a [Cell],
}

#[derive(Serialize)]
struct JsonTest {
    test: &'static str,
    published: &'static str,
    shape: &'static str,
    checks: Vec<JsonCheck>,
    quorate: Vec<Standing>,
}

#[derive(Serialize)]
struct JsonCheck {
    published: String,
    here: String,
    holds: Option<bool>,
}

#[derive(Serialize)]
struct Median<'a> {
    #[serde(flatten)]
    place: &'a Place,
    system: &'a str,
    figure: &'a str,
    low: f64,
    median: f64,
    high: f64,
    rounds: usize,
}

pub(super) fn json(told: &Told) -> Result<Vec<u8>> {
    let tests = told.chapters().map(|chapter| {
        let judgement = judge(chapter.test, &told.summary);
        let shape = judgement.shape().words();
        let check = |check: crate::published::Check| JsonCheck {
            published: check.published,
            here: check.here,
            holds: check.holds,
        };
        JsonTest {
            test: chapter.test,
            published: judgement.published,
            shape,
            checks: judgement.checks.into_iter().map(check).collect(),
            quorate: standings(chapter, &told.summary, &told.order),
        }
    });
    let json = Json {
        run: &told.results.run,
        warnings: &told.results.warnings,
        tests: tests.collect(),
        medians: medians(told),
        cells: &told.results.cells,
    };
    serde_json::to_vec_pretty(&json).context("results as JSON")
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
            let (low, median, high) = (spread.low, spread.median, spread.high);
            Some(Median { place, system, figure, low, median, high, rounds: spread.rounds })
        })
        .collect()
}

/// A cell a line; a column for each figure and fact that any cell has.
pub(super) fn csv(results: &Results) -> Result<Vec<u8>> {
    let cells = &results.cells;
    let figures: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.figures.keys()).collect();
    let facts: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.facts.keys()).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let fixed = ["test", "network", "members", "load", "clients", "system", "round", "primary"];
    let names = fixed.into_iter().chain(["failed"]);
    let columns = names.map(str::to_owned).chain(figures.iter().map(|name| (*name).clone()));
    writer.write_record(columns.chain(facts.iter().map(|name| format!("fact {name}"))))?;
    for cell in cells {
        let Place { test, network, members, load, clients } = &cell.place;
        let mut record = vec![
            test.clone(),
            network.clone(),
            members.to_string(),
            load.clone(),
            clients.to_string(),
            cell.system.clone(),
            cell.round.to_string(),
            cell.primary.clone().unwrap_or_default(),
            cell.failed.clone().unwrap_or_default(),
        ];
        let figure = |name: &&String| cell.figures.get(*name).map(f64::to_string);
        record.extend(figures.iter().map(|name| figure(name).unwrap_or_default()));
        record.extend(facts.iter().map(|name| cell.facts.get(*name).cloned().unwrap_or_default()));
        writer.write_record(record)?;
    }
    writer.into_inner().map_err(|error| error.into_error()).context("cells as CSV")
}

pub(super) fn markdown(told: &Told) -> String {
    let run = &told.results.run;
    let overall = Overall::of(told);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "# Replication, measured side by side\n\n`{}`, {}, {}.\n\n**{}** {} {}\n",
        run.command,
        run.began,
        run.machine.line(),
        overall.headline(),
        overall.shapes(),
        overall.failures()
    );
    for peer in overall.peers() {
        let _ = writeln!(text, "* {peer}");
    }
    for chapter in told.chapters() {
        let judgement = judge(chapter.test, &told.summary);
        let _ = writeln!(text, "\n## {}: {}\n", chapter.test, chapter.title);
        if !judgement.published.is_empty() {
            let _ = writeln!(text, "Published: {}", judgement.published);
        }
        let _ = writeln!(text, "Here: {}.\n", shape_words(&judgement));
        for (peer, words) in stand_lines(told, chapter) {
            let peer = peer.map(|peer| format!("beside {}: ", told.title(&peer)));
            let _ = writeln!(text, "* {}{words}", peer.unwrap_or_default());
        }
        let (head, rows) = table(told, chapter);
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        let rule = format!("|---|{}\n", "---:|".repeat(head.len() - 1));
        let rows: String = rows.iter().map(|row| line(row)).collect();
        let _ = write!(text, "\n{}\n\n{}{rule}{rows}", caption(chapter), line(&head));
    }
    text
}

fn caption(chapter: &Chapter) -> String {
    match chapter.main() {
        Some(figure) if figure.unit.is_empty() => figure.title.to_owned(),
        Some(figure) => format!("{}; in brackets: Quorate beside it", figure.title_with_unit()),
        None => "What became of it".to_owned(),
    }
}

/// Of the compared figure: head and rows.
fn table(told: &Told, chapter: &Chapter) -> (Vec<String>, Vec<Vec<String>>) {
    let grid = Grid::new(chapter, &told.summary, &told.order);
    let systems = grid.systems.iter().map(|system| told.title(system));
    let head = [String::new()].into_iter().chain(systems).collect();
    let words = |entry: &Entry| {
        let words = entry.words(chapter.main());
        match entry.side() {
            Some((_, ratio)) => format!("{words} ({})", times(ratio)),
            None => words,
        }
    };
    let row = |(place, entries): &(&Place, Vec<Entry>)| {
        [place.words()].into_iter().chain(entries.iter().map(words)).collect()
    };
    (head, grid.rows.iter().map(row).collect())
}

pub(super) fn terminal(told: &Told) -> String {
    let overall = Overall::of(told);
    let mut text = String::new();
    for chapter in told.chapters() {
        let (head, rows) = table(told, chapter);
        let left_out = rows.len().saturating_sub(ROWS_SHOWN);
        let mut lines = vec![head];
        lines.extend(rows.into_iter().take(ROWS_SHOWN));
        let width =
            |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
        let _ = writeln!(text, "{}: {}", chapter.test, caption(chapter));
        for line in &lines {
            let _ = write!(text, "  {:<width$}", line[0], width = widths[0]);
            for (cell, width) in line.iter().zip(&widths).skip(1) {
                let _ = write!(text, "  {cell:>width$}");
            }
            text.push('\n');
        }
        if left_out > 0 {
            let _ = writeln!(text, "  and {left_out} more in the report");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}\n{} {}", overall.headline(), overall.shapes(), overall.failures());
    text
}
