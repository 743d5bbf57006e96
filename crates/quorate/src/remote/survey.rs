//! How a group is, member by member: as each says of itself, and as whoever knows the group best says who they are.

use super::asked::{best, gather, nobody, reports, said_by, silent, Answers};
use super::between::{self, cuts, levels, notes, strangers, Cut, Levels};
use super::order::by_name;
use super::trouble::troubles;
use crate::failure::{FAILED, NO_PRIMARY, OK};
use anyhow::Result;
use quorate_live::port::{MemberReport, Operating, OwnReport, Report, RulesReport};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

pub const SYNCED: &str = "Synced";
pub const NO_ANSWER: &str = "No answer";
pub const LOGGER: &str = "Logger";

/// The names of the fields are those of `--json` (docs/run/json.md), and stay.
#[derive(Debug, Serialize)]
pub struct Survey {
    pub cluster: String,
    /// Empty if no member tells of it, or none belongs to it yet.
    pub group: String,
    /// The cluster's directory, if it is one of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    pub health: Health,
    pub term: u64,
    pub level: u16,
    /// Name of the member that leads.
    pub leader: Option<String>,
    pub rules: RulesReport,
    pub nodes: Vec<NodeSurvey>,
    /// What is wrong, in words.
    pub troubles: Vec<String>,
    /// What is not wrong, and is to be known.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub cuts: Vec<Cut>,
    #[serde(skip)]
    pub levels: Levels,
    /// Some member tells of the group.
    #[serde(skip)]
    pub(super) is_known: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Every node is Synced, loggers among them.
    Synced,
    /// Some node is not, but some node accepts writes.
    Degraded,
    /// No node accepts writes.
    #[default]
    NoPrimary,
}

impl Health {
    /// Of `status`.
    pub fn exit_code(self) -> u8 {
        match self {
            Health::Synced => OK,
            Health::Degraded => FAILED,
            Health::NoPrimary => NO_PRIMARY,
        }
    }
}

#[derive(Debug, Default, Serialize)]
pub struct NodeSurvey {
    pub name: String,
    /// Where clients connect; none of a logger, or if it did not say so.
    pub address: Option<String>,
    /// `Leader`, `Follower`, `Learner`, `Logger`; none if nobody says so.
    pub role: Option<String>,
    /// wsrep's words, or `Non-primary`, `Isolated`, `Failed`, `No answer`; on this machine `Down`, `Paused`, too.
    pub state: String,
    /// It takes reads and writes, which a logger never does.
    pub ready: bool,
    /// Last applied, and how many write sets that is behind what is committed in the group.
    pub seqno: Option<i64>,
    pub lag: Option<i64>,
    /// How old the first write set is that it has and has not applied.
    pub lag_seconds: Option<f64>,
    pub log_bytes: Option<u64>,
    pub release: Option<String>,
    /// As the member knows it that knows most; none if it is no member.
    pub member: Option<MemberReport>,
    /// As it says itself; none if it does not answer.
    pub own: Option<OwnReport>,
    /// Why it does not.
    pub unanswered: Option<String>,
    #[serde(flatten)]
    pub here: Option<Here>,
}

/// Of a node whose process is on this machine.
#[derive(Debug, Default, Serialize)]
pub struct Here {
    /// None if it does not run.
    pub pid: Option<i32>,
    /// None of a logger.
    pub socket: Option<PathBuf>,
}

impl Survey {
    pub(super) fn collect(seeds: &[String], operating: &Arc<Operating>) -> Result<Survey> {
        let mut answers = Answers::new();
        gather(seeds, &mut answers, operating);
        match best(&answers) {
            Some(known) => {
                let mut survey = Survey::of(known, &answers).judged();
                survey.notes.extend(strangers(seeds, known, &answers));
                Ok(survey)
            }
            None => Err(nobody(silent(&answers))),
        }
    }

    /// To be [`Survey::judged`] when its nodes are complete.
    pub(super) fn of(known: &Report, answers: &Answers) -> Survey {
        let servers = reports(answers).filter_map(|report| report.own.server.as_ref());
        let committed = servers.map(|server| server.committed).max();
        let node = |member: &MemberReport| NodeSurvey::of(member, known, answers, committed);
        let mut nodes: Vec<NodeSurvey> = known.members.iter().map(node).collect();
        nodes.sort_by(|one, other| by_name(&one.name).cmp(&by_name(&other.name)));
        Survey {
            group: known.group.clone(),
            term: known.term,
            level: known.level,
            leader: known.leading().map(|member| member.name.clone()),
            rules: known.rules.clone(),
            nodes,
            cuts: cuts(known, answers),
            levels: levels(known, answers),
            is_known: true,
            ..Survey::unknown(&known.group_name)
        }
    }

