//! Who belongs to the group, who votes, and how that changes.

use crate::types::MemberId;
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum MemberRole {
    Voter = 0,
    /// Receives the log, has no vote.
    Learner = 1,
}

/// What the configuration says of one member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberInfo {
    pub role: MemberRole,
    /// Group address `host:port` of the member, as it announced it.
    pub addr: String,
    /// Human-readable node name.
    pub name: String,
}

/// A membership. In a joint configuration `outgoing` holds the voters of the old one, and
/// decisions need a majority of both sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    pub members: BTreeMap<MemberId, MemberInfo>,
    /// Voters of the outgoing half of a joint configuration; empty otherwise.
    pub outgoing: Vec<MemberId>,
}

/// A change to ask a leader for. More than one voter added or removed goes through a joint
/// configuration, which the leader leaves by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigChange {
    /// Add or replace (role, address, name) these, and remove those, in one change.
    Update { put: Vec<(MemberId, MemberInfo)>, remove: Vec<MemberId> },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a membership entry: {0}")]
pub struct ConfigDecodeError(pub String);

impl Config {
    /// Layout documented at `encode` in the implementation; versioned, little-endian.
    pub fn encode(&self) -> Bytes {
        todo!()
    }

    /// Never panics, whatever the bytes are.
    pub fn decode(_data: &[u8]) -> Result<Config, ConfigDecodeError> {
        todo!()
    }

    pub fn voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.iter().filter(|(_, m)| m.role == MemberRole::Voter).map(|(id, _)| *id)
    }

    pub fn is_voter(&self, _id: MemberId) -> bool {
        todo!()
    }

    pub fn is_joint(&self) -> bool {
        !self.outgoing.is_empty()
    }
}
