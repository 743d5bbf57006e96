//! Throughput over time, with a lane for each node in which its faults are marked.

use super::sample::Moment;
use crate::schedule::{Event, Harm};
use quorate_report::chart::{Axis, Lane, Lines, Sample, Series, Span};
use quorate_report::look::Colour;

/// A rate is the mean between two points, of which there are no more than can be told apart.
const POINTS_MAX: usize = 400;

/// What kind of fault it is, as the colours tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Process,
    HeldUp,
    Disk,
    Network,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::Process, "process or power lost"),
    (Kind::HeldUp, "held up, starved, clock"),
    (Kind::Disk, "disk"),
    (Kind::Network, "network"),
];

impl Kind {
    fn of(harm: Harm) -> Kind {
        match harm {
            harm if harm.needs_network() => Kind::Network,
            Harm::Pause | Harm::Starve | Harm::ClockJump => Kind::HeldUp,
            Harm::FreezeDisk | Harm::FillDisk | Harm::FailSync | Harm::SlowSync => Kind::Disk,
            _ => Kind::Process,
        }
    }

    fn colour(self) -> Colour {
        match self {
            Kind::Process => Colour::nth(1),
            Kind::HeldUp => Colour::nth(4),
            Kind::Disk => Colour::nth(2),
            Kind::Network => Colour::nth(3),
        }
    }
}

/// The picture.
pub(super) fn chart(moments: &[Moment], events: &[Event], nodes: usize) -> Lines {
    let end = moments.last().map_or(1.0, |moment| moment.at.as_secs_f64());
    let rates = |name: &str, colour, count: fn(&Moment) -> u64| Series {
        name: name.to_owned(),
        colour,
        points: rates(moments, count),
        published: false,
        marked: false,
    };
    let lane = |node: usize| {
        let of_node = events.iter().filter(|event| event.nodes.contains(&node));
        let span = |event: &Event| Span {
            from: event.begin.as_secs_f64(),
            to: event.end.map_or(end, |end| end.as_secs_f64()),
            colour: Kind::of(event.harm).colour(),
        };
        Lane { name: format!("node{}", node + 1), spans: of_node.map(span).collect() }
    };
    let seen = |kind: Kind| events.iter().any(|event| Kind::of(event.harm) == kind);
    let kinds = KINDS.iter().filter(|(kind, _)| seen(*kind));
    Lines {
        title: "What clients were told, and what was done to the nodes".to_owned(),
        x: Axis::linear("time, s"),
        y: Axis::linear("operations/s"),
        series: vec![
            rates("acknowledged", Colour::nth(0), |moment| moment.ok),
            rates("refused", Colour::WARN, |moment| moment.failed),
            rates("unknown", Colour::BAD, |moment| moment.unknown),
        ],
        marks: Vec::new(),
        lanes: (0..nodes).map(lane).collect(),
        kinds: kinds.map(|(kind, name)| ((*name).to_owned(), kind.colour())).collect(),
    }
}

fn rates(moments: &[Moment], count: fn(&Moment) -> u64) -> Vec<Sample> {
    let step = moments.len().div_ceil(POINTS_MAX).max(5);
    let points: Vec<&Moment> = moments.iter().step_by(step).collect();
    points
        .windows(2)
        .map(|pair| {
            let (first, last) = (pair[0], pair[1]);
            let seconds = (last.at - first.at).as_secs_f64().max(f64::EPSILON);
            let rate = (count(last) - count(first)) as f64 / seconds;
            Sample::new(last.at.as_secs_f64(), rate)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_report::chart::Chart;
    use std::time::Duration;

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
        let chart = super::chart(&moments, &[event], 3);
        let spans: Vec<usize> = chart.lanes.iter().map(|lane| lane.spans.len()).collect();
        assert_eq!(spans, [1, 0, 1]);
        assert!(chart.series[0].points.iter().all(|point| point.y == 100.0));
        assert_eq!(chart.kinds.len(), 1, "only what was done");
        assert!(chart.svg(1000).contains("node3"));
        assert!(super::chart(&[], &[], 3).svg(1000).contains("node3"));
    }

    #[test]
    fn a_long_run_has_no_more_points_than_can_be_told_apart() {
        let moment =
            |tenth: u64| Moment { at: Duration::from_millis(tenth * 100), ..Moment::default() };
        let moments: Vec<Moment> = (0..36_000).map(moment).collect();
        assert!(rates(&moments, |moment| moment.ok).len() <= POINTS_MAX);
    }
}
