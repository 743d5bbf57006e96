//! Who belongs to the group, who votes, and how that changes.

use crate::level::{self, Level, LEVEL};
use crate::quorum::{self, Tally};
use crate::types::{KeyId, MemberId};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum MemberRole {
    /// Has the data, votes, may lead.
    Voter = 0,
    /// Receives the log, has no vote.
    Learner = 1,
    /// Votes and persists, has no data. It may be elected, but only hands over then.
    Logger = 2,
}

/// What the configuration says of one member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberInfo {
    pub role: MemberRole,
    /// Not caught up yet: has no vote, whatever its role, until a change says otherwise.
    pub joining: bool,
    /// Who leads rather, 0 to [`PRIORITY_MAX`]. A member of priority 0 does not lead, but for the
    /// moment it takes to hand over.
    pub priority: u8,
    /// How many votes it has, if it votes: majorities are of votes, not of members. 0: none,
    /// though it is in every other respect a full member.
    pub votes: u8,
    /// What it is known by: another one that shows this member's id, and another key, is refused.
    pub key: KeyId,
    /// Where it stands (a data centre), for the commit rule; members of the same name stand
    /// together.
    pub zone: String,
    /// Group address `host:port` of the member, as it announced it.
    pub addr: String,
    /// Human-readable node name.
    pub name: String,
}

pub const PRIORITY_MAX: u8 = 100;
pub const PRIORITY_DEFAULT: u8 = 50;

/// What holds for the whole group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Nothing is committed before voters in this many zones have it on disk, besides a majority
    /// of all voters. 0 and 1 ask for nothing more than the majority.
    pub zones_min: u8,
    pub priorities: PriorityRule,
    pub primaries: Primaries,
    /// A new primary first applies what it has not applied yet, and takes writes after that. For
    /// the layer above, with a single primary.
    pub failover_waits: bool,
    /// Leadership goes to the member that all writes come from. For the layer above.
    pub follows_writes: bool,
    /// Somebody works on the group: nobody hands leadership over, or expels a member, without an order.
    pub paused: bool,
    /// Who writes is answered once all members that are up to date have applied it, too. For the layer above.
    pub after: bool,
}

/// Whose writes the layer above takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Primaries {
    /// Every member's.
    #[default]
    Multi = 0,
    /// The leader's alone.
    Single = 1,
}

/// When a leader makes room for a member of higher priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum PriorityRule {
    /// When that one has caught up, so that nothing has to wait.
    #[default]
    Optimistic = 0,
    /// As soon as it is heard: proposals wait until it has caught up.
    Forced = 1,
}

/// A membership. In a joint configuration `outgoing` holds the voters of the old one, and
/// decisions need a majority of both sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    pub members: BTreeMap<MemberId, MemberInfo>,
    /// Voters of the outgoing half of a joint configuration, each as often as it has votes there;
    /// empty otherwise. Addresses of those that are no longer members stand in the configuration
    /// before.
    pub outgoing: Vec<MemberId>,
    pub rules: Rules,
    /// At which the group works (see [`crate::level`]).
    pub level: Level,
    /// Members given up for lost by force (see [`crate::Event::ForceQuorum`]), ascending: their logs may hold what the
    /// group has lost. And those that were expelled. They are never members again.
    pub lost: Vec<MemberId>,
    /// Of a configuration installed by force: who did it and why. Empty in every other one.
    pub audit: String,
}

/// A change to ask a leader for. It goes through a joint configuration, which the leader leaves by
/// itself, if more than one vote comes or goes, or if it takes from somebody that nothing is decided
/// without it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigChange {
    /// Add or replace (role, priority, zone, address, name) these, and remove those, in one change.
    Update { put: Vec<(MemberId, MemberInfo)>, remove: Vec<MemberId> },
    /// Remove this one, for good: nobody is a member by its id any more.
    Expel(MemberId),
    /// Other rules for the same members.
    Rules(Rules),
    /// The next level, which all members know.
    Level(Level),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a membership entry: {0}")]
pub struct ConfigDecodeError(pub String);

/// Layout version written and read.
const VERSION: u8 = 6;
const _: () = assert!(VERSION == level::NEWEST.config);
const VOTES_DEFAULT: u8 = 1;
/// Flag of a member.
const JOINING: u8 = 1;
/// Flags of the rules.
const SINGLE_PRIMARY: u8 = 1;
const FAILOVER_WAITS: u8 = 2;
const FOLLOWS_WRITES: u8 = 4;
/// From [`level::PAUSE`] on.
const PAUSED: u8 = 8;
/// From [`level::STANDINGS`] on.
const AFTER: u8 = 16;

impl MemberInfo {
    /// A full member of this role, of default priority and in no named zone.
    pub fn new(role: MemberRole, addr: impl Into<String>, name: impl Into<String>) -> Self {
        let (addr, name) = (addr.into(), name.into());
        Self {
            role,
            joining: false,
            priority: PRIORITY_DEFAULT,
            votes: VOTES_DEFAULT,
            key: KeyId::default(),
            zone: String::new(),
            addr,
            name,
        }
    }

