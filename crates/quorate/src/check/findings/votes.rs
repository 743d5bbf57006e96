//! Whether a group survives the loss of a member, or of a zone.
//!
//! A decision needs more than half of all votes, whoever is there; a commit needs, besides that, as many zones as the
//! rules say.

use super::between::even;
use super::{finding, Finding, Weight};
use crate::remote::{NodeSurvey, Survey};
use quorate_live::port::MemberReport;
use std::collections::{BTreeMap, BTreeSet};

struct Voter<'a> {
    member: &'a MemberReport,
    is_there: bool,
}

impl<'a> Voter<'a> {
    fn of(node: &'a NodeSurvey) -> Option<Voter<'a>> {
        let member = node.member.as_ref()?;
        let has_vote = member.role != "learner" && !member.joining && member.votes > 0;
        // One that does not answer here may be there for the others.
        let is_there = match &node.own {
            Some(own) => own.primary && !own.failed,
            None => member.connected,
        };
        has_vote.then_some(Voter { member, is_there })
    }

    fn may_lead(&self) -> bool {
        self.member.role == "voter" && self.member.priority > 0
    }
}

/// All that have a vote, whether they are there or not.
struct Voters<'a>(Vec<Voter<'a>>);

impl<'a> Voters<'a> {
    fn votes(&self, of: impl Fn(&Voter) -> bool) -> u32 {
        self.0.iter().filter(|voter| of(voter)).map(|voter| u32::from(voter.member.votes)).sum()
    }

    fn majority(&self) -> u32 {
        self.votes(|_| true) / 2 + 1
    }

    /// Whether those that are there go on without these.
    fn go_on_without(&self, is_lost: impl Fn(&Voter) -> bool) -> bool {
        self.votes(|voter| voter.is_there && !is_lost(voter)) >= self.majority()
    }

    fn names(&self, of: impl Fn(&Voter) -> bool) -> Vec<&'a str> {
        self.0.iter().filter(|voter| of(voter)).map(|voter| &*voter.member.name).collect()
    }
}

pub fn votes(survey: &Survey, found: &mut Vec<Finding>) {
    let voters = survey.nodes.iter().filter_map(Voter::of);
    let voters = Voters(voters.collect());
    // Without a majority there is no leader, which is told already.
    if !voters.go_on_without(|_| false) {
        return;
    }
    let is_vital = |voter: &Voter| {
        voter.is_there && !voters.go_on_without(|lost| lost.member.id == voter.member.id)
    };
    let vital = voters.names(is_vital);
    members(&voters, &vital, found);
    leaders(&voters, found);
    zones(&voters, &vital.into_iter().collect(), survey.rules.zones, found);
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
    let may = voters.names(|voter| voter.may_lead());
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
fn zones(voters: &Voters, vital: &BTreeSet<&str>, zones_min: u8, found: &mut Vec<Finding>) {
    let mut zones: BTreeMap<&str, Vec<&Voter>> = BTreeMap::new();
    voters.0.iter().for_each(|voter| zones.entry(&voter.member.zone).or_default().push(voter));
    if zones.len() < 2 {
        return;
    }
    let is_vital = |(zone, within): &(&&str, &Vec<&Voter>)| {
        let told = within.iter().any(|voter| vital.contains(&*voter.member.name));
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
