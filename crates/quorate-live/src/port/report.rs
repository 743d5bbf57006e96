//! How a member, and the group as it knows it, is: the answer to a status request. The names of the fields are
//! those of the JSON document, and stay.

use crate::host::ServerReport;
use crate::net::trust::OperatorId;
use quorate_consensus::{
    Index, Level, MemberId, MemberInfo, Primaries, PriorityRule, Rules, Term, LEVEL, LEVEL_MIN,
};
use quorate_group::GroupStatus;
use quorate_latency::LatencyReport;
use quorate_wire::{PeerIdentity, Standing};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// What the member that is asked runs.
    pub release: String,
    pub group_name: String,
    /// Empty as long as the member belongs to none.
    pub group: String,
    pub level: Level,
    pub term: Term,
    /// Id of the member that leads.
    pub leader: Option<String>,
    pub rules: RulesReport,
    pub members: Vec<MemberReport>,
    pub own: OwnReport,
    /// Whom the member takes the asking side for, and what that may do: `read` or `all`.
    pub operator: String,
    pub privilege: String,
}

/// See [`RulesReport::consistency`].
const AFTER: &str = "after";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesReport {
    pub zones: u8,
    /// `optimistic` or `forced`.
    pub priorities: String,
    /// `multi` or `single`.
    pub primary_mode: String,
    /// `serve` or `wait`.
    pub primary_failover: String,
    pub leader_follows_writes: bool,
    /// Nothing moves leadership, or expels a member, without an order.
    pub paused: bool,
    /// `eventual` or `after`: commits wait until all members that are up to date have applied them. Empty of a
    /// release that does not know it.
    pub consistency: String,
}

/// A member, as the one that is asked knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberReport {
    pub id: String,
    pub name: String,
    /// Group address, `host:port`.
    pub address: String,
    /// Where its clients connect, if it said so.
    pub client_address: String,
    /// `voter`, `learner` or `logger`.
    pub role: String,
    /// It has not caught up yet, and no vote.
    pub joining: bool,
    pub priority: u8,
    pub votes: u8,
    pub zone: String,
    /// To the member that is asked; that one itself is.
    pub connected: bool,
    /// The lowest and the highest feature level that it knows.
    pub levels: Option<(Level, Level)>,
    /// Of the leader's answer: so much of the log the member is known to have.
    pub matched_index: Option<Index>,
    /// Of the leader's answer: it receives a snapshot.
    pub receives_snapshot: bool,
    /// How its server stands, as it last told the member that is asked. None of that one itself, of a logger, and of a
    /// release that does not say so.
    pub standing: Option<StandingReport>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StandingReport {
    pub synced: bool,
    /// Last applied; -1: none.
    pub seqno: i64,
    /// Write sets that wait to be applied.
    pub queued: u64,
    /// How old the first of them is.
    pub lag_ms: u64,
}

/// The member that is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnReport {
    pub id: String,
    pub name: String,
    pub incarnation: u32,
    pub leads: bool,
    /// It is connected to a majority.
    pub primary: bool,
    /// Its operator has cut it off.
    pub isolated: bool,
    /// It is out of service: its log failed, or a bug was met.
    pub failed: bool,
    pub last_index: Index,
    pub persisted_index: Index,
    pub commit_index: Index,
    pub applied_index: Index,
    pub view_number: u64,
    pub proposals_pending: u64,
    pub log: LogReport,
    /// Somebody whose word does not count says that it is an older state of itself.
    pub disputed: Option<String>,
    /// The last error that it had.
    pub last_fault: Option<Fault>,
    /// Until its certificate ends, if it has one.
    pub certificate_days: Option<i64>,
    /// Another member may lead once this one has not been heard for so long. Of a release that says so.
    pub election_timeout_ms: Option<u64>,
    /// None of a logger.
    pub server: Option<ServerReport>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogReport {
    pub bytes: u64,
    /// How many there may be. `None`: as many as the disk takes, or of a release that does not say.
    pub max: Option<u64>,
    pub first_index: Index,
    /// How far back the log reaches at least, in seconds.
    pub age_s: Option<u64>,
    pub syncs: u64,
    pub sync_us_avg: f64,
    pub sync_us_max: u64,
    /// Of a sync, with its write. Of a release that says so.
    pub sync_latency: Option<LatencyReport>,
    /// What is wrong with its disk but not (yet) in the way.
    pub warning: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub message: String,
    pub seconds_ago: u64,
}

/// What a report is made of.
pub(crate) struct Seen {
    pub identity: PeerIdentity,
    pub status: GroupStatus,
    pub isolated: bool,
    pub failed: bool,
    pub log_age_s: Option<u64>,
    pub sync_latency: LatencyReport,
    pub last_fault: Option<Fault>,
    pub certificate_days: Option<i64>,
    pub election_timeout_ms: u64,
    pub server: Option<ServerReport>,
}

impl MemberReport {
    /// Whether it may lead for more than a hand-over.
    pub fn may_lead(&self) -> bool {
        self.role == "voter" && !self.joining && self.priority > 0
    }

    /// Whether the group goes on under it: it leads, or leadership can be handed to it.
    pub fn can_lead(&self, leads: bool) -> bool {
        self.may_lead() && (leads || self.connected)
    }
}

