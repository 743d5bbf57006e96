//! Whether a group survives the loss of a member, or of a zone.
//!
//! A decision needs more than half of all votes, whoever is there; a commit needs, besides that, as many zones as the
//! rules say.

use super::between::even;
use super::{finding, Finding, Weight};
use crate::remote::{Survey, Voter, Voters};
use std::collections::BTreeMap;

pub fn votes(survey: &Survey, found: &mut Vec<Finding>) {
    let voters = Voters::of(survey);
    // Without a majority there is no leader, which is told already.
    if !voters.go_on_without(|_| false) {
        return;
    }
    let vital = voters.vital();
    members(&voters, &vital, found);
    leaders(&voters, found);
    zones(&voters, &vital, survey.rules.zones, found);
}

/// `vital`: each of them stops the writes when it is lost.
fn members(voters: &Voters, vital: &[&str], found: &mut Vec<Finding>) {
    let (all, majority) = (voters.votes(|_| true), voters.majority());
    let missing = voters.names(|voter| !voter.is_there).join(", ");
    let names = vital.join(" or ");
    match (vital.is_empty(), missing.is_empty()) {
        (false, true) => found.push(finding(
            Weight::Warning,
            format!("the loss of {names} stops all writes: a majority is {majority} of {all} votes"),
            "three members with one vote each survive the loss of any one of them; a logger (quorate logger) has a \
             vote and no data",
        )),
        (false, false) => found.push(finding(
            Weight::Warning,
            format!("missing: {missing}. The loss of {names}, too, stops all writes"),
            "bring back what is missing before you touch the others; what is lost for good: quorate member remove",
        )),
        (true, true) => found.extend(even(all as usize, "votes")),
        (true, false) => {}
    }
}

fn leaders(voters: &Voters, found: &mut Vec<Finding>) {
    let may = voters.names(|voter| voter.member.may_lead());
    if let ([only], 2..) = (&may[..], voters.0.len()) {
        found.push(finding(
            Weight::Warning,
            format!("only {only} may lead, so its loss stops all writes"),
            "the others that have a vote are loggers, or have priority 0: give another server a vote, and a priority \
             above 0",
        ));
    }
}

/// `vital`: who is told of already.
fn zones(voters: &Voters, vital: &[&str], zones_min: u8, found: &mut Vec<Finding>) {
    let mut zones: BTreeMap<&str, Vec<&Voter>> = BTreeMap::new();
    voters.0.iter().for_each(|voter| zones.entry(&voter.member.zone).or_default().push(voter));
    if zones.len() < 2 {
        return;
    }
    let is_vital = |(zone, within): &(&&str, &Vec<&Voter>)| {
        let told = within.iter().any(|voter| vital.contains(&&*voter.member.name));
        !told && !voters.go_on_without(|lost| lost.member.zone == ***zone)
    };
    let named = |zone: &str| match zone {
        "" => "the one without a name".to_owned(),
        zone => zone.to_owned(),
    };
    let stops: Vec<String> = zones.iter().filter(is_vital).map(|(zone, _)| named(zone)).collect();
    if !stops.is_empty() {
        found.push(finding(
            Weight::Warning,
            format!("the loss of a whole zone stops all writes: {}", stops.join(" or ")),
            "place the votes so that no zone has half of them; with two data centres, a logger at a third place is \
             enough",
        ));
    }
    if zones_min > 1 && zones.len() <= usize::from(zones_min) {
        found.push(finding(
            Weight::Warning,
            format!(
                "commits wait for {zones_min} zones, and voters stand in {} only: the loss of any zone stops all writes",
                zones.len()
            ),
            "give one more zone a voter (a logger is enough), or lower the rule: quorate member rules --zones",
        ));
    }
}
