//! Lines over numbers or time.
//!
//! ```text
//! legend
//! labels of marks, in as many rows as it takes
//! title of the upright axis
//! │ lines, with the marks as dashed lines
//! lanes, if any: what went on meanwhile, by name
//! numbers of the other axis, and its title
//! ```

use super::axis::{number, Fitted};
use super::legend::{self, Entry, Sign};
use super::pen::{self, width_of, Anchor, Pen};
use super::{Axis, Chart};
use crate::look::Colour;

const LINE: i32 = 16;
const PLOT_HEIGHT: i32 = 240;
const LANE_HEIGHT: i32 = 26;
/// Beyond the last number of the axis.
const RIGHT: i32 = 24;
const NUMBER_WIDTH: i32 = 64;

pub struct Lines {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    pub marks: Vec<Mark>,
    pub lanes: Vec<Lane>,
    /// What the colours of the lanes' spans mean.
    pub kinds: Vec<(String, Colour)>,
}

pub struct Series {
    pub name: String,
    pub colour: Colour,
    pub points: Vec<Sample>,
    /// Dashed with hollow markers: of others.
    pub published: bool,
    /// Each point with its marker and spread; a curve of many has none.
    pub marked: bool,
}

/// `low` ≤ `y` ≤ `high`, the spread of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub x: f64,
    pub y: f64,
    pub low: f64,
    pub high: f64,
}

impl Sample {
    pub fn new(x: f64, y: f64) -> Sample {
        Sample { x, y, low: y, high: y }
    }
}

/// Something that was done at one time.
pub struct Mark {
    pub x: f64,
    pub label: String,
}

/// What went on, beneath the lines.
pub struct Lane {
    pub name: String,
    pub spans: Vec<Span>,
}

pub struct Span {
    pub from: f64,
    pub to: f64,
    pub colour: Colour,
}

/// Where everything stands, in pixels.
struct Layout {
    size: (i32, i32),
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
    lanes_bottom: i32,
    legend: Vec<(i32, i32)>,
    marks: Vec<(i32, i32)>,
    x: Fitted,
    y: Fitted,
}

impl Layout {
    fn x(&self, value: f64) -> Option<i32> {
        let along = self.x.at(value)? * f64::from(self.right - self.left);
        Some(self.left + along.round() as i32)
    }

    fn y(&self, value: f64) -> Option<i32> {
        let along = self.y.at(value)? * f64::from(self.bottom - self.top);
        Some(self.bottom - along.round() as i32)
    }
}

impl Chart for Lines {
    fn title(&self) -> &str {
        &self.title
    }

    fn svg(&self, width: u32) -> String {
        let entries = self.entries();
        let layout = self.lay_out(width as i32, &entries);
        pen::draw(layout.size, &self.title, |pen| {
            legend::draw(pen, &entries, &layout.legend);
            self.draw_axes(pen, &layout);
            self.draw_marks(pen, &layout);
            self.draw_lanes(pen, &layout);
            for series in &self.series {
                draw_series(pen, &layout, series);
            }
        })
    }
}

impl Lines {
    /// Without anything that was done meanwhile.
    pub fn new(title: String, x: Axis, y: Axis, series: Vec<Series>) -> Lines {
        Lines { title, x, y, series, marks: Vec::new(), lanes: Vec::new(), kinds: Vec::new() }
    }

    fn entries(&self) -> Vec<Entry> {
        let series = self.series.iter().map(|series| Entry {
            name: series.name.clone(),
            colour: series.colour,
            sign: match (series.published, series.marked) {
                (true, _) => Sign::Hollow,
                (_, true) => Sign::Marked,
                _ => Sign::Line,
            },
        });
        let kinds = self.kinds.iter();
        let kinds = kinds.map(|(name, colour)| Entry {
            name: name.clone(),
            colour: *colour,
            sign: Sign::Area,
        });
        series.chain(kinds).collect()
    }