    /// Whether it counts for majorities.
    pub fn is_voter(&self) -> bool {
        !self.joining && self.role != MemberRole::Learner
    }

    /// Whether it may lead for more than a hand-over.
    pub fn may_lead(&self) -> bool {
        self.is_voter() && self.role == MemberRole::Voter && self.priority > 0
    }
}

impl Rules {
    /// Whether leadership follows the writes: a single primary's come from the leader anyway.
    pub fn moves_with_writes(&self) -> bool {
        self.follows_writes && self.primaries == Primaries::Multi && !self.paused
    }

    fn flags(self) -> u8 {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flag(self.primaries == Primaries::Single, SINGLE_PRIMARY)
            | flag(self.failover_waits, FAILOVER_WAITS)
            | flag(self.follows_writes, FOLLOWS_WRITES)
            | flag(self.paused, PAUSED)
            | flag(self.after, AFTER)
    }

    fn set_flags(&mut self, flags: u8) -> Result<(), ConfigDecodeError> {
        const KNOWN: u8 = SINGLE_PRIMARY | FAILOVER_WAITS | FOLLOWS_WRITES | PAUSED | AFTER;
        if flags & !KNOWN != 0 {
            return Err(ConfigDecodeError(format!("flags {flags} of the rules are unknown")));
        }
        if flags & SINGLE_PRIMARY != 0 {
            self.primaries = Primaries::Single;
        }
        self.failover_waits = flags & FAILOVER_WAITS != 0;
        self.follows_writes = flags & FOLLOWS_WRITES != 0;
        self.paused = flags & PAUSED != 0;
        self.after = flags & AFTER != 0;
        Ok(())
    }
}

impl Config {
    /// Little-endian: version `u8` = 6; level `u16`; member count `u32`; per member, ascending by id: id
    /// `u128`, role `u8`, flags `u8` (1: joining), priority `u8`, votes `u8`, key 32 bytes, zone, address and
    /// name each as length `u32` and UTF-8 bytes; outgoing count `u32`; outgoing ids `u128`, ascending; zones
    /// of the commit rule `u8`, priority rule `u8`, flags of the rules `u8` (1: single primary, 2:
    /// failover waits, 4: leadership follows writes, 8: paused, 16:
    /// commits wait until they are applied); lost members like outgoing ones; audit text.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(16 + 64 * self.members.len());
        out.put_u8(VERSION);
        out.put_u16_le(self.level);
        out.put_u32_le(self.members.len() as u32);
        for (id, info) in &self.members {
            out.put_u128_le(id.0);
            out.put_u8(info.role as u8);
            out.put_u8(if info.joining { JOINING } else { 0 });
            out.put_u8(info.priority);
            out.put_u8(info.votes);
            out.put_slice(&info.key.0);
            for text in [&info.zone, &info.addr, &info.name] {
                put_text(&mut out, text);
            }
        }
        put_ids(&mut out, &self.outgoing);
        out.put_u8(self.rules.zones_min);
        out.put_u8(self.rules.priorities as u8);
        out.put_u8(self.rules.flags());
        put_ids(&mut out, &self.lost);
        put_text(&mut out, &self.audit);
        out.freeze()
    }

    /// Never panics, whatever the bytes are. Takes exactly what `encode` makes: ids ascending, no
    /// bytes left over.
    pub fn decode(data: &[u8]) -> Result<Config, ConfigDecodeError> {
        let mut input = Input(data);
        let version = input.u8()?;
        if version != VERSION {
            let upgrade = level::upgrade(LEVEL + 1);
            let what = format!("its layout has version {version}, not {VERSION}: {upgrade}");
            return Err(ConfigDecodeError(what));
        }
        let mut config = Config { level: u16::from_le_bytes(input.array()?), ..Config::default() };
        for _ in 0..input.u32()? {
            let id = input.member_id()?;
            if config.members.last_key_value().is_some_and(|(before, _)| *before >= id) {
                return Err(ConfigDecodeError(format!("member {id:?} is out of order")));
            }
            config.members.insert(id, input.member_info()?);
        }
        config.outgoing = input.ids("outgoing voter", true)?;
        let (zones_min, priorities) = (input.u8()?, input.priority_rule()?);
        config.rules = Rules { zones_min, priorities, ..Rules::default() };
        config.rules.set_flags(input.u8()?)?;
        config.lost = input.ids("lost member", false)?;
        config.audit = input.text()?;
        match input.0.len() {
            0 => Ok(config),
            left => Err(ConfigDecodeError(format!("{left} bytes too many"))),
        }
    }

    /// Like [`Config::decode`], for a member that knows levels up to `known`.
    pub fn decode_up_to(known: Level, data: &[u8]) -> Result<Config, ConfigDecodeError> {
        let config = Self::decode(data)?;
        match config.level {
            level if level > known => {
                let what = format!("the group works at level {level}: {}", level::upgrade(level));
                Err(ConfigDecodeError(what))
            }
            _ => Ok(config),
        }
    }

    /// All that vote: loggers too.
    pub fn voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.iter().filter(|(_, info)| info.is_voter()).map(|(id, _)| *id)
    }

    /// Those that vote, each as often as it has votes.
    pub fn votes(&self) -> impl Iterator<Item = MemberId> + '_ {
        let voters = self.members.iter().filter(|(_, info)| info.is_voter());
        voters.flat_map(|(id, info)| std::iter::repeat_n(*id, info.votes.into()))
    }

    /// Whether these alone can decide.
    pub fn is_quorum(&self, among: impl Fn(MemberId) -> bool) -> bool {
        quorum::tally(self, |id| Some(among(id))) == Tally::Won
    }

    /// Whether these alone can commit: they can decide, and vote in as many zones as the rules ask for.
    pub fn can_commit(&self, among: impl Fn(MemberId) -> bool) -> bool {
        quorum::held(self, |id| among(id).into()) > 0
    }

    /// Whether nothing can be decided without `id`.
    pub(crate) fn is_needed(&self, id: MemberId) -> bool {
        !self.is_quorum(|other| other != id)
    }

    /// Whether `id` votes, in either half.
    pub fn is_voter(&self, id: MemberId) -> bool {
        self.is_incoming_voter(id) || self.outgoing.contains(&id)
    }

    pub fn is_joint(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether `id` may lead for more than a hand-over.
    pub fn may_lead(&self, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(MemberInfo::may_lead)
    }

    /// The zones in which somebody votes.
    pub fn zones(&self) -> BTreeSet<&str> {
        self.members
            .values()
            .filter(|info| info.is_voter())
            .map(|info| info.zone.as_str())
            .collect()
    }

    /// Whether `id` votes once a joint configuration is left.
    pub(crate) fn is_incoming_voter(&self, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(MemberInfo::is_voter)
    }

    /// How much rather than others `id` should lead.
    pub(crate) fn priority(&self, id: MemberId) -> u8 {
        self.members.get(&id).filter(|info| info.may_lead()).map_or(0, |info| info.priority)
    }

    /// Everybody the leader sends the log to: members, and outgoing voters that are none.
    pub(crate) fn everybody(&self) -> impl Iterator<Item = MemberId> + '_ {
        let leaving: BTreeSet<_> =
            self.outgoing.iter().filter(|id| !self.members.contains_key(id)).collect();
        self.members.keys().chain(leaving).copied()
    }

    /// Whether `id` alone decides everything.
    pub(crate) fn is_sole_voter(&self, id: MemberId) -> bool {
        self.is_incoming_voter(id)
            && self.votes().all(|voter| voter == id)
            && self.votes().next().is_some()
            && self.outgoing.iter().all(|other| *other == id)
    }
}

