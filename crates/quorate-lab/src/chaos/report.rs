//! What a run found, for people.

use super::sample::{longest_gap, Moment};
use super::{page, timeline, Options};
use crate::check::Finding;
use crate::history::{Operation, Outcome};
use crate::schedule::Event;
use crate::workload::Writers;
use anyhow::{Context, Result};
use quorate_report::chart::Chart;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const TIMELINE_WIDTH: u32 = 1050;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Everything promised was kept.
    Held,
    /// Something was lost, diverged, or was seen that must not be.
    Violated,
    /// Nodes did not come back, so that it cannot be said.
    NotHealed,
    /// Nothing was acknowledged: the run shows nothing.
    Empty,
}

pub struct Report {
    pub conclusion: Conclusion,
    /// What did not come back by itself.
    pub unhealed: Vec<String>,
    /// By workload, and of the comparison of all tables.
    pub findings: Vec<(String, Vec<Finding>)>,
    pub events: Vec<Event>,
    pub moments: Vec<Moment>,
    pub counts: Vec<(&'static str, Counts)>,
}

/// Operations of one workload by outcome, final reads left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub ok: usize,
    pub failed: usize,
    pub unknown: usize,
}

impl Counts {
    pub(super) fn of(history: &[Operation]) -> Counts {
        let count = |outcome| {
            let of = |operation: &&Operation| !operation.is_final() && operation.outcome == outcome;
            history.iter().filter(of).count()
        };
        Counts {
            ok: count(Outcome::Ok),
            failed: count(Outcome::Fail),
            unknown: count(Outcome::Unknown),
        }
    }
}

impl Report {
    /// Draws the conclusion from what was found.
    pub(super) fn conclude(&mut self) {
        let violated = self
            .findings
            .iter()
            .flat_map(|(_, findings)| findings)
            .any(|finding| finding.anomaly.is_violation());
        self.conclusion = match () {
            () if violated => Conclusion::Violated,
            () if !self.unhealed.is_empty() => Conclusion::NotHealed,
            () if self.counts.iter().all(|(_, counts)| counts.ok == 0) => Conclusion::Empty,
            () => Conclusion::Held,
        };
    }

    pub(super) fn write(&self, options: &Options, nodes: usize, out: &Path) -> Result<()> {
        let text = self.text(options, nodes);
        save(&out.join("verdict.txt"), &text)?;
        let chart = timeline::chart(&self.moments, &self.events, nodes);
        save(&out.join("timeline.svg"), &chart.file(TIMELINE_WIDTH))?;
        let faults = fs::read_to_string(out.join("faults.txt")).unwrap_or_default();
        let page = page::page(self, options, nodes, &faults);
        save(&out.join("report.html"), &page.html())
    }

    /// The verdict as text.
    pub fn text(&self, options: &Options, nodes: usize) -> String {
        let mut text = String::new();
        let writers = match options.writers {
            Writers::One => "one writing node",
            Writers::Everywhere => "writes everywhere",
        };
        let (at, gap) = longest_gap(&self.moments);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}\n\nseed {}, {nodes} nodes, {writers}, {} s, schedules {}, {} faults\n\
             longest time without an acknowledgement: {:.1} s, from {:.1} s on\n",
            self.headline(),
            options.seed,
            options.duration.as_secs(),
            options.schedules.join(","),
            self.events.len(),
            gap.as_secs_f64(),
            at.as_secs_f64(),
        );
        let _ = writeln!(text, "{:<12} {:>9} {:>9} {:>9}", "workload", "ok", "refused", "unknown");
        for (name, counts) in &self.counts {
            let Counts { ok, failed, unknown } = counts;
            let _ = writeln!(text, "{name:<12} {ok:>9} {failed:>9} {unknown:>9}");
        }
        for reason in &self.unhealed {
            let _ = writeln!(text, "\nnot healed: {reason}");
        }
        for (name, findings) in &self.findings {
            for Finding { anomaly, count, evidence } in findings {
                let kind = if anomaly.is_violation() { "VIOLATION" } else { "observed" };
                let _ = writeln!(text, "\n{kind} {name}: {anomaly}, {count} times; the smallest:");
                for line in evidence.lines() {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
        text
    }

    pub fn headline(&self) -> &'static str {
        match self.conclusion {
            Conclusion::Held => "Everything held.",
            Conclusion::Violated => "VIOLATED: something that was promised was not kept.",
            Conclusion::NotHealed => "NOT HEALED: not all nodes came back by themselves.",
            Conclusion::Empty => "EMPTY: nothing was acknowledged, so the run shows nothing.",
        }
    }
}

fn save(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(all(test, feature = "browser"))]
mod tests {
    use super::*;
    use crate::check::Anomaly;
    use crate::schedule::Harm;
    use quorate_report::browser::Browser;
    use std::time::Duration;

    #[test]
    fn a_report_can_be_read_everywhere() {
        let moment = |tenth: u64| Moment {
            at: Duration::from_millis(tenth * 100),
            ok: tenth * 90,
            failed: tenth * 3,
            unknown: tenth / 9,
        };
        let harms = [Harm::Kill, Harm::Isolate, Harm::FreezeDisk, Harm::Pause, Harm::PowerCut];
        let event = |number: usize| Event {
            round: "amid".into(),
            harm: harms[number % harms.len()],
            nodes: vec![number % 5, (number + 1) % 5],
            begin: Duration::from_secs(number as u64 * 9),
            end: Some(Duration::from_secs(number as u64 * 9 + 14)),
        };
        let evidence = "a row that is long enough to be wider than a narrow window ".repeat(4);
        let finding = Finding { anomaly: Anomaly::Diverged, count: 2, evidence };
        let report = Report {
            conclusion: Conclusion::Violated,
            unhealed: vec!["node2 was started once more".into()],
            findings: vec![("all tables".into(), vec![finding])],
            events: (0..60).map(event).collect(),
            moments: (0..6000).map(moment).collect(),
            counts: vec![("bank", Counts { ok: 540_000, failed: 18_000, unknown: 666 })],
        };
        let options = Options {
            workloads: vec!["bank".into()],
            schedules: vec!["every".into()],
            seed: 7,
            duration: Duration::from_secs(600),
            writers: Writers::Everywhere,
        };
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp/chaos-page");
        fs::create_dir_all(&out).unwrap();
        report.write(&options, 5, &out).unwrap();
        let mut browser = Browser::start().unwrap();
        let wrong = browser.look_everywhere(&out.join("report.html"), 1).unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