    fn lay_out(&self, width: i32, entries: &[Entry]) -> Layout {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let y = self.y.fit(points().flat_map(|point| [point.low, point.y, point.high]), 9);
        let names = self.lanes.iter().map(|lane| lane.name.clone());
        let labels = y.ticks.iter().map(|tick| number(*tick)).chain(names);
        let left = labels.map(|label| width_of(&label)).max().unwrap_or(0) + 8;
        let right = (width - RIGHT).max(left + 1);
        let spans = self.lanes.iter().flat_map(|lane| &lane.spans);
        let times = points()
            .map(|point| point.x)
            .chain(self.marks.iter().map(|mark| mark.x))
            .chain(spans.flat_map(|span| [span.from, span.to]));
        let x = self.x.fit(times, ((right - left) / NUMBER_WIDTH).max(2) as usize);

        let (legend, legend_height) = legend::lay_out(entries, width);
        let mut layout = Layout {
            size: (width, 0),
            left,
            right,
            top: 0,
            bottom: 0,
            lanes_bottom: 0,
            legend,
            marks: Vec::new(),
            x,
            y,
        };
        // The title of the upright axis stands above its uppermost number.
        let title = legend_height + LINE / 2 + 2;
        let (marks, marks_bottom) = self.lay_out_marks(&layout, title + LINE);
        layout.marks = marks;
        layout.top = marks_bottom + 6;
        layout.bottom = layout.top + PLOT_HEIGHT;
        let lanes = self.lanes.len() as i32;
        let gap = if lanes > 0 { 12 } else { 0 };
        layout.lanes_bottom = layout.bottom + gap + lanes * LANE_HEIGHT;
        layout.size.1 = layout.lanes_bottom + 2 * LINE + 14;
        layout
    }

    /// Each label in the first row in which it stands free, shifted to the left where it would go
    /// beyond the edge; and where the rows end.
    fn lay_out_marks(&self, layout: &Layout, first_row: i32) -> (Vec<(i32, i32)>, i32) {
        let mut taken: Vec<Vec<(i32, i32)>> = Vec::new();
        let mut places = Vec::new();
        for mark in &self.marks {
            let width = width_of(&mark.label);
            let wanted = layout.x(mark.x).unwrap_or(layout.left) + 4;
            let x = wanted.min(layout.size.0 - width).max(0);
            let free = |row: &Vec<(i32, i32)>| {
                row.iter().all(|(from, to)| x + width + 6 < *from || *to + 6 < x)
            };
            let row = taken.iter().position(free).unwrap_or_else(|| {
                taken.push(Vec::new());
                taken.len() - 1
            });
            taken[row].push((x, x + width));
            places.push((x, first_row + row as i32 * LINE));
        }
        (places, first_row - LINE / 2 + taken.len() as i32 * LINE)
    }

    fn draw_axes(&self, pen: &Pen, layout: &Layout) {
        let Layout { left, right, top, bottom, lanes_bottom, .. } = *layout;
        let first_mark = layout.marks.iter().map(|place| place.1).min();
        let title = first_mark.unwrap_or(top - 6 + LINE / 2) - LINE;
        pen.text(&self.y.title, (0, title), Anchor::Left, Colour::FAINT);
        for tick in &layout.y.ticks {
            let Some(y) = layout.y(*tick) else { continue };
            pen.line(&[(left, y), (right, y)], Colour::GRID, 1);
            pen.text(&number(*tick), (left - 6, y), Anchor::Right, Colour::FAINT);
        }
        let mut free_from = 0;
        for tick in &layout.x.ticks {
            let Some(x) = layout.x(*tick) else { continue };
            pen.line(&[(x, top), (x, lanes_bottom + 4)], Colour::GRID, 1);
            let label = number(*tick);
            let half = width_of(&label) / 2;
            // Numbers that were asked for may stand closely.
            if x - half >= free_from && x + half <= layout.size.0 {
                pen.text(&label, (x, lanes_bottom + LINE), Anchor::Middle, Colour::FAINT);
                free_from = x + half + 4;
            }
        }
        pen.line(&[(left, bottom), (right, bottom)], Colour::FAINT, 1);
        pen.text(&self.x.title, (right, lanes_bottom + 2 * LINE + 4), Anchor::Right, Colour::FAINT);
    }

