//! The charts of a test.

use super::chapter::{Chapter, Drawn, CHAPTERS};
use super::shares::{LAN, SHARE};
use super::Told;
use crate::published::rows_at;
use crate::record::figure::{self, Figure, COMMIT_PARTS};
use crate::record::{Cell, Place, Spread};
use crate::system::VARIANTS;
use maud::{html, Markup};
use quorate_report::chart::{Axis, Bar, Bars, Group, Lines, Mark, Sample, Series};
use quorate_report::look::Colour;
use quorate_report::page;
use std::collections::BTreeSet;

/// All charts of a test, one beneath the other.
pub(super) fn charts(told: &Told, chapter: &Chapter) -> Markup {
    let Some(figure) = chapter.main() else { return Markup::default() };
    match chapter.drawn {
        Drawn::OverClients => {
            let lines = over(told, chapter, figure, |place| place.clients);
            html! { (lines) (shares(told, chapter, figure)) }
        }
        Drawn::OverMembers => over(told, chapter, figure, |place| place.members as u32),
        Drawn::OverTime => html! { (bars(told, chapter, figure)) (curves(told, chapter)) },
        Drawn::Bars => bars(told, chapter, figure),
        Drawn::Parts => parts(told, chapter, figure),
        Drawn::No => Markup::default(),
    }
}

fn sample(x: u32, spread: Spread) -> Sample {
    Sample { x: f64::from(x), y: spread.median, low: spread.low, high: spread.high }
}

/// The places of a test by network and load: those of a chart.
fn places_of_charts<'a>(told: &Told<'a>, chapter: &Chapter) -> Vec<Vec<&'a Place>> {
    let mut charts: Vec<Vec<&Place>> = Vec::new();
    for place in told.summary.places(chapter.test) {
        let like = |chart: &&mut Vec<&Place>| {
            (&chart[0].network, &chart[0].load) == (&place.network, &place.load)
        };
        match charts.iter_mut().find(like) {
            Some(chart) => chart.push(place),
            None => charts.push(vec![place]),
        }
    }
    charts
}

/// A mark at each value that a place of the chart has.
fn ticks(places: &[&Place], x: fn(&Place) -> u32) -> Vec<f64> {
    let values: BTreeSet<u32> = places.iter().map(|place| x(place)).collect();
    values.into_iter().map(f64::from).collect()
}

/// A chart for each network and load: lines over one number of the place.
fn over(told: &Told, chapter: &Chapter, figure: &Figure, x: fn(&Place) -> u32) -> Markup {
    let chart = |places: Vec<&Place>| {
        let series = told.systems(chapter.test).into_iter().filter_map(|system| {
            let point = |place: &&Place| {
                Some(sample(x(place), told.summary.figure(place, &system, figure.name)?))
            };
            let points: Vec<Sample> = places.iter().filter_map(point).collect();
            (!points.is_empty()).then(|| Series {
                name: told.title(&system),
                colour: Colour::of_system(&system),
                points,
                published: false,
                marked: true,
            })
        });
        let x_axis = match chapter.drawn {
            Drawn::OverMembers => Axis::linear("members"),
            _ => Axis::log("clients"),
        };
        Lines::new(
            format!("{}, {}", places[0].network, places[0].load),
            x_axis.with_ticks(ticks(&places, x)),
            Axis::log(&figure.title_with_unit()),
            series.collect(),
        )
    };
    let charts: Vec<Lines> = places_of_charts(told, chapter).into_iter().map(chart).collect();
    page::figures(&charts)
}

