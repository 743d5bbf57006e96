//! What everything looks like: colours that can be read on light and on dark, and the style sheet.
//!
//! A chart is drawn with tags in place of colours; [`Colour::name_all`] makes names of them, which the
//! style sheet gives their values, by the reader's scheme.

use plotters::style::RGBColor;

/// A colour by what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(u8);

/// Name, on light, on dark.
const PALETTE: &[(&str, &str, &str)] = &[
    ("ground", "#ffffff", "#14171c"),
    ("panel", "#f5f7f9", "#1c2128"),
    ("ink", "#1b1f24", "#e6e9ee"),
    ("faint", "#57606a", "#9aa4b1"),
    ("grid", "#dde2e8", "#303740"),
    ("good", "#1a7f37", "#56d364"),
    ("warn", "#9a5b00", "#e3b341"),
    ("bad", "#c8242f", "#ff7b72"),
    ("quorate", "#1457d2", "#6aa5ff"),
    ("galera", "#d9600b", "#ff9d57"),
    ("galera-relaxed", "#a87800", "#e6c04a"),
    ("async", "#0f7f4f", "#4fce95"),
    ("semisync", "#0c8491", "#4cc9d6"),
    ("standalone", "#4a5562", "#b9c2cd"),
    ("standalone-relaxed", "#87919d", "#818d9a"),
    ("gr-eventual", "#7a3fd1", "#b995ff"),
    ("gr-after", "#b5268f", "#f086d3"),
    ("dn", "#8a4b2a", "#cf9773"),
    ("gr-tuned", "#5a53e0", "#9a9cff"),
    ("quorate-plain", "#0b78a8", "#56c0ef"),
    ("quorate-sealed", "#34469c", "#93a5f2"),
];

impl Colour {
    pub const GROUND: Colour = Colour(0);
    pub const PANEL: Colour = Colour(1);
    pub const INK: Colour = Colour(2);
    pub const FAINT: Colour = Colour(3);
    pub const GRID: Colour = Colour(4);
    pub const GOOD: Colour = Colour(5);
    pub const WARN: Colour = Colour(6);
    pub const BAD: Colour = Colour(7);

    /// A system's own; those that nobody knows share one.
    pub fn of_system(name: &str) -> Colour {
        let systems = PALETTE.iter().enumerate().skip(usize::from(Colour::BAD.0) + 1);
        let found = systems.into_iter().find(|(_, colour)| colour.0 == name);
        found.map_or(Colour::FAINT, |(at, _)| Colour(at as u8))
    }

    /// Of things that are no systems, such as parts or kinds of faults: the nth is always the same.
    pub fn nth(number: usize) -> Colour {
        const ORDER: [u8; 9] = [8, 9, 11, 15, 10, 12, 16, 17, 13];
        Colour(ORDER[number % ORDER.len()])
    }

    /// `var(--quorate)`, for style attributes.
    pub fn css(self) -> String {
        format!("var(--{})", PALETTE[usize::from(self.0)].0)
    }

    /// What stands for it in a drawing.
    pub(crate) fn tag(self) -> RGBColor {
        RGBColor(1, 2, self.0)
    }

    /// Which of the markers' shapes goes with it.
    pub(crate) fn shape(self) -> u8 {
        self.0 % 4
    }

    /// Names in place of all tags.
    pub(crate) fn name_all(mut svg: String) -> String {
        for (at, (name, ..)) in PALETTE.iter().enumerate() {
            for what in ["fill", "stroke"] {
                let tag = format!("{what}=\"#0102{at:02X}\"");
                svg = svg.replace(&tag, &format!("style=\"{what}:var(--{name})\""));
            }
        }
        svg
    }
}

/// The values of all names, by scheme.
pub fn variables() -> String {
    let values = |pick: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        let lines = PALETTE.iter().map(|colour| format!("--{}:{};", colour.0, pick(colour)));
        lines.collect::<String>()
    };
    format!(
        ":root{{color-scheme:light dark;{}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n",
        values(|colour| colour.1),
        values(|colour| colour.2)
    )
}

/// The style sheet of a page.
pub fn style_sheet() -> String {
    variables() + include_str!("page.css")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the rule of the Web Content Accessibility Guidelines.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour: &str| {
            let channel = |at: usize| {
                let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
                let value = f64::from(value) / 255.0;
                match value {
                    value if value <= 0.04045 => value / 12.92,
                    value => ((value + 0.055) / 1.055).powf(2.4),
                }
            };
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_and_lines_can_be_read_on_light_and_dark() {
        let (_, light, dark) = PALETTE[0];
        for (name, on_light, on_dark) in &PALETTE[2..] {
            let least = match *name {
                "grid" => 1.2,
                "ink" | "faint" | "good" | "warn" | "bad" => 4.5,
                _ => 3.0,
            };
            assert!(contrast(light, on_light) >= least, "{name} on light");
            assert!(contrast(dark, on_dark) >= least, "{name} on dark");
        }
    }

    #[test]
    fn names_are_found_and_each_has_its_tag() {
        assert_eq!(Colour::of_system("quorate").css(), "var(--quorate)");
        assert_eq!(Colour::of_system("bad"), Colour::FAINT, "no system");
        let svg = "<text fill=\"#010202\"/><line stroke=\"#010208\"/>".to_owned();
        assert_eq!(
            Colour::name_all(svg),
            "<text style=\"fill:var(--ink)\"/><line style=\"stroke:var(--quorate)\"/>"
        );
    }
}
