//! The page around charts and tables: the verdict first, then a section for each part.

use crate::chart::Chart;
use crate::look;
use maud::{html, Markup, PreEscaped, DOCTYPE};

/// Of a chart that has the page for itself; of one of two; in a narrow window.
const WHOLE: u32 = 1050;
const HALF: u32 = 510;
const NARROW: u32 = 350;

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Warn,
    Bad,
    Plain,
}

impl Tone {
    pub fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
            Tone::Plain => "",
        }
    }
}

pub struct Page {
    pub title: String,
    /// A line beneath it: when, where, what.
    pub about: Markup,
    pub tone: Tone,
    pub verdict: Markup,
    pub sections: Vec<Section>,
}

pub struct Section {
    /// What a link names.
    pub id: String,
    pub title: String,
    pub body: Markup,
}

impl Page {
    pub fn html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    // Without it, a browser asks the server for one.
                    link rel="icon" href="data:,";
                    title { (self.title) }
                    style { (PreEscaped(look::style_sheet())) }
                }
                body {
                    header {
                        h1 { (self.title) }
                        div.faint { (self.about) }
                        div.lead.(self.tone.class()) { (self.verdict) }
                        nav {
                            @for section in &self.sections {
                                a href={ "#" (section.id) } { (section.title) }
                            }
                        }
                    }
                    main {
                        @for section in &self.sections {
                            section id=(section.id) { h2 { (section.title) } (section.body) }
                        }
                    }
                    footer { "quorate " (env!("CARGO_PKG_VERSION")) }
                }
            }
        };
        page.into_string()
    }
}

/// A chart over the whole width.
pub fn figure(chart: &impl Chart) -> Markup {
    drawn(chart, WHOLE)
}

/// Charts of one kind, two in a row where there is room.
pub fn figures<C: Chart>(charts: &[C]) -> Markup {
    html! {
        @if !charts.is_empty() {
            div.charts { @for chart in charts { (drawn(chart, HALF)) } }
        }
    }
}

fn drawn(chart: &impl Chart, width: u32) -> Markup {
    html! {
        figure {
            figcaption { (chart.title()) }
            div.wide { (PreEscaped(chart.svg(width))) }
            div.narrow { (PreEscaped(chart.svg(NARROW))) }
        }
    }
}

/// What is wider than the window is moved within its own frame.
pub fn scroll(table: Markup) -> Markup {
    html! { div.scroll { (table) } }
}

/// Names and what they are.
pub fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    html! {
        table.pairs { tbody {
            @for (name, value) in pairs { tr { td { (name) } td { (value) } } }
        } }
    }
}

pub fn badge(tone: Tone, text: &str) -> Markup {
    html! { span.badge.(tone.class()) { (text) } }
}

/// A system's name beside its colour.
pub fn system(name: &str, title: &str) -> Markup {
    let colour = format!("background:{}", look::Colour::of_system(name).css());
    html! { span.dot style=(colour) {} (title) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_all_in_itself_and_no_markup_of_others() {
        let page = Page {
            title: "a <b>".into(),
            about: html! { "today" },
            tone: Tone::Good,
            verdict: html! { "held" },
            sections: vec![Section {
                id: "one".into(),
                title: "One".into(),
                body: html! { "text" },
            }],
        };
        let html = page.html();
        assert!(html.contains("a &lt;b&gt;") && html.contains("href=\"#one\""));
        assert!(!html.contains("http") && !html.contains("<script") && !html.contains("@import"));
    }
}
