//! What differs between servers that are to be one group.

use super::{finding, Finding, Weight, CLOCK_MS_MAX};
use crate::check::facts::Facts;
use quorate_live::page;
use std::collections::BTreeMap;

/// Beyond it a group is spread over regions.
const ROUND_TRIP_MS_MAX: f64 = 5.0;

/// Between several servers.
pub fn across(all: &[Facts]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut differ = |weight, what: &str, value: &dyn Fn(&Facts) -> String, advice: &str| {
        let mut by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        all.iter().for_each(|facts| by_value.entry(value(facts)).or_default().push(&facts.address));
        if by_value.len() > 1 {
            let each = by_value.iter().map(|(value, at)| format!("{value:?} at {}", at.join(", ")));
            let each: Vec<String> = each.collect();
            found.push(finding(weight, format!("{what} differ: {}", each.join("; ")), advice));
        }
    };
    let variable = |name: &'static str| move |facts: &Facts| facts.variable(name).to_owned();
    let release = |facts: &Facts| {
        facts
            .version
            .split('-')
            .next()
            .unwrap_or_default()
            .rsplit_once('.')
            .map_or(String::new(), |(release, _)| release.to_owned())
    };
    differ(Weight::Error, "releases of MariaDB", &release, "install the same on all, then begin");
    for name in ["lower_case_table_names", "innodb_page_size"] {
        differ(
            Weight::Error,
            name,
            &variable(name),
            "they are chosen when a data directory is made: the servers cannot hold each other's state",
        );
    }
    for name in
        ["character_set_server", "collation_server", "sql_mode", "time_zone", "innodb_strict_mode"]
    {
        differ(
            Weight::Warning,
            name,
            &variable(name),
            "what a statement does would depend on the server that it runs on; set the same on all",
        );
    }
    let (mut ids, mut twice) = (BTreeMap::new(), Vec::new());
    for facts in all {
        if let Some(other) = ids.insert(facts.variable("server_id"), &facts.address) {
            twice.push(format!("{other} and {}", facts.address));
        }
    }
    if !twice.is_empty() {
        found.push(finding(
            Weight::Note,
            format!("server_id is the same at {}", twice.join(", ")),
            "give each its own, where servers have binary logs that replicas read",
        ));
    }
    let clocks = || all.iter().map(|facts| facts.clock_ahead_ms);
    let apart = clocks().fold(f64::MIN, f64::max) - clocks().fold(f64::MAX, f64::min);
    if all.len() > 1 && apart > CLOCK_MS_MAX {
        found.push(finding(
            Weight::Warning,
            format!("their clocks are {:.1} s apart", apart / 1000.0),
            "run an NTP client on all hosts",
        ));
    }
    if all.iter().any(|facts| facts.round_trip_ms > ROUND_TRIP_MS_MAX) {
        found.push(finding(
            Weight::Note,
            "some are more than 5 ms away from here",
            concat!(
                "a commit takes one round trip to the leader and its nearest majority: place the members, and \
                 priorities, by that; see ",
                page!("docs/run/plan.md")
            ),
        ));
    }
    if !all.is_empty() && all.len() % 2 == 0 {
        found.push(finding(
            Weight::Note,
            format!("{} servers survive the loss of as many as {} do", all.len(), all.len() - 1),
            "an odd number of votes is best; a logger (quorate logger) has a vote and no data",
        ));
    }
    found
}