impl Report {
    pub(crate) fn of(seen: Seen, asked_by: &OperatorId) -> Report {
        let Seen { identity, status, .. } = &seen;
        let group = match identity.group {
            0 => String::new(),
            group => MemberId(group).to_string(),
        };
        Report {
            release: env!("CARGO_PKG_VERSION").to_owned(),
            group_name: identity.group_name.clone(),
            group,
            level: status.config.level,
            term: status.term,
            leader: status.leader.map(|leader| leader.to_string()),
            rules: RulesReport::of(&status.config.rules),
            members: members(identity, status),
            operator: asked_by.name.clone(),
            privilege: asked_by.privilege.word().to_owned(),
            own: OwnReport::of(seen),
        }
    }

    /// The member that leads.
    pub fn leading(&self) -> Option<&MemberReport> {
        self.leader.as_ref().and_then(|id| self.members.iter().find(|member| member.id == *id))
    }

    /// False: whoever leads may not lead for more than a hand-over, and there is nobody to hand over to. Nothing is
    /// committed then.
    pub fn can_commit(&self) -> bool {
        let can_lead = |leader: &MemberReport| {
            self.members.iter().any(|member| member.can_lead(member.id == leader.id))
        };
        self.leading().is_none_or(can_lead)
    }
}

impl OwnReport {
    fn of(seen: Seen) -> OwnReport {
        let Seen { identity, status, .. } = seen;
        OwnReport {
            id: status.member.to_string(),
            name: identity.name,
            incarnation: identity.incarnation,
            leads: status.is_leader,
            primary: status.primary,
            isolated: seen.isolated,
            failed: seen.failed,
            last_index: status.last_index,
            persisted_index: status.persisted_index,
            commit_index: status.commit_index,
            applied_index: status.applied_index,
            view_number: status.view_number,
            proposals_pending: status.proposals_pending as u64,
            log: LogReport {
                bytes: status.log_bytes,
                max: status.log_max,
                first_index: status.first_index,
                age_s: seen.log_age_s,
                syncs: status.syncs,
                sync_us_avg: status.sync_us_avg,
                sync_us_max: status.sync_us_max,
                sync_latency: Some(seen.sync_latency),
                warning: status.log_warning,
            },
            disputed: status.disputed,
            last_fault: seen.last_fault,
            certificate_days: seen.certificate_days,
            election_timeout_ms: Some(seen.election_timeout_ms),
            server: seen.server,
        }
    }
}

impl StandingReport {
    fn of(standing: Standing) -> StandingReport {
        let Standing { synced, applied, lag_ms, .. } = standing;
        let (queued, lag_ms) = (standing.backlog(), lag_ms.into());
        StandingReport { synced, seqno: applied, queued, lag_ms }
    }
}

impl RulesReport {
    pub fn of(rules: &Rules) -> RulesReport {
        let priorities = match rules.priorities {
            PriorityRule::Optimistic => "optimistic",
            PriorityRule::Forced => "forced",
        };
        let mode = match rules.primaries {
            Primaries::Multi => "multi",
            Primaries::Single => "single",
        };
        RulesReport {
            zones: rules.zones_min,
            priorities: priorities.to_owned(),
            primary_mode: mode.to_owned(),
            primary_failover: if rules.failover_waits { "wait" } else { "serve" }.to_owned(),
            leader_follows_writes: rules.follows_writes,
            paused: rules.paused,
            consistency: if rules.after { AFTER } else { "eventual" }.to_owned(),
        }
    }
}

/// In one line, as the option `quorate.rules` takes them.
impl fmt::Display for RulesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zones, priorities, primary_mode, primary_failover, .. } = self;
        let Self { leader_follows_writes, paused, consistency, .. } = self;
        let paused = if *paused { " paused=yes" } else { "" };
        let after = if consistency == AFTER { " consistency=after" } else { "" };
        let follows = if *leader_follows_writes { "yes" } else { "no" };
        write!(
            f,
            "zones={zones} priorities={priorities} primary_mode={primary_mode} \
             primary_failover={primary_failover} leader_follows_writes={follows}{paused}{after}"
        )
    }
}

fn members(own: &PeerIdentity, status: &GroupStatus) -> Vec<MemberReport> {
    let report = |(id, info): (&MemberId, &MemberInfo)| {
        let is_own = *id == status.member;
        let peer = status.peers.iter().find(|peer| peer.id == *id);
        let client_address = match is_own {
            true => own.incoming.clone(),
            false => peer.map(|peer| peer.incoming.clone()).unwrap_or_default(),
        };
        MemberReport {
            id: id.to_string(),
            name: info.name.clone(),
            address: info.addr.clone(),
            client_address,
            role: info.role.to_string(),
            joining: info.joining,
            priority: info.priority,
            votes: info.votes,
            zone: info.zone.clone(),
            connected: is_own || peer.is_some_and(|peer| peer.connected),
            levels: match is_own {
                true => Some((LEVEL_MIN, LEVEL)),
                false => peer.and_then(|peer| peer.levels),
            },
            matched_index: match is_own && status.is_leader {
                true => Some(status.persisted_index),
                false => peer.and_then(|peer| peer.matched),
            },
            receives_snapshot: peer.is_some_and(|peer| peer.snapshotting),
            standing: peer.and_then(|peer| peer.standing).map(StandingReport::of),
        }
    };
    status.config.members.iter().map(report).collect()
}
