//! The tables of a test: the compared figure by place and system, those beside it, then every figure.

use super::chapter::Chapter;
use super::grid::{Entry, Grid};
use super::standing::{times, Side};
use super::Told;
use crate::published::{rows_at, Row};
use crate::record::figure::{self, Figure, COSTS, FIGURES};
use crate::record::{Place, Spread};
use maud::{html, Markup};
use quorate_report::page::{self, Tone};
use std::collections::BTreeSet;

pub(super) fn tables(told: &Told, chapter: &Chapter) -> Markup {
    html! {
        @if let Some(differs) = told.differs(chapter) {
            p.small { (page::badge(Tone::Warn, "otherwise than published")) " " (differs) "." }
        }
        @for figure in told.tables(chapter) { (compared(told, chapter, figure)) }
        (costs(told, chapter))
        (everything(told, chapter))
        (published(told, chapter))
    }
}

/// Places down, systems across; medians, spreads, and how Quorate stands beside each.
fn compared(told: &Told, chapter: &Chapter, figure: Option<&'static Figure>) -> Markup {
    let grid = Grid::new(chapter, figure, &told.summary, &told.order);
    let theirs = published_systems(&grid, figure);
    let table = html! { table {
        thead { tr {
            th { "" }
            @for system in &grid.systems { th.n { (page::system(system, &told.title(system))) } }
            @for system in &theirs { th.n { (page::system(system, &format!("{system}, published"))) } }
        } }
        tbody { @for (place, entries) in &grid.rows { tr {
            th { (place.words()) }
            @for entry in entries { (cell(told, chapter, figure, entry)) }
            @for system in &theirs {
                td.n { @if let Some(row) = find(place, system, figure) {
                    (figure.map_or_else(String::new, |figure| figure.show(row.value)))
                } }
            }
        } } }
    } };
    html! {
        h3 { (figure.map_or_else(|| "What became of it".to_owned(), Figure::title_with_unit)) }
        @if figure.is_some() {
            p.small.faint {
                "Median, least to most of the rounds, and Quorate beside it: "
                (better(figure)) ", so above 1 is for Quorate."
            }
        }
        (page::scroll(table))
    }
}

fn better(figure: Option<&Figure>) -> &'static str {
    match figure.map(|figure| figure.better) {
        Some(figure::Better::Lower) => "lower is better",
        _ => "higher is better",
    }
}

fn cell(told: &Told, chapter: &Chapter, figure: Option<&Figure>, entry: &Entry) -> Markup {
    let words = entry.words(figure);
    let class = match entry {
        Entry::Failed => "bad",
        _ => "",
    };
    let advantage = entry.side().map(|(side, ratio)| {
        let class = match side {
            Side::Ahead => "good",
            Side::Level => "",
            Side::Behind => "bad",
        };
        (class, times(ratio))
    });
    html! { td.n.(class) {
        (words)
        @if let (Entry::Figure(spread, _), Some(figure)) = (entry, figure) {
            (ranged(told, chapter, spread, figure))
        }
        @if let Some((class, ratio)) = advantage {
            small style=(colour(class)) { "Quorate " (ratio) }
        }
    } }
}

/// From least to most, and of how many rounds where some have failed.
fn ranged(told: &Told, chapter: &Chapter, spread: &Spread, figure: &Figure) -> Markup {
    html! {
        @if let Some(range) = figure.show_range(spread) { small { (range) } }
        @if let Some(rounds) = told.of_rounds(chapter, spread) { small { (rounds) " rounds" } }
    }
}

fn colour(class: &str) -> String {
    match class {
        "" => String::new(),
        name => format!("color:var(--{name})"),
    }
}

fn published_systems(grid: &Grid, figure: Option<&Figure>) -> Vec<&'static str> {
    let Some(figure) = figure else { return Vec::new() };
    let rows = grid.rows.iter().flat_map(|(place, _)| rows_at(place));
    let systems: BTreeSet<&str> =
        rows.filter(|row| row.figure == figure.name).map(|row| row.system.as_str()).collect();
    systems.into_iter().collect()
}

fn find(place: &Place, system: &str, figure: Option<&Figure>) -> Option<&'static Row> {
    let figure = figure?;
    rows_at(place).find(|row| row.system == system && row.figure == figure.name)
}

/// What a transaction costs: it depends least on how busy the machine is.
fn costs(told: &Told, chapter: &Chapter) -> Markup {
    let names = COSTS.iter().filter_map(|name| figure::named(name));
    let figures = measured(told, chapter, names);
    if figures.is_empty() {
        return Markup::default();
    }
    let table = html! { table {
        thead { tr {
            th { "" } th { "" }
            @for figure in &figures { th.n { (figure.title) small { (figure.unit) } } }
        } }
        tbody { @for (place, system, first) in lines(told, chapter) { tr.first[first] {
            th { @if first { (place.words()) } }
            td { (page::system(&system, &told.title(&system))) }
            @for figure in &figures {
                td.n { @if let Some(spread) = told.summary.figure(place, &system, figure.name) {
                    (figure.show(spread.median)) (ranged(told, chapter, &spread, figure))
                } }
            }
        } } }
    } };
    html! { h3 { "What a transaction costs, all nodes together" } (page::scroll(table)) }
}

