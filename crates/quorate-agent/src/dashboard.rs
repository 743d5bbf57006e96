//! The dashboard and the alerts that come with the agent: they ask for nothing that it does not serve, and the
//! page on metrics leaves nothing out that it does.

use crate::memory::Memory;
use crate::metrics::render;
use crate::verdict::tests::report;
use quorate_latency::LatencyReport;
use quorate_live::port::{MemberReport, StandingReport};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const DASHBOARD: &str = include_str!("../../../monitoring/grafana.json");
const ALERTS: &str = include_str!("../../../monitoring/quorate.rules.yml");
const PAGE: &str = include_str!("../../../docs/run/status.md");

/// The panels of a row, from left to right, are so many units wide.
const WIDTH: u64 = 24;

/// Names of all metrics, of a leader of which everything is known.
fn served() -> BTreeSet<String> {
    let mut all = report(true, "single");
    all.own.certificate_days = Some(90);
    all.own.log.age_s = Some(60);
    all.own.log.max = Some(1 << 30);
    all.own.log.sync_latency = Some(LatencyReport::default());
    let standing = Some(StandingReport::default());
    all.members =
        vec![MemberReport { matched_index: Some(1), standing, ..MemberReport::default() }];
    let memory = Memory::new(Duration::from_secs(60));
    memory.answered(all, Instant::now());
    let text = render(&memory.known(), Some(90)).unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// Those of ours among the words of an expression.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("quorate_")).map(str::to_owned).collect()
}

fn panels() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    dashboard["panels"].as_array().unwrap().clone()
}

#[test]
fn what_dashboard_and_alerts_ask_for_is_served() {
    let served = served();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let mut asked: Vec<String> =
        variables.map(|variable| variable["definition"].as_str().unwrap().to_owned()).collect();
    for panel in panels() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            asked.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    asked.extend(ALERTS.lines().filter(|line| line.contains("expr:")).map(str::to_owned));
    assert!(asked.len() > 40, "{asked:#?}");
    for expression in asked {
        let unknown: Vec<String> =
            named(&expression).into_iter().filter(|name| !served.contains(name)).collect();
        assert_eq!(unknown, Vec::<String>::new(), "in {expression}");
    }
}

#[test]
fn the_page_has_every_metric_and_no_other() {
    let documented: BTreeSet<String> =
        PAGE.lines().filter(|line| line.starts_with("| `quorate_")).flat_map(named).collect();
    assert_eq!(documented, served());
}

#[test]
fn panels_are_told_apart_and_do_not_overlap() {
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title} has the id of another panel");
        let is_row = panel["type"] == "row";
        assert!(is_row || panel["description"].is_string(), "{title} does not say what it means");
        let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        assert!(at("x") + at("w") <= WIDTH, "{title} is beyond the edge");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{title} lies over another panel");
            }
        }
    }
}
