//! Feature levels: what all members of a group can read and do.
//!
//! Each release knows the levels [`LEVEL_MIN`] to [`LEVEL`]. A group works at one of them, which
//! stands in its configuration: the founder's first, and raised by the leader, one at a time, once
//! each member's present process has said that it knows the next. So nothing that an older release
//! cannot read is in the log, in a snapshot or on the wire before no older release is there to read
//! it; and whoever comes later has to know the group's level.
//!
//! A format is written in the version that [`FORMATS`] gives for the group's level. What a member
//! reads and does not know (a kind of entry, a version) stops it, and it says which release to run:
//! to pass over it would be to have another state than the others.

/// A feature level. 0: of no group yet.
pub type Level = u16;

/// The lowest and the highest level that this release knows.
pub const LEVEL_MIN: Level = 1;
pub const LEVEL: Level = 2;

/// The version of each format at one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formats {
    /// The first release that knows the level.
    pub release: &'static str,
    /// What members say to each other (`quorate-wire`).
    pub protocol: u16,
    /// Segments of the log, the file of term and vote, and snapshot files (`quorate-wal`), in the clear.
    /// Encrypted ones have 256 more: that is each node's own matter, whatever the level.
    pub segment: u32,
    pub term_file: u32,
    pub snapshot_file: u32,
    /// Entries of these kinds, and the group's part of a snapshot.
    pub config: u8,
    pub view: u8,
    pub snapshot: u8,
    pub snapshot_meta: u8,
    /// Notes of orders and events; 0: there are none.
    pub note: u8,
    /// The layer above (`quorate-certify`): write sets, the state that follows from the log, and the
    /// certifier's part of it.
    pub write_set: u8,
    pub sequenced: u8,
    pub certifier: u8,
}

/// By level, from [`LEVEL_MIN`] on. Whoever changes a format adds a level.
pub const FORMATS: [Formats; 1 + (LEVEL - LEVEL_MIN) as usize] = [FIRST, SECOND];

const FIRST: Formats = Formats {
    release: "0.1.0",
    protocol: 2,
    segment: 2,
    term_file: 2,
    snapshot_file: 1,
    config: 6,
    view: 2,
    snapshot: 1,
    snapshot_meta: 2,
    note: 0,
    write_set: 2,
    sequenced: 2,
    certifier: 3,
};

/// What else may be written at this level, and not before, is said by [`OPERATORS`] and [`NAMED_KEYS`].
const SECOND: Formats =
    Formats { release: "0.2.0", note: 1, snapshot: 2, write_set: 3, sequenced: 3, ..FIRST };

/// From this level on, orders of operators and events are noted in the log: by entries of their own kind, which members
/// send to the leader in packets of their own type, and in snapshots.
pub const OPERATORS: Level = 2;
/// From this level on, a configuration has the names of the certificates that members show. Before it, who
/// showed a certificate was known by nothing.
pub const NAMED_KEYS: Level = 2;

/// From this level on, acknowledgements go to all members that may have clients, and followers count them.
/// Earlier releases would take them for answers to nobody.
pub const EVERYBODY_COUNTS: Level = 2;

/// From this level on, the data of large transactions comes in parts ahead of their write sets.
pub const PARTS: Level = 2;

/// From this level on, the data of write sets may be packed.
pub const PACKING: Level = 2;

/// From this level on, a group can be paused. Earlier releases would not read the configuration that says so.
pub const PAUSE: Level = 2;

/// From this level on, members tell each other how their servers stand, and a group can ask that commits wait until
/// they are applied. Earlier releases would end the connection, and not read the configuration that asks for it.
pub const STANDINGS: Level = 2;

/// From this level on, one member alone cannot decide a vote on an error. Earlier releases would count other results.
pub const VOTES_BY_MAJORITY: Level = 2;

/// Of the highest level.
pub const NEWEST: Formats = FORMATS[FORMATS.len() - 1];

/// What to do about something of a level, or of a version, that this release does not know.
pub fn upgrade(level: Level) -> String {
    let release = NEWEST.release;
    format!(
        "this release knows the levels {LEVEL_MIN} to {LEVEL} (it is {release} or a later one with the \
         same formats), so a newer one wrote it: run a release on this node that knows level {level}, \
         as the others do"
    )
}