/// Every figure that any cell has, those of the chapter first.
fn everything(told: &Told, chapter: &Chapter) -> Markup {
    let of_chapter: Vec<&Figure> = chapter.figures().collect();
    let known = |figure: &&Figure| of_chapter.iter().any(|of| of.name == figure.name);
    let others = FIGURES.iter().filter(|figure| !known(figure));
    let figures = measured(told, chapter, of_chapter.iter().copied().chain(others));
    if figures.is_empty() {
        return Markup::default();
    }
    let table = html! { table {
        thead { tr {
            th { "" } th { "" } th { "primary" }
            @for figure in &figures { th.n { (figure.title) small { (figure.unit) } } }
            th { "also" }
        } }
        tbody { @for (place, system, first) in lines(told, chapter) { tr.first[first] {
            th { @if first { (place.words()) } }
            td { (page::system(&system, &told.title(&system))) }
            td { (primary(told, place, &system)) }
            @for figure in &figures {
                td.n { @if let Some(spread) = told.summary.figure(place, &system, figure.name) {
                    (figure.show(spread.median)) (ranged(told, chapter, &spread, figure))
                } }
            }
            td { (also(told, place, &system)) }
        } } }
    } };
    html! { details.wide { summary { "Every figure" } (page::scroll(table)) } }
}

/// Those of the figures that any cell of the test has.
pub(super) fn measured(
    told: &Told,
    chapter: &Chapter,
    figures: impl Iterator<Item = &'static Figure>,
) -> Vec<&'static Figure> {
    let cells = told.results.cells.iter();
    let cells = cells.filter(|cell| cell.place.test == chapter.test && cell.failed.is_none());
    let names: BTreeSet<&String> = cells.flat_map(|cell| cell.figures.keys()).collect();
    figures.filter(|figure| names.iter().any(|name| **name == figure.name)).collect()
}

/// Each system with cells at each place, and whether it is the first there.
fn lines<'a>(told: &Told<'a>, chapter: &Chapter) -> Vec<(&'a Place, String, bool)> {
    let mut lines: Vec<(&Place, String, bool)> = Vec::new();
    let systems = told.systems(chapter.test);
    for place in told.summary.places(chapter.test) {
        for system in &systems {
            if !told.summary.cells(place, system).is_empty() {
                let first = lines.last().is_none_or(|(last, ..)| *last != place);
                lines.push((place, system.clone(), first));
            }
        }
    }
    lines
}

/// Of all rounds.
fn primary(told: &Told, place: &Place, system: &str) -> String {
    let cells = told.summary.cells(place, system);
    let primaries: BTreeSet<&str> =
        cells.iter().filter_map(|cell| cell.primary.as_deref()).collect();
    primaries.into_iter().collect::<Vec<_>>().join(", ")
}

/// What is no number, and how many rounds failed.
fn also(told: &Told, place: &Place, system: &str) -> String {
    let cells = told.summary.cells(place, system);
    let names: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.facts.keys()).collect();
    let mut words: Vec<String> = names
        .into_iter()
        .filter_map(|name| Some(format!("{name}: {}", told.summary.fact(place, system, name)?)))
        .collect();
    let failed = cells.iter().filter(|cell| cell.failed.is_some()).count();
    if failed > 0 {
        words.push(format!("{failed} of {} rounds failed", cells.len()));
    }
    words.join("; ")
}

/// What was published at these places besides the compared figure.
fn published(told: &Told, chapter: &Chapter) -> Markup {
    let rows: Vec<&Row> = told
        .summary
        .places(chapter.test)
        .flat_map(rows_at)
        .filter(|row| Some(row.figure) != chapter.main && !chapter.too.contains(&row.figure))
        .collect();
    html! { @if !rows.is_empty() {
        h4 { "Also published" }
        (page::scroll(html! { table {
            thead { tr { th {} th { "system" } th { "figure" } th.n { "published" } th.n { "here" } } }
            tbody { @for row in rows { @if let Some(figure) = figure::named(row.figure) { tr {
                td { (row.place.words()) }
                td { (page::system(&row.system, &row.system)) }
                td { (figure.title_with_unit()) }
                td.n { (figure.show(row.value)) }
                td.n { @if let Some(spread) = here(told, row) { (figure.show(spread.median)) } }
            } } } }
        } }))
    } }
}

fn here(told: &Told, row: &Row) -> Option<Spread> {
    let mut places = told.summary.places(&row.place.test);
    let place = places.find(|place| rows_at(place).any(|there| there == row))?;
    told.summary.figure(place, &row.system, row.figure)
}
