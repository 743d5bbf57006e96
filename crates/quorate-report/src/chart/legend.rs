//! Names of the colours, in rows above a chart.

use super::pen::{width_of, Anchor, Pen};
use crate::look::Colour;

const ROW: i32 = 20;
const SIGN: i32 = 24;
const BETWEEN: i32 = 16;

pub(super) struct Entry {
    pub(super) name: String,
    pub(super) colour: Colour,
    pub(super) sign: Sign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Line,
    Marked,
    Hollow,
    Area,
}

/// Where each entry stands in so many pixels, and the height of all.
pub(super) fn lay_out(entries: &[Entry], width: i32) -> (Vec<(i32, i32)>, i32) {
    let (mut x, mut y, mut places) = (0, ROW / 2, Vec::new());
    for entry in entries {
        let takes = SIGN + width_of(&entry.name) + BETWEEN;
        if x > 0 && x + takes - BETWEEN > width {
            (x, y) = (0, y + ROW);
        }
        places.push((x, y));
        x += takes;
    }
    let height = if entries.is_empty() { 0 } else { y + ROW / 2 + 4 };
    (places, height)
}

pub(super) fn draw(pen: &Pen, entries: &[Entry], places: &[(i32, i32)]) {
    for (entry, (x, y)) in entries.iter().zip(places) {
        let (left, right, middle) = (*x, x + SIGN - 7, x + (SIGN - 7) / 2);
        match entry.sign {
            Sign::Area => pen.area((left, y - 5), (right, y + 5), entry.colour),
            Sign::Hollow => {
                pen.dashes((left, *y), (right, *y), entry.colour);
                pen.marker((middle, *y), entry.colour, true);
            }
            Sign::Line | Sign::Marked => {
                pen.line(&[(left, *y), (right, *y)], entry.colour, 2);
                if entry.sign == Sign::Marked {
                    pen.marker((middle, *y), entry.colour, false);
                }
            }
        }
        pen.text(&entry.name, (x + SIGN, *y), Anchor::Left, Colour::INK);
    }
}
