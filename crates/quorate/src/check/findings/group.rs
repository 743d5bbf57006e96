//! Between the members of a group, by what all of them report.

use super::between::differing;
use super::members::mean_sync;
use super::{finding, votes, Finding, Weight, SYNC_MAX};
use crate::remote::{nobody_writes, Cut, Levels, NodeSurvey, Survey};
use quorate_live::page;
use std::time::Duration;

/// A disk so many times slower than the others' is told of, if it is slow at all.
const UNEVEN_TIMES: u32 = 4;
const UNEVEN_MIN: Duration = Duration::from_millis(1);

pub fn of_group(survey: &Survey) -> Vec<Finding> {
    let mut found = Vec::new();
    if survey.leader.is_none() {
        found.push(finding(
            Weight::Error,
            "no member leads, so nothing can be written",
            concat!(
                "quorate status counts the votes that answer; if a majority is lost: ",
                page!("docs/run/lost-majority.md")
            ),
        ));
    }
    found.extend(nobody_writes(survey).map(|what| {
        let advice = match survey.is_led() {
            true => "look at read_only on the leader, and at its backlog (SHOW STATUS LIKE 'wsrep_local_recv_queue')",
            false => "bring back a server that may lead, or give one that is there a priority above 0",
        };
        finding(Weight::Error, what, advice)
    }));
    links(survey, &mut found);
    disks(survey, &mut found);
    releases(survey, &mut found);
    votes::votes(survey, &mut found);
    if survey.rules.paused {
        found.push(finding(
            Weight::Note,
            "the group is paused: nothing hands leadership over, or expels a member, by itself",
            "quorate resume, when the work on it is done",
        ));
    }
    found
}

/// Of a group of which no member could be asked.
pub fn unreached(why: &str) -> Finding {
    finding(
        Weight::Error,
        format!("the group was not checked: {why}"),
        "its members are asked at the group's port by an operator with a credential (--seed, --cluster, \
         --operator-file); quorate check --peers, on this host, says whether that port is blocked",
    )
}

fn links(survey: &Survey, found: &mut Vec<Finding>) {
    for Cut { ends: [one, other] } in &survey.cuts {
        let leads = |name: &str| survey.leader.as_deref() == Some(name);
        let (weight, means) = match leads(&one.name) || leads(&other.name) {
            true => (Weight::Error, "one of them leads, so the other gets nothing from it"),
            false => {
                (Weight::Warning, "if one of them has to lead, the other gets nothing from it")
            }
        };
        found.push(finding(
            weight,
            format!("{} and {} do not reach each other: {means}", one.name, other.name),
            format!(
                "look which port is blocked, on {}: quorate check --peers {}; on {}: quorate check --peers {}",
                one.name, other.address, other.name, one.address
            ),
        ));
    }
}

/// One that is slow for all is told of for itself.
fn disks(survey: &Survey, found: &mut Vec<Finding>) {
    let mean = |node: &NodeSurvey| mean_sync(&node.own.as_ref()?.log);
    let mut means: Vec<Duration> = survey.nodes.iter().filter_map(mean).collect();
    means.sort_unstable();
    let Some(usual) = means.get(means.len().saturating_sub(1) / 2) else { return };
    let is_uneven =
        |mean: &Duration| *mean > UNEVEN_MIN && *mean <= SYNC_MAX && *mean > *usual * UNEVEN_TIMES;
    for node in &survey.nodes {
        let Some(slow) = mean(node).filter(is_uneven) else { continue };
        let ms = |time: &Duration| time.as_secs_f64() * 1000.0;
        found.push(finding(
            Weight::Warning,
            format!(
                "a sync of {}'s log takes {:.1} ms, where {:.1} ms are usual in this group",
                node.name,
                ms(&slow),
                ms(usual)
            ),
            "commits wait for it when it leads, and when a faster member is down: give it a disk like the others', \
             or a lower priority",
        ));
    }
}

fn releases(survey: &Survey, found: &mut Vec<Finding>) {
    let each = survey.nodes.iter().filter_map(|node| Some((node.release.clone()?, &*node.name)));
    let advice =
        concat!("bring all to the newest, one after another: ", page!("docs/run/upgrade.md"));
    if let Some(differing) = differing(each) {
        let what = format!("releases of Quorate differ: {differing}");
        found.push(finding(Weight::Warning, what, advice));
    }
    if let Some(Levels { highest, without }) = survey.held_back() {
        found.push(finding(
            Weight::Warning,
            format!(
                "the group works at feature level {} of {highest}, because of {}",
                survey.level,
                without.join(", ")
            ),
            concat!(
                "the level is raised when all members are there with the newer release: ",
                page!("docs/run/upgrade.md")
            ),
        ));
    }
}

#[cfg(test)]
mod tests;