    fn draw_marks(&self, pen: &Pen, layout: &Layout) {
        for (mark, (label_x, label_y)) in self.marks.iter().zip(&layout.marks) {
            let Some(x) = layout.x(mark.x) else { continue };
            let place = (*label_x, *label_y);
            pen.dashes((x, label_y + LINE / 2), (x, layout.bottom), Colour::FAINT);
            pen.text(&mark.label, place, Anchor::Left, Colour::INK);
        }
    }

    fn draw_lanes(&self, pen: &Pen, layout: &Layout) {
        let lanes = self.lanes.len() as i32;
        for (number, lane) in self.lanes.iter().enumerate() {
            let top = layout.lanes_bottom - (lanes - number as i32) * LANE_HEIGHT;
            let middle = top + LANE_HEIGHT / 2;
            pen.text(&lane.name, (layout.left - 8, middle), Anchor::Right, Colour::INK);
            pen.line(&[(layout.left, middle), (layout.right, middle)], Colour::GRID, 1);
            for span in &lane.spans {
                let (Some(from), Some(to)) = (layout.x(span.from), layout.x(span.to)) else {
                    continue;
                };
                let upper = (from, top + 4);
                pen.area(upper, (to.max(from + 2), top + LANE_HEIGHT - 4), span.colour);
            }
        }
    }
}

fn draw_series(pen: &Pen, layout: &Layout, series: &Series) {
    let place = |sample: &Sample| Some((layout.x(sample.x)?, layout.y(sample.y)?));
    let places: Vec<(i32, i32)> = series.points.iter().filter_map(place).collect();
    if series.published {
        for pair in places.windows(2) {
            pen.dashes(pair[0], pair[1], series.colour);
        }
    } else if places.len() > 1 {
        pen.line(&places, series.colour, 2);
    }
    if !series.marked && places.len() > 1 {
        return;
    }
    for sample in series.points.iter().filter(|sample| sample.low < sample.high) {
        let ends = (layout.x(sample.x), layout.y(sample.low), layout.y(sample.high));
        if let (Some(x), Some(low), Some(high)) = ends {
            pen.line(&[(x, low), (x, high)], series.colour, 1);
        }
    }
    for place in places {
        pen.marker(place, series.colour, series.published);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Lines {
        let points = (0..100).map(|second| Sample::new(f64::from(second), 50.0)).collect();
        let series = Series {
            name: "Quorate".into(),
            colour: Colour::of_system("quorate"),
            points,
            published: false,
            marked: false,
        };
        let mark = |x| Mark { x, label: "node2 killed".into() };
        Lines {
            title: "a < b".into(),
            x: Axis::linear("time, s"),
            y: Axis::linear("transactions/s"),
            series: vec![series],
            marks: vec![mark(10.0), mark(11.0), mark(99.0)],
            lanes: vec![Lane {
                name: "node1".into(),
                spans: vec![Span { from: 3.0, to: 9.0, colour: Colour::BAD }],
            }],
            kinds: vec![("process".into(), Colour::BAD)],
        }
    }

    #[test]
    fn labels_that_would_meet_stand_in_rows_and_none_is_cut_off() {
        let lines = lines();
        for width in [340, 900] {
            let layout = lines.lay_out(width, &lines.entries());
            assert_eq!(layout.marks[0].1 + LINE, layout.marks[1].1, "too near for one row");
            for (x, _) in &layout.marks {
                assert!(*x >= 0 && x + width_of("node2 killed") <= width);
            }
        }
    }

    #[test]
    fn colours_are_names_and_the_file_has_their_values() {
        let svg = lines().svg(900);
        assert!(svg.contains("style=\"stroke:var(--quorate)\"") && svg.contains("a &lt; b"));
        assert!(!svg.contains("#0102"), "a tag was left");
        assert!(!svg.contains("--quorate:"));
        assert!(lines().file(900).contains("--quorate:"));
    }

    #[test]
    fn nothing_is_a_chart_as_well() {
        let empty = Lines { series: Vec::new(), marks: Vec::new(), lanes: Vec::new(), ..lines() };
        assert!(empty.svg(340).ends_with("</svg>\n"));
    }
}
