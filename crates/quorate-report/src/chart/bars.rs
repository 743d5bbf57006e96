//! Bars that lie, one beneath the other: their names have room, and the numbers stand at their ends.

use super::axis::number;
use super::legend::{self, Entry, Sign};
use super::pen::{self, width_of, Anchor, Pen};
use super::{Axis, Chart};
use crate::look::Colour;

const ROW: i32 = 22;
/// Of a name that stands above its bar, where there is no room beside it.
const NAME: i32 = 15;
const GROUP: i32 = 28;
const AXIS: i32 = 42;

pub struct Bars {
    pub title: String,
    pub axis: Axis,
    pub groups: Vec<Group>,
    /// What the colours of parts mean.
    pub kinds: Vec<(String, Colour)>,
}

pub struct Group {
    /// Empty: without a line of its own.
    pub name: String,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub name: String,
    /// One after the other.
    pub parts: Vec<(Colour, f64)>,
    /// Least and most, where there were several rounds.
    pub spread: Option<(f64, f64)>,
    /// What stands at its end.
    pub label: String,
}

impl Bar {
    fn length(&self) -> f64 {
        self.parts.iter().map(|(_, value)| value).sum()
    }

    fn end(&self) -> f64 {
        self.length().max(self.spread.map_or(0.0, |(_, high)| high))
    }
}

impl Chart for Bars {
    fn title(&self) -> &str {
        &self.title
    }

    fn svg(&self, width: u32) -> String {
        let width = width as i32;
        let entry = |(name, colour): &(String, Colour)| Entry {
            name: name.clone(),
            colour: *colour,
            sign: Sign::Area,
        };
        let entries: Vec<Entry> = self.kinds.iter().map(entry).collect();
        let (places, top) = legend::lay_out(&entries, width);
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let names = bars().map(|bar| width_of(&bar.name)).max().unwrap_or(0) + 8;
        let row = if names > width / 3 { ROW + NAME } else { ROW };
        let left = if row > ROW { 1 } else { names };
        let labels = bars().map(|bar| width_of(&bar.label)).max().unwrap_or(0) + 12;
        let right = (width - labels).max(left + 20);
        let axis = self.axis.fit(bars().map(Bar::end), ((right - left) / 64).max(2) as usize);
        let x = |value: f64| {
            let along = axis.at(value).unwrap_or(0.0) * f64::from(right - left);
            left + along.round() as i32
        };
        let rows: i32 = self.groups.iter().map(|group| group.height(row)).sum();
        let bottom = top + rows + 4;
        pen::draw((width, bottom + AXIS), &self.title, |pen| {
            legend::draw(pen, &entries, &places);
            let mut free_from = 0;
            for tick in &axis.ticks {
                pen.line(&[(x(*tick), top), (x(*tick), bottom)], Colour::GRID, 1);
                let (label, half) = (number(*tick), width_of(&number(*tick)) / 2);
                if x(*tick) - half >= free_from {
                    pen.text(&label, (x(*tick), bottom + 12), Anchor::Middle, Colour::FAINT);
                    free_from = x(*tick) + half + 4;
                }
            }
            pen.line(&[(left, top), (left, bottom)], Colour::FAINT, 1);
            pen.text(&self.axis.title, (width, bottom + 30), Anchor::Right, Colour::FAINT);
            let mut y = top;
            for group in &self.groups {
                group.draw(pen, (y, row), left, &x);
                y += group.height(row);
            }
        })
    }
}

impl Group {
    fn height(&self, row: i32) -> i32 {
        let name = if self.name.is_empty() { 4 } else { GROUP };
        name + self.bars.len() as i32 * row
    }

    fn draw(&self, pen: &Pen, (top, row): (i32, i32), left: i32, x: &dyn Fn(f64) -> i32) {
        if !self.name.is_empty() {
            let width = width_of(&self.name);
            pen.area((0, top + 6), (width, top + GROUP - 2), Colour::GROUND);
            pen.text(&self.name, (0, top + GROUP / 2 + 2), Anchor::Left, Colour::FAINT);
        }
        let first = top + self.height(row) - self.bars.len() as i32 * row;
        for (number, bar) in self.bars.iter().enumerate() {
            let bottom = first + (number as i32 + 1) * row;
            let middle = bottom - ROW / 2;
            if row > ROW {
                let (width, y) = (width_of(&bar.name), bottom - row + NAME / 2);
                pen.area((left + 2, y - NAME / 2), (left + width, y + NAME / 2), Colour::GROUND);
                pen.text(&bar.name, (left + 4, y), Anchor::Left, Colour::INK);
            } else {
                pen.text(&bar.name, (left - 8, middle), Anchor::Right, Colour::INK);
            }
            let mut from = 0.0;
            for (colour, value) in &bar.parts {
                pen.area((x(from), middle - 7), (x(from + value), middle + 7), *colour);
                from += value;
            }
            if let Some((low, high)) = bar.spread.filter(|(low, high)| low < high) {
                let (low, high) = (x(low), x(high));
                pen.line(&[(low, middle), (high, middle)], Colour::INK, 1);
                for end in [low, high] {
                    pen.line(&[(end, middle - 3), (end, middle + 3)], Colour::INK, 1);
                }
            }
            pen.text(&bar.label, (x(bar.end()) + 6, middle), Anchor::Left, Colour::INK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_its_name_and_its_number() {
        let bar = |name: &str, value: f64| Bar {
            name: name.into(),
            parts: vec![(Colour::of_system(name), value)],
            spread: Some((value * 0.9, value * 1.1)),
            label: format!("{value:.0}"),
        };
        let failed =
            Bar { parts: Vec::new(), spread: None, label: "failed".into(), ..bar("async", 1.0) };
        let bars = Bars {
            title: "commit".into(),
            axis: Axis::linear("µs"),
            groups: vec![Group {
                name: "lan".into(),
                bars: vec![bar("quorate", 300.0), bar("galera", 451.0), failed],
            }],
            kinds: Vec::new(),
        };
        let svg = bars.svg(340);
        for text in ["quorate", "galera", "451", "failed", "lan", "µs"] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text} in {svg}");
        }
    }
}