    /// Of a group that nobody tells of.
    pub fn unknown(cluster: &str) -> Survey {
        Survey {
            cluster: cluster.to_owned(),
            group: String::new(),
            dir: None,
            health: Health::default(),
            term: 0,
            level: 0,
            leader: None,
            rules: RulesReport::default(),
            nodes: Vec::new(),
            troubles: Vec::new(),
            notes: Vec::new(),
            cuts: Vec::new(),
            levels: Levels::default(),
            is_known: false,
        }
    }

    /// The node that leads, if it says itself how it is.
    pub fn telling_leader(&self) -> Option<&NodeSurvey> {
        let leads = |node: &&NodeSurvey| self.leader.as_ref() == Some(&node.name);
        self.nodes.iter().find(leads).filter(|node| node.own.is_some())
    }

    /// Somebody leads who may do so for more than a hand-over, or to whom leadership is being handed. Else nothing is
    /// committed.
    pub fn is_led(&self) -> bool {
        let leads = |member: &MemberReport| self.leader.as_ref() == Some(&member.name);
        let mut members = self.nodes.iter().filter_map(|node| node.member.as_ref());
        self.leader.is_some() && members.any(|member| member.can_lead(leads(member)))
    }

    /// With what follows from the nodes.
    pub(super) fn judged(mut self) -> Survey {
        // A server says that it takes writes until it has been without a leader for some seconds.
        let is_led = self.is_led() || !self.is_known;
        // The one that takes them may be the leader, and say nothing here.
        let may_write = match self.telling_leader() {
            Some(_) => NodeSurvey::takes_writes,
            None => |node: &NodeSurvey| node.ready,
        };
        let is_written = is_led && self.nodes.iter().any(may_write);
        self.health = match is_written {
            true if self.nodes.iter().all(NodeSurvey::is_well) => Health::Synced,
            true => Health::Degraded,
            false => Health::NoPrimary,
        };
        self.troubles = troubles(&self);
        self.troubles.extend(between::troubles(&self));
        self.notes = notes(&self);
        self
    }
}

impl NodeSurvey {
    fn of(
        member: &MemberReport,
        known: &Report,
        answers: &Answers,
        committed: Option<i64>,
    ) -> NodeSurvey {
        let report = said_by(member, answers);
        let own = report.map(|report| report.own.clone());
        let unanswered = match (&own, answers.get(&member.address)) {
            (Some(_), _) => None,
            (None, Some(Err(error))) => Some(error.to_string()),
            (None, _) => Some("another node answers at its address".to_owned()),
        };
        let server = own.as_ref().and_then(|own| own.server.as_ref());
        let seqno = server.map(|server| server.seqno).filter(|seqno| *seqno >= 0);
        let address = Some(member.client_address.clone()).filter(|address| !address.is_empty());
        NodeSurvey {
            name: member.name.clone(),
            address,
            role: Some(role(member, known.leader.as_ref() == Some(&member.id)).to_owned()),
            state: own.as_ref().map_or(NO_ANSWER.to_owned(), |own| state(member, own)),
            ready: server.is_some_and(|server| server.ready),
            seqno,
            lag: seqno.zip(committed).map(|(seqno, committed)| (committed - seqno).max(0)),
            lag_seconds: server.map(|server| server.lag_ms as f64 / 1000.0),
            log_bytes: own.as_ref().map(|own| own.log.bytes),
            release: report.map(|report| report.release.clone()),
            member: Some(member.clone()),
            own,
            unanswered,
            here: None,
        }
    }

    /// It has a log and a vote, and no database.
    pub(super) fn is_logger(&self) -> bool {
        let as_member = self.member.as_ref().map(|member| member.role == "logger");
        as_member.unwrap_or(self.role.as_deref() == Some(LOGGER))
    }

    /// It takes writes of its clients, as far as it says so.
    pub fn takes_writes(&self) -> bool {
        let says = self.own.as_ref().and_then(|own| own.server.as_ref()?.writes);
        self.ready && says != Some(false)
    }

    pub fn is_well(&self) -> bool {
        self.state == SYNCED && (self.ready || self.is_logger())
    }
}

fn role(member: &MemberReport, leads: bool) -> &'static str {
    match &*member.role {
        _ if leads => "Leader",
        "logger" => LOGGER,
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
        None => SYNCED,
    };
    word.to_owned()
}

#[cfg(test)]
mod tests;
