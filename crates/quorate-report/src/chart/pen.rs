//! Draws in pixels, through plotters, into an SVG.

use crate::look::Colour;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(crate) const TEXT: f64 = 12.0;
/// Of a character, in parts of the size of the text: on the safe side for any font without serifs.
const CHARACTER: f64 = 0.64;
/// plotters divides by it what it is given as the size of a font.
const PLOTTERS_FONT: f64 = 1.24;

/// About how wide a text is at most, in pixels.
pub(crate) fn width_of(text: &str) -> i32 {
    (text.chars().count() as f64 * TEXT * CHARACTER).ceil() as i32
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Left,
    Middle,
    Right,
}

/// A drawing in progress. A point is from the left and from the top.
pub(crate) struct Pen<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// An SVG of that size, in colours by name; `title` is for those who do not see it.
pub(crate) fn draw(size: (i32, i32), title: &str, with: impl FnOnce(&Pen)) -> String {
    let mut svg = String::new();
    {
        let size = (size.0 as u32, size.1 as u32);
        let pen = Pen { area: SVGBackend::with_string(&mut svg, size).into_drawing_area() };
        with(&pen);
        written(pen.area.present());
    }
    let label = title.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let svg = svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{label}\" "), 1);
    Colour::name_all(svg)
}

impl Pen<'_> {
    pub(crate) fn line(&self, points: &[(i32, i32)], colour: Colour, width: u32) {
        let style = colour.tag().stroke_width(width);
        written(self.area.draw(&PathElement::new(points.to_vec(), style)));
    }

    /// A straight line of dashes.
    pub(crate) fn dashes(&self, from: (i32, i32), to: (i32, i32), colour: Colour) {
        let (across, down) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
        let length = across.hypot(down).max(1.0);
        let at = |way: f64| {
            let part = (way / length).min(1.0);
            (from.0 + (across * part).round() as i32, from.1 + (down * part).round() as i32)
        };
        let mut way = 0.0;
        while way < length {
            self.line(&[at(way), at(way + 4.0)], colour, 1);
            way += 8.0;
        }
    }

    pub(crate) fn area(&self, from: (i32, i32), to: (i32, i32), colour: Colour) {
        written(self.area.draw(&Rectangle::new([from, to], colour.tag().filled())));
    }

    /// The shape that goes with the colour, so that lines can be told apart without it. A hollow one
    /// is of what was published.
    pub(crate) fn marker(&self, (x, y): (i32, i32), colour: Colour, hollow: bool) {
        let style = |colour: Colour| colour.tag().filled();
        let (inner, size) = (Colour::GROUND, 4);
        let with_size = |size: i32, colour: Colour| {
            let corners = match colour_shape(colour, hollow) {
                0 => vec![
                    (x, y - size - 1),
                    (x + size + 1, y + size - 1),
                    (x - size - 1, y + size - 1),
                ],
                1 => {
                    vec![(x, y - size - 1), (x + size + 1, y), (x, y + size + 1), (x - size - 1, y)]
                }
                2 => vec![
                    (x - size + 1, y - size + 1),
                    (x + size - 1, y - size + 1),
                    (x + size - 1, y + size - 1),
                    (x - size + 1, y + size - 1),
                ],
                _ => Vec::new(),
            };
            (corners, size)
        };
        let paint = |(corners, size): (Vec<(i32, i32)>, i32), colour: Colour| {
            if corners.is_empty() {
                written(self.area.draw(&Circle::new((x, y), size, style(colour))));
            } else {
                written(self.area.draw(&Polygon::new(corners, style(colour))));
            }
        };
        paint(with_size(size, colour), colour);
        if hollow {
            paint(with_size(size - 2, colour), inner);
        }
    }

    /// `y` is the middle of the text.
    pub(crate) fn text(&self, text: &str, (x, y): (i32, i32), anchor: Anchor, colour: Colour) {
        let across = match anchor {
            Anchor::Left => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::Right => HPos::Right,
        };
        let tag = colour.tag();
        let style = TextStyle::from(("sans-serif", TEXT * PLOTTERS_FONT).into_font())
            .color(&tag)
            .pos(Pos::new(across, VPos::Center));
        written(self.area.draw(&Text::new(text.to_owned(), (x, y), style)));
    }
}

/// What was published has circles only.
fn colour_shape(colour: Colour, hollow: bool) -> u8 {
    if hollow {
        3
    } else {
        colour.shape()
    }
}

/// Drawing into a string has nothing that could fail.
fn written<E: std::fmt::Debug>(result: Result<(), E>) {
    result.expect("an SVG is written to memory");
}
