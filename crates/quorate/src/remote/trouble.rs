//! What is wrong with a group, in words: what happened, to which node, what it means, what to do.

use super::here::{DOWN, STOPPED};
use super::survey::{NodeSurvey, Survey, NO_ANSWER, SYNCED};
use super::voters::Voters;
use crate::view::table::human_age;
use quorate_live::port::{Fault, OwnReport};

/// From so many write sets on, a node is told to be behind; a burst is not worth a word.
const LAG_MIN: i64 = 1000;
const LAG_SECONDS_MIN: f64 = 5.0;
pub const CERTIFICATE_DAYS: i64 = 30;
/// An older error is no trouble any more.
const FAULT_SECONDS: u64 = 600;

pub fn troubles(survey: &Survey) -> Vec<String> {
    let mut found = Vec::new();
    if survey.is_known && survey.leader.is_none() {
        found.push(no_leader(survey));
    }
    found.extend(nobody_writes(survey));
    for node in &survey.nodes {
        let mut say = |what: String| found.push(format!("{} {what}", node.name));
        of_state(node, &mut say);
        if let Some(own) = &node.own {
            of_member(node, own, &mut say);
        }
    }
    found
}

pub(super) fn is_recent(fault: &Fault) -> bool {
    fault.seconds_ago <= FAULT_SECONDS
}

fn no_leader(survey: &Survey) -> String {
    let voters = Voters::of(survey);
    let (all, majority) = (voters.votes(|_| true), voters.majority());
    // None of them is connected to a majority: it counts how many could be.
    let here = voters.votes(|voter| voter.answers);
    let what = match here >= majority {
        true => "they elect one within seconds, if they reach each other",
        false => {
            "bring the others back; only if they are lost for good: quorate member force-quorum --keep NODE,..."
        }
    };
    format!(
        "no member leads, so nothing can be written: members with {here} of {all} votes answer, a majority is \
         {majority}: {what}"
    )
}

/// A member leads, and servers answer, and yet none of them takes writes.
pub fn nobody_writes(survey: &Survey) -> Option<String> {
    if let Some(leader) = survey.leader.as_ref().filter(|_| !survey.is_led()) {
        let members = survey.nodes.iter().filter_map(|node| node.member.as_ref());
        let may: Vec<&str> =
            members.filter(|member| member.may_lead()).map(|member| &*member.name).collect();
        return Some(format!(
            "no server takes writes: {leader} leads only until a member is there that may lead, because its priority is \
             0, or it is a logger. Bring one back ({}), or: quorate member set NAME --priority 1, for a server that is \
             there. No data is affected",
            may.join(", ")
        ));
    }
    // A logger hands over.
    let leader = survey.telling_leader().filter(|node| !node.is_logger())?;
    let is_ready = survey.nodes.iter().any(|node| node.ready);
    let is_written = survey.nodes.iter().any(NodeSurvey::takes_writes);
    (is_ready && !is_written).then(|| {
        format!(
            "no server takes writes, though {0} leads: it is read_only, or it still applies what was committed before \
             it led (primary_failover=wait). If somebody set read_only: SET GLOBAL read_only = OFF on {0}. No data is \
             affected",
            leader.name
        )
    })
}

fn of_state(node: &NodeSurvey, say: &mut impl FnMut(String)) {
    let why = node.unanswered.as_deref().unwrap_or_default();
    match &*node.state {
        SYNCED if !node.ready && !node.is_logger() => {
            say("is Synced, but takes no statements: see wsrep_ready, and its error log".into())
        }
        SYNCED => {}
        DOWN => say(format!("does not run; start it with: quorate start {}", node.name)),
        STOPPED => {
            let pid = node.here.as_ref().and_then(|here| here.pid).unwrap_or_default();
            say(format!(
                "is stopped (SIGSTOP), and takes part in nothing; let it go on with: kill -CONT {pid}"
            ));
        }
        NO_ANSWER => {
            let at = node.member.as_ref().map(|member| format!(" at {}", member.address));
            say(format!(
                "does not answer{}: {why}. Start it, or look at its host and the network",
                at.unwrap_or_default()
            ));
        }
        "Failed" => say(
            "is out of service: it acknowledges nothing any more. See its error log, then restart it".into(),
        ),
        "Isolated" => say(format!(
            "is cut off by its operator's order (gmcast.isolate). Nothing is lost; quorate member isolate {} --end \
             connects it again",
            node.name
        )),
        "Non-primary" => say(
            "is not connected to a majority, and takes no writes. It returns by itself when it reaches the others: \
             look at the network between them"
                .into(),
        ),
        "Donor/Desynced" => say(
            "sends its state to another node, or was desynced (wsrep_desync). It catches up by itself after that"
                .into(),
        ),
        "Inconsistent" => say(
            "has left the group because of an error: see its error log, and restart it. If its data differs, it fetches the data of another node".into(),
        ),
        other => say(format!("is not Synced yet: {other}. Its error log says what it does")),
    }
    if node.own.is_none() && !why.is_empty() && ![DOWN, STOPPED, NO_ANSWER].contains(&&*node.state)
    {
        say(format!("tells this command no more than its state: {why}"));
    }
}

impl NodeSurvey {
    /// By how many write sets, the first of them so many seconds old, if that is worth a word.
    pub fn behind(&self) -> Option<(i64, f64)> {
        let seconds = self.lag_seconds.unwrap_or_default();
        let lag = self.lag.filter(|lag| seconds >= LAG_SECONDS_MIN || *lag >= LAG_MIN)?;
        Some((lag, seconds))
    }
}

/// The last one, unless that is long ago.
pub fn recent_fault(own: &OwnReport) -> Option<&Fault> {
    own.last_fault.as_ref().filter(|fault| is_recent(fault))
}

fn of_member(node: &NodeSurvey, own: &OwnReport, say: &mut impl FnMut(String)) {
    if let Some((lag, seconds)) = node.behind() {
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
        // A logger has no SQL, and reads its files when it starts.
        let then = if own.server.is_some() { "FLUSH SSL" } else { "restart quorate-logger" };
        say(match days {
            ..0 => format!("has an expired certificate: renew it, and {then}"),
            days => {
                format!("has a certificate that expires in {days} days: renew it, and {then}")
            }
        });
    }
    if let Some(fault) = recent_fault(own) {
        let ago = human_age(fault.seconds_ago);
        say(format!("had an error {ago} ago: {}", fault.message));
    }
}
