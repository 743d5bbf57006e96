//! All members of a group at once: each is asked for itself, and whoever knows the group best says who they are.

use super::trouble::troubles;
use crate::failure::{Failure, NO_PERMISSION, UNREACHABLE};
use crate::view::table::{human_bytes, or_dash, table};
use crate::view::{Health, PAUSED};
use anyhow::Result;
use quorate_live::port::{
    Answer, MemberReport, Operating, OwnReport, Report, Request, RulesReport, Unanswered,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// For each member; whoever has not answered by then does not.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize)]
pub struct Survey {
    pub cluster: String,
    pub group: String,
    pub health: Health,
    pub term: u64,
    pub level: u16,
    /// Name of the member that leads.
    pub leader: Option<String>,
    pub rules: RulesReport,
    pub nodes: Vec<NodeSurvey>,
    /// What is wrong, in words.
    pub troubles: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct NodeSurvey {
    pub name: String,
    /// `Leader`, `Follower`, `Learner`, `Logger`.
    pub role: &'static str,
    pub state: String,
    /// It takes reads and writes, which a logger never does.
    pub ready: bool,
    /// Last applied, and how many write sets that is behind what is committed in the group.
    pub seqno: Option<i64>,
    pub lag: Option<i64>,
    /// How old the first write set is that it has and has not applied.
    pub lag_seconds: Option<f64>,
    pub release: Option<String>,
    /// As the member knows it that knows most.
    pub member: MemberReport,
    /// As it says itself; none if it does not answer.
    pub own: Option<OwnReport>,
    /// Why it does not.
    pub unanswered: Option<String>,
}

/// What is under way at the moment of the question is no lag.
const LAG_SECONDS_SHOWN: f64 = 0.05;

/// By address.
type Answers = BTreeMap<String, Result<Report, Unanswered>>;

impl Survey {
    pub(super) fn collect(seeds: &[String], operating: &Arc<Operating>) -> Result<Survey> {
        let mut answers = ask_all(seeds, operating);
        let Some(known) = best(&answers).cloned() else { return Err(nobody(&answers)) };
        let here = |address: &String| answers.contains_key(address);
        let is_answered = |id: &str| reports(&answers).any(|report| report.own.id == id);
        let others = known.members.iter().filter(|member| !is_answered(&member.id));
        let others: Vec<String> = others.map(|member| member.address.clone()).collect();
        let others: Vec<String> = others.into_iter().filter(|address| !here(address)).collect();
        answers.extend(ask_all(&others, operating));
        // Somebody who leads may only now have been asked.
        let known = best(&answers).cloned().unwrap_or(known);
        Ok(Survey::of(&known, &answers))
    }

    fn of(known: &Report, answers: &Answers) -> Survey {
        let servers = reports(answers).filter_map(|report| report.own.server.as_ref());
        let committed = servers.map(|server| server.committed).max();
        let node = |member: &MemberReport| NodeSurvey::of(member, known, answers, committed);
        let nodes: Vec<NodeSurvey> = known.members.iter().map(node).collect();
        // A server says that it takes writes until it has been without a leader for some seconds.
        let health = match known.leading() {
            Some(_) if nodes.iter().all(NodeSurvey::is_well) => Health::Synced,
            Some(_) if nodes.iter().any(|node| node.ready) => Health::Degraded,
            _ => Health::NoPrimary,
        };
        let mut survey = Survey {
            cluster: known.group_name.clone(),
            group: known.group.clone(),
            health,
            term: known.term,
            level: known.level,
            leader: known.leading().map(|member| member.name.clone()),
            rules: known.rules.clone(),
            nodes,
            troubles: Vec::new(),
        };
        survey.troubles = troubles(&survey);
        survey
    }
}

impl NodeSurvey {
    fn of(
        member: &MemberReport,
        known: &Report,
        answers: &Answers,
        committed: Option<i64>,
    ) -> NodeSurvey {
        let report = reports(answers).find(|report| report.own.id == member.id);
        let own = report.map(|report| report.own.clone());
        let unanswered = match (&own, answers.get(&member.address)) {
            (Some(_), _) => None,
            (None, Some(Err(error))) => Some(error.to_string()),
            (None, _) => Some("another node answers at its address".to_owned()),
        };
        let server = own.as_ref().and_then(|own| own.server.as_ref());
        let seqno = server.map(|server| server.seqno).filter(|seqno| *seqno >= 0);
        NodeSurvey {
            name: member.name.clone(),
            role: role(member, known.leader.as_ref() == Some(&member.id)),
            state: own.as_ref().map_or("No answer".to_owned(), |own| state(member, own)),
            ready: server.is_some_and(|server| server.ready),
            seqno,
            lag: seqno.zip(committed).map(|(seqno, committed)| (committed - seqno).max(0)),
            lag_seconds: server.map(|server| server.lag_ms as f64 / 1000.0),
            release: report.map(|report| report.release.clone()),
            member: member.clone(),
            own,
            unanswered,
        }
    }

    /// `1200, 3.4 s`; without the time where that is nothing.
    pub fn lag_in_words(&self) -> Option<String> {
        let seconds = self.lag_seconds.filter(|seconds| *seconds >= LAG_SECONDS_SHOWN);
        let seconds = seconds.map(|seconds| format!(", {seconds:.1} s")).unwrap_or_default();
        self.lag.map(|lag| format!("{lag}{seconds}"))
    }

    pub fn is_well(&self) -> bool {
        self.state == "Synced" && (self.ready || self.member.role == "logger")
    }
}

fn role(member: &MemberReport, leads: bool) -> &'static str {
    match &*member.role {
        _ if leads => "Leader",
        "logger" => "Logger",
        "learner" => "Learner",
        _ if member.joining => "Learner",
        _ => "Follower",
    }
}

fn state(member: &MemberReport, own: &OwnReport) -> String {
    let word = match &own.server {
        _ if own.failed => "Failed",
        _ if own.isolated => "Isolated",
        _ if !own.primary => "Non-primary",
        Some(server) => &server.state,
        None if member.joining => "Joining",
        None => "Synced",
    };
    word.to_owned()
}

fn reports(answers: &Answers) -> impl Iterator<Item = &Report> {
    answers.values().filter_map(|answer| answer.as_ref().ok())
}

/// Who is in the newest term, leads there, and has most of the log knows the group best.
fn best(answers: &Answers) -> Option<&Report> {
    reports(answers).max_by_key(|report| (report.term, report.own.leads, report.own.commit_index))
}

fn nobody(answers: &Answers) -> anyhow::Error {
    let forbidden = |answer: &Result<_, _>| matches!(answer, Err(Unanswered::Forbidden(_)));
    let code = if answers.values().any(forbidden) { NO_PERMISSION } else { UNREACHABLE };
    let lines = answers.iter().filter_map(|(address, answer)| {
        answer.as_ref().err().map(|error| format!("{address}: {error}"))
    });
    let lines: Vec<String> = lines.collect();
    Failure::new(code, format!("no member answers. {}", lines.join("; "))).into()
}

/// All at once. Who has not answered in time is left alone with its thread.
fn ask_all(addresses: &[String], operating: &Arc<Operating>) -> Answers {
    let (answered, answers) = channel();
    for address in addresses {
        let (answered, operating, address) = (answered.clone(), operating.clone(), address.clone());
        thread::spawn(move || {
            let answer = operating.ask(&address, &Request::Status);
            // Whoever waited for it may have given up.
            let _told = answered.send((address, answer));
        });
    }
    drop(answered);
    let late = || Err(Unanswered::NotReached(format!("no answer within {PATIENCE:?}")));
    let mut all: Answers = addresses.iter().map(|address| (address.clone(), late())).collect();
    let end = Instant::now() + PATIENCE;
    while let Ok((address, answer)) =
        answers.recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        let report = answer.and_then(|asked| match asked.answer {
            Answer::Status(report) => Ok(*report),
            Answer::Refused(refused) => Err(Unanswered::Forbidden(refused.reason)),
            other => Err(Unanswered::Lost(format!("it answers something else: {other:?}"))),
        });
        all.insert(address, report);
    }
    all
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head =
            ["NODE", "ADDRESS", "ROLE", "STATE", "SEQNO", "LAG", "LOG", "ZONE", "PRIO", "RELEASE"];
        let mut rows = vec![head.map(String::from)];
        rows.extend(self.nodes.iter().map(|node| {
            let address = [&node.member.client_address, &node.member.address];
            let address = address.into_iter().find(|address| !address.is_empty());
            [
                node.name.clone(),
                or_dash(address.cloned()),
                node.role.to_owned(),
                node.state.clone(),
                or_dash(node.seqno.map(|seqno| seqno.to_string())),
                or_dash(node.lag_in_words()),
                or_dash(node.own.as_ref().map(|own| human_bytes(own.log.bytes))),
                or_dash(Some(node.member.zone.clone())),
                node.member.priority.to_string(),
                or_dash(node.release.clone()),
            ]
        }));
        writeln!(f, "{}, term {}, level {}", self.cluster, self.term, self.level)?;
        f.write_str(&table(&rows))?;
        if self.rules.paused {
            writeln!(f, "\n{PAUSED}")?;
        }
        match self.troubles.is_empty() {
            true => writeln!(f, "\nNothing is wrong."),
            false => self.troubles.iter().try_for_each(|trouble| write!(f, "\n! {trouble}\n")),
        }
    }
}

#[cfg(test)]
mod tests;
