//! What the layer above, or an operator by way of it, can ask for.

use crate::error::OrderError;
use quorate_consensus::{Index, LogPosition, MemberRole, Rules};
use std::fmt;

/// Each is answered once: when it is done, when it cannot be, or at its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Done when the configuration contains this member.
    AwaitJoined,
    /// A linearizable read point.
    ReadPoint,
    /// Done when all members of the view that are up to date have applied this seqno, or so many, this one
    /// included.
    AwaitApplied {
        seqno: i64,
        at_least: Option<u8>,
    },
    /// Hand leadership to the member of this name (`None`: to whoever is furthest).
    Switchover {
        to: Option<String>,
    },
    Alter {
        name: String,
        alteration: Alteration,
    },
    Remove {
        name: String,
    },
    SetRules(Rules),
    ForceQuorum {
        keep: Vec<String>,
        reason: String,
    },
    Leave,
    /// This member wants to have so many votes. It goes on asking after the deadline.
    WantVotes(u8),
    /// One of two goes on alone (`pc.bootstrap`).
    GoOnAlone,
    /// `gmcast.isolate`.
    Isolate(bool),
    /// `pc.ignore_sb`.
    AllowAlone(bool),
    /// The state machine is to see a view after the present one.
    RefreshView,
    /// Silence after which a member leaves the view, in milliseconds, from now on.
    SuspectAfter(u64),
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Nothing,
    ReadPoint(Index),
    /// Who leads now.
    Leader(String),
    Forced(ForcePlan),
}

pub type Answer = Result<Done, OrderError>;

/// What is to be different about a member; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alteration {
    pub role: Option<MemberRole>,
    /// 0 (never leads) to 100.
    pub priority: Option<u8>,
    pub zone: Option<String>,
}

/// What would be done by force, and what may be lost by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForcePlan {
    /// Names of the members kept, and of those given up: their logs never come back.
    pub kept: Vec<String>,
    pub lost: Vec<String>,
    /// The end of this member's log: everything up to it is kept. What was committed after it is
    /// lost, unless a member kept has it (which refuses then).
    pub last: LogPosition,
    /// What this member knows to be committed.
    pub commit: Index,
    /// Why it cannot be done, if so.
    pub refusal: Option<String>,
}

/// As operators give it.
impl fmt::Display for Order {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::AwaitJoined => out.write_str("join"),
            Order::ReadPoint => out.write_str("read point"),
            Order::AwaitApplied { seqno, .. } => write!(out, "wait until {seqno} is applied"),
            Order::Switchover { to: Some(to) } => write!(out, "switchover to {to}"),
            Order::Switchover { to: None } => out.write_str("switchover to whoever is furthest"),
            Order::Alter { name, alteration } => write!(out, "member set {name}{alteration}"),
            Order::Remove { name } => write!(out, "member remove {name}"),
            Order::SetRules(rules) => write!(out, "rules {rules}"),
            Order::ForceQuorum { keep, reason } => {
                write!(out, "force-quorum, keeping {}: {reason}", keep.join(", "))
            }
            Order::Leave => out.write_str("leave"),
            Order::WantVotes(votes) => write!(out, "votes {votes}"),
            Order::GoOnAlone => out.write_str("go on alone"),
            Order::Isolate(true) => out.write_str("isolate"),
            Order::Isolate(false) => out.write_str("end of isolation"),
            Order::AllowAlone(allowed) => write!(out, "going on alone allowed: {allowed}"),
            Order::RefreshView => out.write_str("view refresh"),
            Order::SuspectAfter(ms) => write!(out, "suspect after {ms} ms"),
        }
    }
}

impl fmt::Display for Alteration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(role) = self.role {
            write!(out, " role={role}")?;
        }
        if let Some(priority) = self.priority {
            write!(out, " priority={priority}")?;
        }
        if let Some(zone) = &self.zone {
            write!(out, " zone={zone}")?;
        }
        Ok(())
    }
}