/// What a network leaves of a system's own throughput on `lan`, beside what was published: a figure
/// that does not depend on the machine.
fn shares(told: &Told, chapter: &Chapter, figure: &Figure) -> Markup {
    let chart = |places: Vec<&Place>| {
        let ours = told.systems(chapter.test).into_iter().map(|system| {
            let share = |place: &&Place| {
                let Spread { median, low, high, .. } =
                    told.summary.figure(place, &system, SHARE)?;
                Some(Sample { x: f64::from(place.clients), y: median, low, high })
            };
            let points = places.iter().filter_map(share).collect();
            (system.clone(), told.title(&system), points, false)
        });
        let theirs = published_shares(&places, figure);
        let series: Vec<Series> = ours
            .chain(theirs)
            .filter(|(_, _, points, _): &Line| !points.is_empty())
            .map(|(system, name, points, published)| {
                let colour = Colour::of_system(&system);
                Series { name, colour, points, published, marked: true }
            })
            .collect();
        let measured = series.iter().any(|series| !series.published);
        let (network, load) = (&places[0].network, &places[0].load);
        measured.then(|| {
            Lines::new(
                format!("{network}, {load}: share of the same system's lan"),
                Axis::log("clients").with_ticks(ticks(&places, |place| place.clients)),
                Axis::linear("% of its throughput on lan"),
                series,
            )
        })
    };
    let mut places = places_of_charts(told, chapter);
    places.retain(|places| places[0].network != LAN);
    let charts: Vec<Lines> = places.into_iter().filter_map(chart).collect();
    html! {
        @if !charts.is_empty() {
            h3 { "What a network leaves of it" }
            p.faint { "Dashed: published." }
        }
        (page::figures(&charts))
    }
}

/// By system: its name, title, points, and that they are published.
type Line = (String, String, Vec<Sample>, bool);

fn published_shares(places: &[&Place], figure: &Figure) -> Vec<Line> {
    let systems: BTreeSet<&str> =
        places.iter().flat_map(|place| rows_at(place)).map(|row| row.system.as_str()).collect();
    let value = |place: &Place, system: &str| {
        let mut rows = rows_at(place);
        let row = rows.find(|row| row.system == system && row.figure == figure.name);
        row.map(|row| row.value)
    };
    let line = |system: &str| {
        let share = |place: &&Place| {
            let lan = Place { network: LAN.into(), ..(*place).clone() };
            let percent = 100.0 * value(place, system)? / value(&lan, system)?;
            Some(Sample::new(f64::from(place.clients), percent))
        };
        let points = places.iter().filter_map(share).collect();
        (system.to_owned(), format!("{system}, published"), points, true)
    };
    systems.into_iter().map(line).collect()
}

/// The number of clients in the picture that stands for the whole, and what they do.
const PICTURED: (&str, u32) = ("write_only", 64);

/// One picture for all: throughput on each network. None without that load.
pub(super) fn picture(told: &Told) -> Option<Bars> {
    let chapter = CHAPTERS.iter().find(|chapter| chapter.test == "oltp")?;
    let is_pictured = |place: &&Place| (place.load.as_str(), place.clients) == PICTURED;
    let places = told.summary.places(chapter.test).filter(is_pictured);
    let mut chart = bars_at(told, chapter, chapter.main()?, places);
    let variants = VARIANTS.map(|variant| told.title(variant));
    for group in &mut chart.groups {
        group.bars.retain(|bar| !variants.contains(&bar.name));
        group.bars.sort_by(|one, other| total(other).total_cmp(&total(one)));
    }
    (!chart.groups.is_empty()).then_some(chart)
}

fn total(bar: &Bar) -> f64 {
    bar.parts.iter().map(|(_, value)| value).sum()
}

/// A bar for each system at each place.
fn bars(told: &Told, chapter: &Chapter, figure: &Figure) -> Markup {
    let chart = bars_at(told, chapter, figure, told.summary.places(chapter.test));
    html! { @if !chart.groups.is_empty() { (page::figure(&chart)) } }
}

fn bars_at<'a>(
    told: &Told,
    chapter: &Chapter,
    figure: &Figure,
    places: impl Iterator<Item = &'a Place>,
) -> Bars {
    let groups = places.map(|place| {
        let bar = |system: String| {
            let cells = told.summary.cells(place, &system);
            let name = told.title(&system);
            match told.summary.figure(place, &system, figure.name) {
                Some(spread) => Some(Bar {
                    name,
                    parts: vec![(Colour::of_system(&system), spread.median)],
                    spread: Some((spread.low, spread.high)),
                    label: figure.show(spread.median),
                }),
                None if cells.iter().any(|cell| cell.failed.is_some()) => {
                    let label = "failed".to_owned();
                    Some(Bar { name, parts: Vec::new(), spread: None, label })
                }
                None => None,
            }
        };
        let bars = told.systems(chapter.test).into_iter().filter_map(bar).collect();
        Group { name: place.words(), bars }
    });
    Bars {
        title: figure.title.to_owned(),
        axis: Axis::linear(&figure.title_with_unit()),
        groups: groups.filter(|group: &Group| !group.bars.is_empty()).collect(),
        kinds: Vec::new(),
    }
}

