//! What no member says of itself, but several together: links that are cut, releases that differ, and how many more may
//! be lost.

use super::asked::{said_by, Answers};
use super::survey::Survey;
use super::voters::Voters;
use quorate_live::port::{MemberReport, Report, Unanswered};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs};

/// Two members that this command reaches, and that do not reach each other.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut {
    pub ends: [End; 2],
}

#[derive(Debug, PartialEq, Eq)]
pub struct End {
    pub name: String,
    pub address: String,
}

/// What each member knows of feature levels.
#[derive(Debug, Default)]
pub struct Levels {
    /// The highest that some member knows.
    pub highest: u16,
    /// Members that do not know it, or of whom nobody knows.
    pub without: Vec<String>,
}

/// Both ends have to say so: of a connection that is being made, or ends, one knows before the other. One that is cut off
/// by order, or is out of service, is told of elsewhere.
pub fn cuts(known: &Report, answers: &Answers) -> Vec<Cut> {
    let connects = |report: &Report| !report.own.isolated && !report.own.failed;
    let all: Vec<(&MemberReport, &Report)> = known
        .members
        .iter()
        .filter_map(|member| Some((member, said_by(member, answers).filter(|r| connects(r))?)))
        .collect();
    let misses = |report: &Report, other: &MemberReport| {
        report.members.iter().any(|member| member.id == other.id && !member.connected)
    };
    let end =
        |member: &MemberReport| End { name: member.name.clone(), address: member.address.clone() };
    let mut found = Vec::new();
    for (at, (one, by_one)) in all.iter().enumerate() {
        for (other, by_other) in &all[at + 1..] {
            if misses(by_one, other) && misses(by_other, one) {
                found.push(Cut { ends: [end(one), end(other)] });
            }
        }
    }
    found
}

/// By each member's own word, else by that of the one that knows most.
pub fn levels(known: &Report, answers: &Answers) -> Levels {
    let of = |member: &MemberReport| {
        let own = said_by(member, answers).into_iter().flat_map(|report| &report.members);
        let own = own.filter(|own| own.id == member.id).find_map(|own| own.levels);
        own.or(member.levels).map(|(_, highest)| highest)
    };
    let highest = known.members.iter().filter_map(of).max().unwrap_or_default();
    let without = known.members.iter().filter(|member| of(member) < Some(highest));
    Levels { highest, without: without.map(|member| member.name.clone()).collect() }
}

/// What is wrong between members that are each well.
pub fn troubles(survey: &Survey) -> Vec<String> {
    let cut = survey.cuts.iter().map(|Cut { ends: [one, other] }| {
        format!(
            "{} ({}) and {} ({}) do not reach each other, though this command reaches both: look for a link that is \
             down, or a firewall, between them. Nothing is lost; but if one of the two has to lead, the other gets \
             nothing from it",
            one.name, one.address, other.name, other.address
        )
    });
    cut.chain(thin(survey)).collect()
}

/// What is not wrong, and is to be known.
pub fn notes(survey: &Survey) -> Vec<String> {
    [releases(survey), level(survey), few(survey)].into_iter().flatten().collect()
}

/// Members are missing, and there is none to spare.
fn thin(survey: &Survey) -> Option<String> {
    let voters = Voters::of(survey);
    let missing = voters.names(|voter| !voter.is_there);
    let (there, vital) = (voters.names(|voter| voter.is_there), voters.vital());
    if !survey.is_led() || missing.is_empty() || vital.is_empty() {
        return None;
    }
    let what = match vital.len() == there.len() {
        true => "if one more voter is lost".to_owned(),
        false => format!("if {} is lost, too", vital.join(" or ")),
    };
    Some(format!(
        "{what}, nothing can be written: members with {} of {} votes are connected, a majority is {}. Bring {} back; \
         one that is lost for good: quorate member remove NAME, and add another",
        voters.votes(|voter| voter.is_there),
        voters.votes(|_| true),
        voters.majority(),
        missing.join(", "),
    ))
}

/// All are there, and none is to spare. Of a single one everybody knows.
fn few(survey: &Survey) -> Option<String> {
    let voters = Voters::of(survey);
    let vital = voters.vital();
    let is_missing = voters.0.iter().any(|voter| !voter.is_there);
    if is_missing || voters.0.len() < 2 || vital.is_empty() {
        return None;
    }
    Some(format!(
        "if {} is lost, nothing can be written: {} votes have no majority without it. One more vote changes that, that \
         of a logger, too (quorate logger, quorate member add --role logger)",
        vital.join(" or "),
        voters.votes(|_| true),
    ))
}

/// Seeds that are no member's address, and do not answer, or not for this group: nothing else tells of them.
pub fn strangers(seeds: &[String], known: &Report, answers: &Answers) -> Vec<String> {
    let strange = |seed: &String| match answers.get(seed) {
        Some(Err(Unanswered::NotReached(_))) => Some("it does not answer".to_owned()),
        Some(Err(Unanswered::Lost(why))) => Some(why.clone()),
        Some(Ok(report)) if report.group.is_empty() => {
            Some(format!("{}, which answers there, is in no group yet", report.own.name))
        }
        _ => None,
    };
    let strange: Vec<(&String, String)> =
        seeds.iter().filter_map(|seed| Some((seed, strange(seed)?))).collect();
    if strange.is_empty() {
        return Vec::new(); // nearly always: names are looked up for it
    }
    let resolved = |address: &str| -> BTreeSet<SocketAddr> {
        address.to_socket_addrs().into_iter().flatten().collect()
    };
    let members: BTreeSet<SocketAddr> =
        known.members.iter().flat_map(|member| resolved(&member.address)).collect();
    let is_member = |seed: &str| {
        let addresses = resolved(seed);
        // What has no address now may be a member's name.
        addresses.is_empty() || !addresses.is_disjoint(&members)
    };
    let strangers = strange.into_iter().filter(|(seed, _)| !is_member(seed));
    strangers
        .map(|(seed, why)| {
            format!(
                "{seed} is no member's address, and {why}. A server that was stopped cleanly, or has left the group, is \
                 no member until it joins again"
            )
        })
        .collect()
}

fn releases(survey: &Survey) -> Option<String> {
    let mut by_release: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in &survey.nodes {
        if let Some(release) = &node.release {
            by_release.entry(release).or_default().push(&node.name);
        }
    }
    let each = |(release, names): (&&str, &Vec<&str>)| format!("{} {release}", names.join(", "));
    (by_release.len() > 1).then(|| {
        let all: Vec<String> = by_release.iter().map(each).collect();
        format!(
            "the members run different releases ({}): upgrade the others, one after another",
            all.join("; ")
        )
    })
}

impl Survey {
    /// The level that the group could have, and without whom, if somebody holds it back. Once all know a higher one,
    /// the leader raises it by itself.
    pub fn held_back(&self) -> Option<&Levels> {
        let Levels { highest, without } = &self.levels;
        (self.level < *highest && !without.is_empty()).then_some(&self.levels)
    }
}

fn level(survey: &Survey) -> Option<String> {
    let Levels { highest, without } = survey.held_back()?;
    Some(format!(
        "the group stays at feature level {}, though {highest} is known to others: {} runs an older release, or is \
         away since the upgrade. Upgrade it, bring it back, or remove it (quorate member remove)",
        survey.level,
        without.join(", ")
    ))
}

#[cfg(test)]
mod tests;
