//! The page of a run: the verdict, the timeline, what was found, what was done.

use super::report::{Conclusion, Counts, Report};
use super::sample::longest_gap;
use super::{timeline, Options};
use crate::check::Finding;
use crate::schedule::Event;
use crate::workload::Writers;
use maud::{html, Markup};
use quorate_report::page::{self, Page, Section, Tone};

/// `log`: what the nemesis wrote while it worked.
pub(super) fn page(report: &Report, options: &Options, nodes: usize, log: &str) -> Page {
    let section =
        |id: &str, title: &str, body| Section { id: id.into(), title: title.into(), body };
    let chart = timeline::chart(&report.moments, &report.events, nodes);
    let writers = match options.writers {
        Writers::One => "one writing node",
        Writers::Everywhere => "writes everywhere",
    };
    Page {
        title: "quorate chaos".into(),
        about: html! {
            "seed " (options.seed) " · " (nodes) " nodes, " (writers) " · "
            (options.duration.as_secs()) " s · schedules " (options.schedules.join(", "))
        },
        tone: match report.conclusion {
            Conclusion::Held => Tone::Good,
            Conclusion::Violated => Tone::Bad,
            Conclusion::NotHealed | Conclusion::Empty => Tone::Warn,
        },
        verdict: verdict(report),
        sections: vec![
            section("timeline", "Timeline", page::figure(&chart)),
            section("operations", "Operations", operations(&report.counts)),
            section("findings", "Findings", findings(&report.findings)),
            section("faults", "Faults", faults(&report.events, log)),
        ],
    }
}

fn verdict(report: &Report) -> Markup {
    let (at, gap) = longest_gap(&report.moments);
    let (at, gap) = (at.as_secs_f64(), gap.as_secs_f64());
    let acknowledged: usize = report.counts.iter().map(|(_, counts)| counts.ok).sum();
    html! {
        p { strong.headline { (report.headline()) } }
        p {
            (acknowledged) " operations were acknowledged, through " (report.events.len())
            " faults. The longest time without an acknowledgement was " (format!("{gap:.1}"))
            " s, from " (format!("{at:.1}")) " s on."
        }
        @for reason in &report.unhealed { p { "Not healed: " (reason) } }
    }
}

fn operations(counts: &[(&'static str, Counts)]) -> Markup {
    page::scroll(html! { table {
        thead { tr { th { "workload" } th.n { "acknowledged" } th.n { "refused" } th.n { "unknown" } } }
        tbody { @for (name, counts) in counts { tr {
            td { (name) } td.n { (counts.ok) } td.n { (counts.failed) } td.n { (counts.unknown) }
        } } }
    } })
}

fn findings(findings: &[(String, Vec<Finding>)]) -> Markup {
    html! {
        @if findings.iter().all(|(_, findings)| findings.is_empty()) { p { "Nothing." } }
        @for (name, findings) in findings { @for Finding { anomaly, count, evidence } in findings {
            @let (tone, kind) = match anomaly.is_violation() {
                true => (Tone::Bad, "violation"),
                false => (Tone::Plain, "observed"),
            };
            h3 { (page::badge(tone, kind)) " " (name) ": " (anomaly.to_string()) }
            p { (count) " times; the smallest:" }
            pre { (evidence) }
        } }
    }
}

fn faults(events: &[Event], log: &str) -> Markup {
    let names = |event: &Event| {
        let names: Vec<String> =
            event.nodes.iter().map(|node| format!("node{}", node + 1)).collect();
        names.join(", ")
    };
    let table = html! { table {
        thead { tr { th.n { "from, s" } th.n { "to, s" } th { "fault" } th { "nodes" } th { "round" } } }
        tbody { @for event in events { tr {
            td.n { (format!("{:.1}", event.begin.as_secs_f64())) }
            td.n { @if let Some(end) = event.end { (format!("{:.1}", end.as_secs_f64())) } }
            td { (event.harm.to_string()) }
            td { (names(event)) }
            td { (event.round) }
        } } }
    } };
    html! {
        (page::scroll(table))
        @if !log.is_empty() { details { summary { "As it was written meanwhile" } pre { (log) } } }
    }
}
