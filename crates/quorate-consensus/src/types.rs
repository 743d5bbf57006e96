//! The nouns that every part shares: terms, indexes, entries, positions.

use crate::level::{Level, NAMED_KEYS};
use bytes::Bytes;
use std::fmt;

/// A Raft term. 0 is "before any election".
pub type Term = u64;

/// A position in the group log. The first entry has index 1; 0 is "before the log".
pub type Index = u64;

/// So many entries are shown to the layer above at most that the own disk does not have yet, and as many bytes of them as
/// are sent to a follower ahead of its acknowledgements: where the disk is slow, memory is bounded, and the layer above
/// waits.
pub const AHEAD_MAX: Index = 1024;

/// The identity of one *log*: drawn at random when a log directory is created, so a member that
/// lost its disk comes back as somebody else and can never vote with the old one's memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MemberId(pub u128);

/// What a member shows of itself is known by: a hash of its public key, or of the name in its certificate. All
/// zero: it has shown nothing, for nothing that it says is protected by something of its own.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyId(pub [u8; 32]);

impl KeyId {
    /// So much is left of the hash of a name.
    pub const NAME_BYTES: usize = 16;
    /// Before it. Nobody finds a key whose hash begins like that.
    const NAME_MARK: [u8; 16] = *b"certificate name";

    /// Of who shows a certificate for a name with this hash.
    pub fn of_name(hash: [u8; Self::NAME_BYTES]) -> KeyId {
        let mut id = KeyId::default();
        id.0[..16].copy_from_slice(&Self::NAME_MARK);
        id.0[16..].copy_from_slice(&hash);
        id
    }

    pub fn is_name(self) -> bool {
        self.0.starts_with(&Self::NAME_MARK)
    }

    pub fn is_known(self) -> bool {
        self != Self::default()
    }

    /// Whether a member that is known by this may show `other` now. Who shows nothing, or has shown nothing so
    /// far, is not told apart by it. Nor is a name compared with a key: the side that it is shown to chooses
    /// which of the two it looks at, so such a pair is of a group that is being changed from one to the other,
    /// and nobody can show the one to get around the other.
    pub fn admits(self, other: KeyId) -> bool {
        self == other || !self.is_told_apart_from(other)
    }

    /// Whether both are known, and of the same kind.
    fn is_told_apart_from(self, other: KeyId) -> bool {
        self.is_known() && other.is_known() && self.is_name() == other.is_name()
    }

    /// What a group of this level notes of what a member shows: a release that knows no level from
    /// [`NAMED_KEYS`] on would take the name of a certificate for a key, which nobody has.
    pub fn noted_at(self, level: Level) -> KeyId {
        match self.is_name() && level < NAMED_KEYS {
            true => KeyId::default(),
            false => self,
        }
    }

    /// What a member that is known by this is to be known by, once it has shown `other`: the first of its kind
    /// stays.
    pub fn after(self, other: KeyId) -> KeyId {
        if self.is_told_apart_from(other) || !other.is_known() {
            self
        } else {
            other
        }
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_known() {
            true => self.0[..8].iter().try_for_each(|byte| write!(out, "{byte:02x}")),
            false => out.write_str("none"),
        }
    }
}

/// A constant of a group that the layer above chose when the group was made, the same on all its
/// members for good; nothing below looks into it. All zero: nothing was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Charter(pub [u64; 5]);

/// What an entry carries. The core interprets `Noop` and `Config`; the others are opaque to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// Appended by a new leader so that entries of former terms can commit.
    Noop,
    /// A [`crate::Config`], in force from the moment it is appended.
    Config,
    /// A proposal of the layer above.
    Data,
    /// A view of the group (who is here), proposed by the leader's driver.
    View,
    /// What came of an operator's order, from [`crate::level::OPERATORS`] on. The state of the layer above
    /// does not depend on it.
    Note,
    /// Of a later release. It is carried like any other, for it may be committed; whoever is to
    /// apply it stops (see [`crate::level`]).
    Unknown(u8),
}

/// What is to become an entry. The checksum is made here, once, by whoever proposes, and goes with
/// the data wherever that goes: memory, wire, log, memory again. Whoever takes the data over looks
/// whether it still fits, and nobody makes another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    pub kind: EntryKind,
    pub data: Bytes,
    pub sum: u32,
}

/// One entry of the group log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub index: Index,
    pub term: Term,
    pub kind: EntryKind,
    pub data: Bytes,
    /// The proposal's (see [`checksum`]).
    pub sum: u32,
}

/// Of the kind and the data of an entry: crc32c of the data, begun with the kind's code.
pub fn checksum(kind: EntryKind, data: &[u8]) -> u32 {
    crc32c::crc32c_append(kind.code().into(), data)
}

/// The end of a log, or a point in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct LogPosition {
    pub term: Term,
    pub index: Index,
}

/// What must be on disk before any message of the same [`crate::Effects`] leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HardState {
    pub term: Term,
    pub voted_for: Option<MemberId>,
}

/// The point a state-machine snapshot stands for, and the membership in force there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SnapshotMeta {
    pub last: LogPosition,
    pub config: crate::Config,
}

impl EntryKind {
    pub fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Noop,
            1 => Self::Config,
            2 => Self::Data,
            3 => Self::View,
            4 => Self::Note,
            code => Self::Unknown(code),
        }
    }

    /// As it stands in the log and on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::Noop => 0,
            Self::Config => 1,
            Self::Data => 2,
            Self::View => 3,
            Self::Note => 4,
            Self::Unknown(code) => code,
        }
    }
}

impl Proposal {
    pub fn new(kind: EntryKind, data: Bytes) -> Self {
        let sum = checksum(kind, &data);
        Self { kind, data, sum }
    }

    /// Whether kind and data are what was proposed.
    pub fn is_intact(&self) -> bool {
        checksum(self.kind, &self.data) == self.sum
    }

    pub fn into_entry(self, index: Index, term: Term) -> Entry {
        let Self { kind, data, sum } = self;
        Entry { index, term, kind, data, sum }
    }
}

impl Entry {
    /// One that is made here.
    pub fn new(index: Index, term: Term, kind: EntryKind, data: Bytes) -> Self {
        Proposal::new(kind, data).into_entry(index, term)
    }

    /// Whether kind and data are what was proposed.
    pub fn is_intact(&self) -> bool {
        checksum(self.kind, &self.data) == self.sum
    }

    pub fn position(&self) -> LogPosition {
        LogPosition { term: self.term, index: self.index }
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", (self.0 >> 96) as u32)
    }
}

/// The usual 8-4-4-4-12 form of a UUID.
impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
    }
}
