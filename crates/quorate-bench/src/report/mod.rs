//! A run for people: one page, and the same as JSON, CSV, Markdown and for the terminal.
//!
//! ```text
//! OUT/report.html     the verdict first; needs nothing but itself
//! OUT/results.json    all of it: run, cells, medians, ratios, judgements, goals, what was published
//! OUT/cells.csv       a cell a line
//! OUT/summary.md      verdict and tables
//! OUT/throughput.svg  one picture, for other pages; only of a run with the load that it shows
//! ```
//!
//! * [`CHAPTERS`]: what is told of each test.
//! * `standing`: where Quorate stands, `goals`: and where it is to stand; `crate::published` judges the peers.
//! * `grid`: a figure of a test by place and system, from which page, terminal and Markdown draw their tables.

mod chapter;
mod charts;
mod files;
mod goals;
mod grid;
mod json;
mod settings;
mod shares;
mod short;
mod standing;
mod tables;
mod terminal;
mod verdict;

pub use chapter::{Chapter, CHAPTERS};
pub use standing::{Side, Standing};

use crate::record::figure::{self, Figure};
use crate::record::{Results, Spread, Summary};
use anyhow::{Context, Result};
use maud::{html, Markup};
use quorate_report::chart::Chart;
use quorate_report::page::{Page, Section};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const PICTURE_WIDTH: u32 = 900;

/// What is told, and all that it takes to tell it.
struct Told<'a> {
    results: &'a Results,
    summary: Summary<'a>,
    /// All systems, in the order of the run.
    order: Vec<String>,
    /// As many as each test has; a figure may be of fewer.
    rounds: BTreeMap<&'a str, usize>,
}

/// Writes all files of a report.
pub fn write(results: &Results, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    let results = &shares::added(results);
    let told = Told::new(results);
    let save = |name: &str, bytes: Vec<u8>| {
        let path = out.join(name);
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
    };
    if let Some(picture) = charts::picture(&told) {
        save("throughput.svg", picture.file(PICTURE_WIDTH).into_bytes())?;
    }
    save("report.html", told.page().html().into_bytes())?;
    save("results.json", json::json(&told)?)?;
    save("cells.csv", files::csv(results)?)?;
    save("summary.md", files::markdown(&told).into_bytes())
}

/// The table of `summary.md` that other pages show, too, in Markdown.
pub fn short(results: &Results) -> String {
    short::table(&Told::new(results))
}

/// A short table.
pub fn terminal(results: &Results) -> String {
    terminal::text(&Told::new(results))
}

impl<'a> Told<'a> {
    fn new(results: &'a Results) -> Told<'a> {
        let mut order: Vec<String> =
            results.run.systems.iter().map(|setup| setup.name.clone()).collect();
        for cell in &results.cells {
            if !order.contains(&cell.system) {
                order.push(cell.system.clone());
            }
        }
        let mut rounds = BTreeMap::new();
        for cell in &results.cells {
            let of_test: &mut usize = rounds.entry(cell.place.test.as_str()).or_default();
            *of_test = (*of_test).max(cell.round as usize);
        }
        Told { results, summary: Summary::new(&results.cells), order, rounds }
    }

    /// Nothing, or of how many of the test's rounds a figure is: `2/3`.
    fn of_rounds(&self, chapter: &Chapter, spread: &Spread) -> Option<String> {
        let all = self.rounds.get(chapter.test).copied().unwrap_or(0);
        (spread.rounds < all).then(|| format!("{}/{all}", spread.rounds))
    }

    /// What has a table of its own: the compared figure, or facts, then those beside it that any cell has.
    fn tables(&self, chapter: &Chapter) -> Vec<Option<&'static Figure>> {
        let too = chapter.too.iter().filter_map(|name| figure::named(name));
        let too = tables::measured(self, chapter, too).into_iter().map(Some);
        std::iter::once(chapter.main()).chain(too).collect()
    }

    /// What is otherwise in this run than in what was published.
    fn differs(&self, chapter: &Chapter) -> Option<&str> {
        self.results.run.settings.get(chapter.test)?.differs.as_deref()
    }

