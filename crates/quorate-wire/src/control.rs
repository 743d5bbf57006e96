//! Requests about membership, and the frame around a snapshot.

use crate::body::{BodyReader, BodyWriter};
use crate::consensus::{position, read_position};
use crate::error::WireError;
use quorate_consensus::{Config, MemberRole, SnapshotMeta, Term, PRIORITY_DEFAULT};

/// Asks to be a member (again). Who asks stands in the connection's `Hello`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JoinRequest {
    /// End of the asking member's log; 0 if it has none.
    pub last_index: u64,
    /// It has no state yet, so that a snapshot serves it as well as the log from its beginning.
    pub blank: bool,
    /// What it wants to be, if the group does not know it.
    pub wish: Wish,
}

/// What a new member is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    pub role: MemberRole,
    pub priority: u8,
    pub zone: String,
}

impl Default for Wish {
    fn default() -> Self {
        Self { role: MemberRole::Voter, priority: PRIORITY_DEFAULT, zone: String::new() }
    }
}

/// The answer to a [`JoinRequest`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The leader has it in its configuration (or has proposed that) and will connect; the group
    /// is the one in its `Welcome`.
    Granted,
    /// Ask the leader at this group address.
    AskLeader { addr: String },
    /// No leader, or another change is under way: ask again.
    Later { reason: String },
    /// Asking again is of no use until somebody acts.
    Refused { reason: String },
}

/// The answer to a leave request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeaveAnswer {
    /// The removal is committed.
    Done,
    /// Not (yet) possible: ask again.
    Later { reason: String },
}

/// Starts a snapshot on a connection: `bytes` of data follow in order, then the end mark with
/// their checksum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotBegin {
    /// The leader's term.
    pub term: Term,
    pub meta: SnapshotMeta,
    pub bytes: u64,
}

impl JoinRequest {
    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        out.u64(self.last_index);
        out.bool(self.blank);
        out.u8(self.wish.role as u8);
        out.u8(self.wish.priority);
        out.text(&self.wish.zone);
    }

    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        let last_index = body.u64()?;
        let blank = body.bool()?;
        let role = match body.u8()? {
            0 => MemberRole::Voter,
            1 => MemberRole::Learner,
            2 => MemberRole::Logger,
            value => return Err(WireError::BadValue { what: "member role", value: value.into() }),
        };
        let wish = Wish { role, priority: body.u8()?, zone: body.text()? };
        Ok(Self { last_index, blank, wish })
    }
}

impl Admission {
    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        match self {
            Admission::Granted => out.u8(0),
            Admission::AskLeader { addr } => {
                out.u8(1);
                out.text(addr);
            }
            Admission::Later { reason } => {
                out.u8(2);
                out.text(reason);
            }
            Admission::Refused { reason } => {
                out.u8(3);
                out.text(reason);
            }
        }
    }

    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        Ok(match body.u8()? {
            0 => Admission::Granted,
            1 => Admission::AskLeader { addr: body.text()? },
            2 => Admission::Later { reason: body.text()? },
            3 => Admission::Refused { reason: body.text()? },
            value => return Err(WireError::BadValue { what: "admission", value: value.into() }),
        })
    }
}

impl LeaveAnswer {
    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        match self {
            LeaveAnswer::Done => out.u8(0),
            LeaveAnswer::Later { reason } => {
                out.u8(1);
                out.text(reason);
            }
        }
    }

    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        Ok(match body.u8()? {
            0 => LeaveAnswer::Done,
            1 => LeaveAnswer::Later { reason: body.text()? },
            value => return Err(WireError::BadValue { what: "leave answer", value: value.into() }),
        })
    }
}

impl SnapshotBegin {
    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        out.u64(self.term);
        out.u64(self.bytes);
        position(self.meta.last, out);
        out.data(&self.meta.config.encode());
    }

    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        let (term, bytes) = (body.u64()?, body.u64()?);
        let last = read_position(body)?;
        let config = Config::decode(&body.data()?);
        let config = config.map_err(|error| WireError::BadConfig(error.to_string()))?;
        Ok(Self { term, meta: SnapshotMeta { last, config }, bytes })
    }
}