/// What a commit takes, and of which parts, as far as a system tells them. A chart for each network: beside
/// thirty milliseconds, the parts of one would not be seen.
fn parts(told: &Told, chapter: &Chapter, figure: &Figure) -> Markup {
    // The places are in order, so those of a network stand together.
    let places = told.summary.places(chapter.test);
    let mut networks: Vec<&str> = places.map(|place| place.network.as_str()).collect();
    networks.dedup();
    let charts = networks.into_iter().map(|network| parts_on(told, chapter, figure, network));
    let charts = charts.filter(|chart| !chart.groups.is_empty());
    html! { @for chart in charts { (page::figure(&chart)) } }
}

fn parts_on(told: &Told, chapter: &Chapter, figure: &Figure, network: &str) -> Bars {
    let colour = |number: usize| Colour::nth(number);
    let places = told.summary.places(chapter.test).filter(|place| place.network == network);
    let groups = places.map(|place| {
        let bar = |system: String| {
            let whole = told.summary.figure(place, &system, figure.name)?;
            let part = |name: &str| told.summary.figure(place, &system, name);
            let mut parts: Vec<(Colour, f64)> = COMMIT_PARTS
                .iter()
                .enumerate()
                .filter_map(|(number, name)| Some((colour(number), part(name)?.median)))
                .collect();
            let told_of: f64 = parts.iter().map(|(_, value)| value).sum();
            parts.push((Colour::FAINT, (whole.median - told_of).max(0.0)));
            let (name, label) = (told.title(&system), figure.show(whole.median));
            Some(Bar { name, parts, spread: Some((whole.low, whole.high)), label })
        };
        let bars = told.systems(chapter.test).into_iter().filter_map(bar).collect();
        Group { name: place.words(), bars }
    });
    let kinds = COMMIT_PARTS.iter().enumerate().filter_map(|(number, name)| {
        let title = figure::named(name)?.title.trim_start_matches("Commit: ");
        Some((title.to_owned(), colour(number)))
    });
    Bars {
        title: format!("{network}: a commit, and where its time goes"),
        axis: Axis::linear(&figure.title_with_unit()),
        groups: groups.filter(|group: &Group| !group.bars.is_empty()).collect(),
        kinds: kinds.chain([("not told apart".to_owned(), Colour::FAINT)]).collect(),
    }
}

/// Throughput over time. Systems share a chart unless something was done to them, at times of their
/// own.
fn curves(told: &Told, chapter: &Chapter) -> Markup {
    let mut charts = Vec::new();
    for place in told.summary.places(chapter.test) {
        let cells: Vec<&Cell> = told
            .systems(chapter.test)
            .iter()
            .filter_map(|system| {
                let cells = told.summary.cells(place, system);
                cells.iter().find(|cell| !cell.curves.is_empty()).copied()
            })
            .collect();
        if cells.iter().all(|cell| cell.events.is_empty()) {
            charts.extend(chart_of(told, place.words(), &cells));
        } else {
            for cell in cells {
                let title = format!("{}: {}", told.title(&cell.system), place.words());
                charts.extend(chart_of(told, title, &[cell]));
            }
        }
    }
    html! {
        @if !charts.is_empty() { p.small.faint { "Curves: of the first round that has them." } }
        (page::figures(&charts))
    }
}

fn chart_of(told: &Told, title: String, cells: &[&Cell]) -> Option<Lines> {
    let series: Vec<Series> = cells
        .iter()
        .filter_map(|cell| {
            let (_, points) = cell.curves.get_key_value("tps")?;
            Some(Series {
                name: told.title(&cell.system),
                colour: Colour::of_system(&cell.system),
                points: points.iter().map(|(x, y)| Sample::new(*x, *y)).collect(),
                published: false,
                marked: false,
            })
        })
        .collect();
    let events = cells.iter().flat_map(|cell| &cell.events);
    let marks = events.map(|(x, label)| Mark { x: *x, label: label.clone() }).collect();
    let (x, y) = (Axis::linear("time, s"), Axis::linear("transactions/s"));
    (!series.is_empty()).then(|| Lines { marks, ..Lines::new(title, x, y, series) })
}