    /// When it began.
    fn began(&self) -> &str {
        self.results.run.invocations.first().map_or("", |first| &first.began)
    }

    /// Of all tests, where they have the same.
    fn grids(&self) -> String {
        let settings = self.results.run.settings.values();
        let grids: BTreeSet<&str> = settings.map(|settings| settings.grid.as_str()).collect();
        grids.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// From the first host to the nearest other one and back, and a sync there, as both were measured.
    fn round_trip_and_sync_us(&self, network: &str) -> Option<f64> {
        let mut networks = self.results.run.networks.iter();
        let [second, third, _] = networks.find(|measured| measured.name == network)?.measured_ms;
        let sync_us = self.results.run.machine.sync_us;
        // A commit of a server that syncs has a sync: if that is less, the sync was measured on a busy machine.
        let commits = self.summary.places("latency").filter_map(|place| {
            Some(self.summary.figure(place, "standalone", "commit_us")?.median)
        });
        let most = commits.fold(f64::INFINITY, f64::min);
        (sync_us > 0.0 && sync_us < most).then(|| second.min(third) * 1e3 + sync_us)
    }

    /// Those with cells of a test.
    fn systems(&self, test: &str) -> Vec<String> {
        let here = self.summary.systems(test);
        self.order.iter().filter(|system| here.contains(system.as_str())).cloned().collect()
    }

    fn title(&self, system: &str) -> String {
        let mut setups = self.results.run.systems.iter();
        let setup = setups.find(|setup| setup.name == system);
        let title = setup.map(|setup| setup.title.clone()).filter(|title| !title.is_empty());
        title.unwrap_or_else(|| system.to_owned())
    }

    /// Where the clients of a test were, who led, and whose members encrypt what they say to each other.
    fn stage(&self, chapter: &Chapter) -> String {
        let cells = self.results.cells.iter().filter(|cell| cell.place.test == chapter.test);
        let primaries: BTreeSet<&str> = cells.filter_map(|cell| cell.primary.as_deref()).collect();
        let primaries: Vec<&str> = primaries.into_iter().collect();
        let here = self.systems(chapter.test);
        let setups = self.results.run.systems.iter();
        let encrypted: Vec<String> = setups
            .filter(|setup| setup.encrypted && here.contains(&setup.name))
            .map(|setup| self.title(&setup.name))
            .collect();
        let encrypted = match &encrypted[..] {
            [] => "by nobody".to_owned(),
            all => format!("by these alone: {}", all.join("; ")),
        };
        format!(
            "Clients: {}. Primary: {}. Connections between members are encrypted {encrypted}.",
            chapter.clients,
            primaries.join(", ")
        )
    }

    /// Tests that have cells.
    fn chapters(&self) -> impl Iterator<Item = &'static Chapter> + '_ {
        CHAPTERS.iter().filter(|chapter| self.summary.places(chapter.test).next().is_some())
    }

    fn page(&self) -> Page {
        let run = &self.results.run;
        let mut sections = vec![Section {
            id: "verdict".into(),
            title: "Verdict, test by test".into(),
            body: verdict::tests(self),
        }];
        sections.extend(goals::section(self));
        sections.extend(self.chapters().map(|chapter| Section {
            id: chapter.test.to_owned(),
            title: format!("{}: {}", chapter.test, chapter.title),
            body: self.chapter(chapter),
        }));
        sections.extend(settings::sections(self));
        let overall = verdict::Overall::of(self);
        Page {
            title: "Replication, measured side by side".into(),
            about: html! {
                (self.began()) " · " (run.machine.line())
                @let grids = self.grids();
                @if !grids.is_empty() { " · " (grids) " grid" }
                @for invocation in &run.invocations { br; code { (invocation.command) } }
            },
            tone: overall.tone(),
            verdict: overall.markup(),
            sections,
        }
    }

    fn chapter(&self, chapter: &Chapter) -> Markup {
        html! {
            p { (chapter.what) }
            p.small.faint { (self.stage(chapter)) }
            (verdict::of_chapter(self, chapter))
            (charts::charts(self, chapter))
            (tables::tables(self, chapter))
        }
    }
}

#[cfg(test)]
mod tests;
