//! What is wrong with a group, in words: what happened, to which node, what it means, what to do.

use super::survey::{NodeSurvey, Survey};
use quorate_live::port::OwnReport;

/// From so many write sets on, a node is told to be behind; a burst is not worth a word.
const LAG_MIN: i64 = 1000;
const LAG_SECONDS_MIN: f64 = 5.0;
const CERTIFICATE_DAYS: i64 = 30;
/// An older error is for the error log.
const FAULT_SECONDS: u64 = 600;

pub(super) fn troubles(survey: &Survey) -> Vec<String> {
    let mut found = Vec::new();
    if survey.leader.is_none() {
        found.push(no_leader(survey));
    }
    for node in &survey.nodes {
        let name = &node.name;
        match &node.own {
            None => {
                let why = node.unanswered.as_deref().unwrap_or_default();
                found.push(format!("{name} does not answer at {}: {why}", node.member.address));
            }
            Some(own) => of_node(node, own, &mut found),
        }
    }
    found
}

fn no_leader(survey: &Survey) -> String {
    let voters =
        survey.nodes.iter().filter(|node| node.member.role != "learner" && !node.member.joining);
    let votes = |node: &NodeSurvey| u32::from(node.member.votes);
    let all: u32 = voters.clone().map(votes).sum();
    let here: u32 = voters.filter(|node| node.own.is_some()).map(votes).sum();
    let what = match 2 * here > all {
        true => "they elect one within seconds, if they reach each other",
        false => {
            "bring the others back; only if they are lost for good: quorate member force-quorum --keep NODE,..."
        }
    };
    format!(
        "no member leads, so nothing can be written: members with {here} of {all} votes answer, a majority is \
         {}: {what}",
        all / 2 + 1
    )
}

fn of_node(node: &NodeSurvey, own: &OwnReport, found: &mut Vec<String>) {
    let name = &node.name;
    let mut say = |what: String| found.push(format!("{name} {what}"));
    match &*node.state {
        "Synced" if !node.ready && node.member.role != "logger" => {
            say("is Synced, but takes no writes".into());
        }
        "Synced" => {}
        "Failed" => say(
            "is out of service: it acknowledges nothing any more. See its error log, then restart it".into(),
        ),
        "Isolated" => say("is cut off by its operator's order (gmcast.isolate)".into()),
        "Non-primary" => say("is not connected to a majority, and takes no writes".into()),
        other => say(format!("is not Synced yet: {other}")),
    }
    let old = node.lag_seconds.is_some_and(|seconds| seconds >= LAG_SECONDS_MIN);
    if let Some(lag) = node.lag.filter(|lag| old || *lag >= LAG_MIN) {
        let seconds = node.lag_seconds.unwrap_or_default();
        say(format!(
            "is behind by {lag} write sets, the first of them {seconds:.0} s old: see what holds its appliers \
             (SHOW PROCESSLIST); what it reads may be old"
        ));
    }
    if let Some(warning) = &own.log.warning {
        say(format!("has trouble with the disk of its log: {warning}"));
    }
    if let Some(disputed) = &own.disputed {
        say(format!("is told that it is an older state of itself: {disputed}"));
    }
    if let Some(days) = own.certificate_days.filter(|days| *days <= CERTIFICATE_DAYS) {
        say(match days {
            ..0 => "has an expired certificate: renew it, and FLUSH SSL".into(),
            days => {
                format!("has a certificate that expires in {days} days: renew it, and FLUSH SSL")
            }
        });
    }
    if let Some(fault) = own.last_fault.as_ref().filter(|fault| fault.seconds_ago <= FAULT_SECONDS)
    {
        say(format!("had an error {} s ago: {}", fault.seconds_ago, fault.message));
    }
}