fn put_ids(out: &mut BytesMut, ids: &[MemberId]) {
    out.put_u32_le(ids.len() as u32);
    ids.iter().for_each(|id| out.put_u128_le(id.0));
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u32_le(text.len() as u32);
    out.put_slice(text.as_bytes());
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

    /// Ascending ids, each once or (`again`) several times.
    fn ids(&mut self, what: &str, again: bool) -> Result<Vec<MemberId>, ConfigDecodeError> {
        let mut ids: Vec<MemberId> = Vec::new();
        for _ in 0..self.u32()? {
            let id = self.member_id()?;
            if ids.last().is_some_and(|before| *before > id || (*before == id && !again)) {
                return Err(ConfigDecodeError(format!("{what} {id:?} is out of order")));
            }
            ids.push(id);
        }
        Ok(ids)
    }

    fn member_info(&mut self) -> Result<MemberInfo, ConfigDecodeError> {
        let role = match self.u8()? {
            0 => MemberRole::Voter,
            1 => MemberRole::Learner,
            2 => MemberRole::Logger,
            role => return Err(ConfigDecodeError(format!("member role {role} is unknown"))),
        };
        let joining = match self.u8()? {
            0 => false,
            JOINING => true,
            flags => return Err(ConfigDecodeError(format!("member flags {flags} are unknown"))),
        };
        let (priority, votes, key) = (self.u8()?, self.u8()?, KeyId(self.array()?));
        let (zone, addr, name) = (self.text()?, self.text()?, self.text()?);
        Ok(MemberInfo { role, joining, priority, votes, key, zone, addr, name })
    }

    fn priority_rule(&mut self) -> Result<PriorityRule, ConfigDecodeError> {
        match self.u8()? {
            0 => Ok(PriorityRule::Optimistic),
            1 => Ok(PriorityRule::Forced),
            rule => Err(ConfigDecodeError(format!("priority rule {rule} is unknown"))),
        }
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
