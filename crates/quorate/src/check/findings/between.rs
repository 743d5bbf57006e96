//! What differs between servers that are to be one group.

use super::{finding, Finding, Weight, CLOCK_MS_MAX};
use crate::check::facts::Facts;
use quorate_live::page;
use std::collections::BTreeMap;
use std::time::Duration;

/// Beyond it a group is spread over regions.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(5);

/// Between several servers.
pub fn across(all: &[Facts]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut differ = |weight, what: &str, value: &dyn Fn(&Facts) -> String, advice: &str| {
        let each = all.iter().map(|facts| (value(facts), &*facts.address));
        if let Some(differing) = differing(each) {
            found.push(finding(weight, format!("{what} differ: {differing}"), advice));
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
    if all.iter().any(|facts| is_far(Duration::from_secs_f64(facts.round_trip_ms / 1000.0))) {
        found.push(far("some are"));
    }
    found
}

/// Each value with who has it, if there are several.
pub fn differing<'a>(each: impl Iterator<Item = (String, &'a str)>) -> Option<String> {
    let mut by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    each.for_each(|(value, who)| by_value.entry(value).or_default().push(who));
    let told = |(value, at): (&String, &Vec<&str>)| format!("{value:?} at {}", at.join(", "));
    let told: Vec<String> = by_value.iter().map(told).collect();
    (told.len() > 1).then(|| told.join("; "))
}

pub fn is_far(round_trip: Duration) -> bool {
    round_trip > ROUND_TRIP_MAX
}

/// `who`: "some are", say.
pub fn far(who: &str) -> Finding {
    finding(
        Weight::Note,
        format!("{who} more than {} ms away from here", ROUND_TRIP_MAX.as_millis()),
        concat!(
            "a commit takes one round trip to the leader and its nearest majority: place the members, and \
             priorities, by that; see ",
            page!("docs/run/plan.md")
        ),
    )
}

/// Of so many votes, or of servers that are to have one each.
pub fn even(count: usize, what: &str) -> Option<Finding> {
    let is_even = count > 0 && count % 2 == 0;
    is_even.then(|| {
        finding(
            Weight::Note,
            format!("{count} {what} survive the loss of as many as {} do", count - 1),
            "an odd number of votes is best; a logger (quorate logger) has a vote and no data",
        )
    })
}
