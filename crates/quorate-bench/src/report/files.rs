//! The same as the page, as CSV and as Markdown.

use super::chapter::Chapter;
use super::goals;
use super::grid::{Entry, Grid};
use super::short;
use super::standing::times;
use super::verdict::{shape_words, stand_lines, Overall};
use super::Told;
use crate::published::judge;
use crate::record::figure::{self, Figure, COSTS};
use crate::record::{Place, Results};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A cell a line; a column for each figure and fact that any cell has.
pub(super) fn csv(results: &Results) -> Result<Vec<u8>> {
    let cells = &results.cells;
    let figures: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.figures.keys()).collect();
    let facts: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.facts.keys()).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let fixed = ["test", "network", "members", "load", "clients", "system", "round", "primary"];
    let names = fixed.into_iter().chain(["began_with", "began_s", "took_s", "failed"]);
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
            cell.began_with.clone().unwrap_or_default(),
            if cell.began_s > 0 { cell.began_s.to_string() } else { String::new() },
            format!("{:.1}", cell.took_s),
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
        "# Replication, measured side by side\n\n{}, {}.\n",
        told.began(),
        run.machine.line()
    );
    for invocation in &run.invocations {
        let _ = writeln!(text, "    {}", invocation.command);
    }
    let _ = writeln!(text, "\n**{}** {}\n", overall.headline(), overall.remarks());
    for peer in overall.peers() {
        let _ = writeln!(text, "* {peer}");
    }
    let short = short::table(told);
    if !short.is_empty() {
        let _ = writeln!(text, "\nThroughput of write_only, transactions/s:\n\n{short}");
    }
    text += &goals::markdown(told);
    for chapter in told.chapters() {
        let judgement = judge(chapter.test, &told.summary);
        let _ = writeln!(text, "\n## {}: {}\n", chapter.test, chapter.title);
        let _ = writeln!(text, "{}\n", told.stage(chapter));
        if !judgement.published.is_empty() {
            let _ = writeln!(text, "Published: {}", judgement.published);
        }
        let _ = writeln!(text, "Here: {}.\n", shape_words(&judgement));
        for (peer, words) in stand_lines(told, chapter) {
            let peer = peer.map(|peer| format!("beside {}: ", told.title(&peer)));
            let _ = writeln!(text, "* {}{words}", peer.unwrap_or_default());
        }
        if let Some(differs) = told.differs(chapter) {
            let _ = writeln!(text, "\nOtherwise than published: {differs}.");
        }
        for figure in told.tables(chapter) {
            text += &markdown_table(&caption(figure), &table(told, chapter, figure));
        }
        let costs = costs(told, chapter);
        if !costs.1.is_empty() {
            text += &markdown_table("What a transaction costs, all nodes together", &costs);
        }
    }
    text
}

/// Head and rows.
type Table = (Vec<String>, Vec<Vec<String>>);

fn markdown_table(caption: &str, (head, rows): &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
    let rule = format!("|---|{}\n", "---:|".repeat(head.len() - 1));
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("\n{caption}\n\n{}{rule}{rows}", line(head))
}

/// By place and system, with spreads.
fn costs(told: &Told, chapter: &Chapter) -> Table {
    let figures: Vec<&Figure> = COSTS.iter().filter_map(|name| figure::named(name)).collect();
    let titles = figures.iter().map(|figure| figure.title_with_unit());
    let head = ["", "system"].map(str::to_owned).into_iter().chain(titles).collect();
    let mut rows = Vec::new();
    for place in told.summary.places(chapter.test) {
        for system in told.systems(chapter.test) {
            let cost = |figure: &&Figure| {
                let spread = told.summary.figure(place, &system, figure.name)?;
                let range = figure.show_range(&spread).map(|range| format!(" [{range}]"));
                let rounds = told.of_rounds(chapter, &spread).map(|rounds| format!(" {rounds}"));
                let (range, rounds) = (range.unwrap_or_default(), rounds.unwrap_or_default());
                Some(format!("{}{range}{rounds}", figure.show(spread.median)))
            };
            let costs: Vec<Option<String>> = figures.iter().map(cost).collect();
            if costs.iter().any(Option::is_some) {
                let costs = costs.into_iter().map(Option::unwrap_or_default);
                rows.push([place.words(), told.title(&system)].into_iter().chain(costs).collect());
            }
        }
    }
    (head, rows)
}

/// A table of its own for the compared figure, and for each that stands beside it.
fn caption(figure: Option<&Figure>) -> String {
    match figure {
        Some(figure) => format!(
            "{}; [least–most of the rounds], (Quorate beside it), rounds of all if some failed",
            figure.title_with_unit()
        ),
        None => "What became of it".to_owned(),
    }
}

fn table(told: &Told, chapter: &Chapter, figure: Option<&'static Figure>) -> Table {
    let grid = Grid::new(chapter, figure, &told.summary, &told.order);
    let systems = grid.systems.iter().map(|system| told.title(system));
    let head = [String::new()].into_iter().chain(systems).collect();
    let words = |entry: &Entry| {
        let mut words = entry.words_with_spread(figure);
        if let Some((_, ratio)) = entry.side() {
            words += &format!(" ({})", times(ratio));
        }
        if let Entry::Figure(spread, _) = entry {
            words.extend(told.of_rounds(chapter, spread).map(|rounds| format!(" {rounds}")));
        }
        words
    };
    let row = |(place, entries): &(&Place, Vec<Entry>)| {
        [place.words()].into_iter().chain(entries.iter().map(words)).collect()
    };
    (head, grid.rows.iter().map(row).collect())
}
