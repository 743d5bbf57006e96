//! Who belongs to the group, who votes, and how that changes.

use crate::types::MemberId;
use bytes::{BufMut, Bytes, BytesMut};
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
    /// Voters of the outgoing half of a joint configuration; empty otherwise. Addresses of those
    /// that are no longer members stand in the configuration before.
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

/// Layout version written and read.
const VERSION: u8 = 1;

impl Config {
    /// Little-endian: version `u8` = 1; member count `u32`; per member, ascending by id: id
    /// `u128`, role `u8`, address and name each as length `u32` and UTF-8 bytes; outgoing count
    /// `u32`; outgoing ids `u128`, ascending.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(9 + 64 * self.members.len());
        out.put_u8(VERSION);
        out.put_u32_le(self.members.len() as u32);
        for (id, info) in &self.members {
            out.put_u128_le(id.0);
            out.put_u8(info.role as u8);
            for text in [&info.addr, &info.name] {
                out.put_u32_le(text.len() as u32);
                out.put_slice(text.as_bytes());
            }
        }
        out.put_u32_le(self.outgoing.len() as u32);
        for id in &self.outgoing {
            out.put_u128_le(id.0);
        }
        out.freeze()
    }

    /// Never panics, whatever the bytes are. Takes exactly what `encode` makes: ids ascending, no
    /// bytes left over.
    pub fn decode(data: &[u8]) -> Result<Config, ConfigDecodeError> {
        let mut input = Input(data);
        let version = input.u8()?;
        if version != VERSION {
            return Err(ConfigDecodeError(format!("layout version {version} is unknown")));
        }
        let mut config = Config::default();
        for _ in 0..input.u32()? {
            let id = input.member_id()?;
            if config.members.last_key_value().is_some_and(|(before, _)| *before >= id) {
                return Err(ConfigDecodeError(format!("member {id:?} is out of order")));
            }
            let role = match input.u8()? {
                0 => MemberRole::Voter,
                1 => MemberRole::Learner,
                role => return Err(ConfigDecodeError(format!("member role {role} is unknown"))),
            };
            let (addr, name) = (input.text()?, input.text()?);
            config.members.insert(id, MemberInfo { role, addr, name });
        }
        for _ in 0..input.u32()? {
            let id = input.member_id()?;
            if config.outgoing.last().is_some_and(|before| *before >= id) {
                return Err(ConfigDecodeError(format!("outgoing voter {id:?} is out of order")));
            }
            config.outgoing.push(id);
        }
        match input.0.len() {
            0 => Ok(config),
            left => Err(ConfigDecodeError(format!("{left} bytes too many"))),
        }
    }

    pub fn voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.iter().filter(|(_, m)| m.role == MemberRole::Voter).map(|(id, _)| *id)
    }

    /// Whether `id` votes, in either half.
    pub fn is_voter(&self, id: MemberId) -> bool {
        self.is_incoming_voter(id) || self.outgoing.contains(&id)
    }

    pub fn is_joint(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether `id` votes once a joint configuration is left.
    pub(crate) fn is_incoming_voter(&self, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(|m| m.role == MemberRole::Voter)
    }

    /// Everybody the leader sends the log to: members, and outgoing voters that are none.
    pub(crate) fn everybody(&self) -> impl Iterator<Item = MemberId> + '_ {
        let leaving = self.outgoing.iter().filter(|id| !self.members.contains_key(id));
        self.members.keys().chain(leaving).copied()
    }

    /// Whether `id` alone decides everything.
    pub(crate) fn is_sole_voter(&self, id: MemberId) -> bool {
        self.is_incoming_voter(id)
            && self.voters().count() == 1
            && self.outgoing.iter().all(|other| *other == id)
    }
}

/// What is left to decode.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], ConfigDecodeError> {
        if len > self.0.len() {
            let left = self.0.len();
            return Err(ConfigDecodeError(format!("{len} bytes expected, {left} left")));
        }
        let (head, tail) = self.0.split_at(len);
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ConfigDecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, ConfigDecodeError> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, ConfigDecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn member_id(&mut self) -> Result<MemberId, ConfigDecodeError> {
        Ok(MemberId(u128::from_le_bytes(self.array()?)))
    }

    fn text(&mut self) -> Result<String, ConfigDecodeError> {
        let len = self.u32()? as usize;
        let bytes = self.bytes(len)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(ConfigDecodeError(format!("text is not UTF-8: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests;
