//! The measurements as a page, in the look of all reports.

use super::table::{beside, Line, Table};
use maud::{html, Markup};
use quorate_report::chart::{Axis, Bar, Bars, Group};
use quorate_report::look::Colour;
use quorate_report::page::{self, Page, Section, Tone};

/// `about`: what was measured. Networks that come later have no table yet.
pub fn page(tables: &[Table], about: &str) -> Page {
    let missed: usize = tables.iter().map(Table::missed).sum();
    let lost = tables.iter().map(Table::lost).max().unwrap_or(0);
    let section = |table: &Table| Section {
        id: table.network.clone(),
        title: table.network.clone(),
        body: network(table),
    };
    Page {
        title: "How long writes stop when a node fails".into(),
        about: html! { (about) },
        tone: match (lost, missed) {
            (0, 0) => Tone::Good,
            (0, _) => Tone::Warn,
            _ => Tone::Bad,
        },
        verdict: verdict(missed, lost),
        sections: tables.iter().map(section).collect(),
    }
}

fn verdict(missed: usize, lost: usize) -> Markup {
    let limits = match missed {
        0 => "Every limit was kept".to_owned(),
        1 => "One limit was missed".to_owned(),
        missed => format!("{missed} limits were missed"),
    };
    let rows = match lost {
        0 => "no acknowledged row was lost".to_owned(),
        1 => "one acknowledged row was lost".to_owned(),
        lost => format!("{lost} acknowledged rows were lost"),
    };
    html! { p { strong.headline { (limits) ", and " (rows) "." } } }
}

fn network(table: &Table) -> Markup {
    let chart = Bars {
        title: "Longest time without an acknowledged commit".into(),
        axis: Axis::linear("s"),
        groups: table.lines.iter().map(bars).collect(),
        kinds: Vec::new(),
    };
    html! {
        (page::figure(&chart))
        p.small.faint { "A bar is the median of the rounds, its line goes to the worst one. Red: over a limit." }
        (page::scroll(html! { table {
            thead { tr {
                th { "fault" } th.n { "rounds" } th.n { "median (limit)" } th.n { "worst (limit)" }
                th.n { "throughput meanwhile" } th.n { "acknowledged" } th.n { "lost" } th {}
            } }
            tbody { @for line in &table.lines { (row(line)) } }
        } }))
        @if let Some(returned) = table.returned() { p { (returned.text()) "." } }
    }
}

/// The median, and how far the rounds go beyond it.
fn bars(line: &Line) -> Group {
    let colour = if line.missed { Colour::BAD } else { Colour::of_system("quorate") };
    let (half, worst) = (line.half.as_secs_f64(), line.worst.as_secs_f64());
    let bar = Bar {
        name: line.fault.name(),
        parts: vec![(colour, half)],
        spread: Some((half, worst)),
        label: format!("{half:.2}, at worst {worst:.2}"),
    };
    Group { name: String::new(), bars: vec![bar] }
}

fn row(line: &Line) -> Markup {
    let limit = line.fault.limit();
    let percent = |rate: Option<f64>| rate.map(|rate| format!("{:.0} %", 100.0 * rate));
    html! { tr {
        td { (line.fault.name()) }
        td.n { (line.rounds) }
        td.n { (beside(line.half, Some(limit.half))) }
        td.n { (beside(line.worst, limit.worst)) }
        td.n {
            (percent(line.rate).unwrap_or_default())
            @if let Some(after) = percent(line.rate_after) { small { (after) " of that afterwards" } }
        }
        td.n { (line.acked) }
        td.n { (line.lost) }
        td { @if line.missed { (page::badge(Tone::Bad, "missed")) } }
    } }
}

#[cfg(test)]
mod tests {
    use super::super::{Fault, Outcome};
    use super::*;
    use std::time::Duration;

    fn table(gap_ms: u64, lost: usize) -> Table {
        let mut table = Table::begin("lan");
        let outcome = Outcome {
            gap: Duration::from_millis(gap_ms),
            rate_ratio: Some(0.5),
            rate_ratio_after: None,
            back: None,
            acked: 1000,
            lost,
        };
        table.add(Fault::KillLeader, &[outcome; 3], 0);
        table
    }

    #[test]
    fn the_verdict_is_that_of_the_lines() {
        let kept = page(&[table(300, 0)], "3 rounds");
        assert_eq!(kept.tone, Tone::Good);
        let html = kept.html();
        assert!(html.contains("Every limit was kept, and no acknowledged row was lost."), "{html}");
        assert!(html.contains("kill-leader") && html.contains("0.300 s (0.5)"), "{html}");
        assert_eq!(page(&[table(300, 0), table(700, 0)], "").tone, Tone::Warn);
        let lost = page(&[table(300, 1)], "");
        assert_eq!(lost.tone, Tone::Bad);
        assert!(lost.html().contains("and one acknowledged row was lost."));
    }

    #[cfg(feature = "servers")]
    #[test]
    fn the_page_can_be_read_everywhere() {
        use quorate_report::browser::Browser;
        use std::fs;
        use std::path::Path;

        let networks = ["lan", "two-regions"].map(|network| {
            let mut table = Table::begin(network);
            for (number, fault) in <Fault as clap::ValueEnum>::value_variants().iter().enumerate() {
                let outcome = |round: u64| Outcome {
                    gap: Duration::from_millis(17 + 90 * number as u64 * round),
                    rate_ratio: Some(0.83),
                    rate_ratio_after: Some(1.02),
                    back: None,
                    acked: 104_000,
                    lost: number / 10,
                };
                table.add(*fault, &[1, 2, 3].map(outcome), 0);
            }
            table
        });
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp/failover-page");
        fs::create_dir_all(&out).unwrap();
        let file = out.join("report.html");
        fs::write(&file, page(&networks, "20 rounds of each fault").html()).unwrap();
        let wrong = Browser::start().unwrap().look_everywhere(&file, 2).unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
