//! Charts as SVG: no text over another, none beyond the edge, whatever the width.
//!
//! * [`Lines`]: values over numbers of clients, or over time, with what was done marked, and lanes for
//!   what went on meanwhile.
//! * [`Bars`]: a value each, or parts of one.

mod axis;
mod bars;
mod legend;
mod lines;
mod pen;

pub use axis::{Axis, Scale};
pub use bars::{Bar, Bars, Group};
pub use lines::{Lane, Lines, Mark, Sample, Series, Span};

/// What can be drawn at any width.
pub trait Chart {
    /// For those who do not see it.
    fn title(&self) -> &str;

    /// As SVG, that many pixels wide; colours are names of the style sheet.
    fn svg(&self, width: u32) -> String;

    /// A file of its own, with the values of its colours.
    fn file(&self, width: u32) -> String {
        let style = crate::look::variables();
        let ground = "svg{background:var(--ground)}text{font-family:system-ui,sans-serif}";
        let svg = self.svg(width);
        let (open, rest) = svg.split_at(svg.find('>').map_or(0, |at| at + 1));
        format!("{open}<style>{style}{ground}</style>{rest}")
    }
}
