//! Throughput over time, with a lane for each node in which its faults are marked.

use super::sample::Moment;
use crate::schedule::{Event, Harm};
use anyhow::{anyhow, Result};
use plotters::prelude::*;
use std::time::Duration;

const WIDTH: u32 = 1400;
const CHART_HEIGHT: u32 = 300;
const LANE_HEIGHT: u32 = 34;
const MARGIN: u32 = 10;
const LEFT: u32 = 70;
/// Throughput is the mean over this many samples.
const WINDOW: usize = 5;

/// The picture as SVG.
pub(super) fn draw(moments: &[Moment], events: &[Event], nodes: usize) -> Result<String> {
    let mut svg = String::new();
    let height = CHART_HEIGHT + LANE_HEIGHT * nodes as u32 + 60;
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE).map_err(told)?;
        let end = moments.last().map_or(1.0, |moment| moment.at.as_secs_f64());
        let begin = moments.first().map_or(0.0, |moment| moment.at.as_secs_f64());
        let (upper, lower) = area.split_vertically(CHART_HEIGHT);
        draw_rates(&upper, moments, begin..end)?;
        draw_lanes(&lower, events, nodes, begin..end)?;
        area.present().map_err(told)?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_rates(area: &Area, moments: &[Moment], time: std::ops::Range<f64>) -> Result<()> {
    let rate = |count: fn(&Moment) -> u64| -> Vec<(f64, f64)> {
        moments
            .windows(WINDOW + 1)
            .map(|window| {
                let (first, last) = (&window[0], &window[WINDOW]);
                let seconds = (last.at - first.at).as_secs_f64().max(f64::EPSILON);
                (last.at.as_secs_f64(), (count(last) - count(first)) as f64 / seconds)
            })
            .collect()
    };
    let ok = rate(|moment| moment.ok);
    let highest = ok.iter().map(|(_, rate)| *rate).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .x_label_area_size(30)
        .y_label_area_size(LEFT - MARGIN)
        .build_cartesian_2d(time, 0.0..highest * 1.05)
        .map_err(told)?;
    let axes = chart.configure_mesh().x_desc("seconds").y_desc("operations a second").draw();
    axes.map_err(told)?;
    let series = [
        (ok, BLUE, "acknowledged"),
        (rate(|moment| moment.failed), RGBColor(230, 150, 0), "refused"),
        (rate(|moment| moment.unknown), RED, "unknown"),
    ];
    for (points, colour, name) in series {
        let line = chart.draw_series(LineSeries::new(points, colour)).map_err(told)?;
        line.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour));
    }
    let legend = chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw();
    legend.map_err(told)
}

fn draw_lanes(
    area: &Area,
    events: &[Event],
    nodes: usize,
    time: std::ops::Range<f64>,
) -> Result<()> {
    let (left, width) = (LEFT as i32, (WIDTH - LEFT - MARGIN) as f64);
    let scale = width / (time.end - time.start).max(f64::EPSILON);
    let x = |at: Duration| {
        let offset = (at.as_secs_f64() - time.start).max(0.0) * scale;
        left + offset.min(width) as i32
    };
    let lane = |node: usize| (node as u32 * LANE_HEIGHT) as i32 + 4;
    let font = ("sans-serif", 13).into_font();
    for node in 0..nodes {
        let name = format!("node{}", node + 1);
        let text = Text::new(name, (MARGIN as i32, lane(node) + 6), font.clone());
        area.draw(&text).map_err(told)?;
        let line = [(left, lane(node) + 28), (left + width as i32, lane(node) + 28)];
        area.draw(&PathElement::new(line, RGBColor(220, 220, 220))).map_err(told)?;
    }
    let last = Duration::from_secs_f64(time.end);
    for event in events {
        let (from, to) = (x(event.begin), x(event.end.unwrap_or(last)));
        for node in &event.nodes {
            let top = lane(*node);
            let bar = [(from, top), (to.max(from + 2), top + 24)];
            area.draw(&Rectangle::new(bar, colour(event.harm).mix(0.5).filled())).map_err(told)?;
            let text = Text::new(event.harm.to_string(), (from + 2, top + 8), ("sans-serif", 10));
            area.draw(&text).map_err(told)?;
        }
    }
    Ok(())
}

fn colour(harm: Harm) -> RGBColor {
    match () {
        () if harm.needs_network() => RGBColor(130, 90, 200),
        () if harm == Harm::Pause => RGBColor(240, 170, 40),
        () if harm.needs_disk() && harm != Harm::PowerCut => RGBColor(60, 150, 90),
        () => RGBColor(220, 60, 60),
    }
}

fn told(error: impl std::error::Error) -> anyhow::Error {
    anyhow!("drawing the timeline: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_lane_for_each_node_and_a_bar_for_each_fault() {
        let moment = |second: u64| Moment {
            at: Duration::from_secs(second),
            ok: second * 100,
            ..Moment::default()
        };
        let moments: Vec<Moment> = (0..30).map(moment).collect();
        let event = Event {
            round: "one".into(),
            harm: Harm::Pause,
            nodes: vec![0, 2],
            begin: Duration::from_secs(3),
            end: None,
        };
        let svg = draw(&moments, &[event], 3).unwrap();
        assert_eq!(svg.matches("SIGSTOP").count(), 2);
        assert!(svg.contains("node3") && svg.contains("</svg>"));
        draw(&[], &[], 3).unwrap();
    }
}
