//! What a member can be told.

use crate::note::NoteId;
use crate::snapshot::Received;
use crate::view::View;
use quorate_consensus::{Config, Entry, Index, KeyId, LogPosition, MemberId};
use quorate_wire::{Admission, Packet, PeerIdentity, Refusal, Standing};

/// One thing that happened.
#[derive(Debug)]
pub enum Input {
    /// Time passed. At least every quarter of the heartbeat interval. `unix_ms` is only written down:
    /// milliseconds since 1970, by a clock that may be wrong and may be set.
    Tick {
        unix_ms: u64,
    },
    /// A packet of a peer, on a connection that [`crate::Member::greet`] accepted.
    Packet {
        from: MemberId,
        packet: Packet,
    },
    /// A peer proposed something in another member's name, or that nobody can read.
    Forged(MemberId),
    /// Something came from a peer that is no packet for the machine: a piece of a snapshot.
    Heard(MemberId),
    /// This member dialled the peer, and was welcomed.
    Connected(PeerIdentity),
    /// That connection has ended.
    Disconnected(MemberId),
    /// A connection that the peer had dialled has ended.
    IncomingClosed {
        peer: MemberId,
        connection: u64,
    },
    /// Every address of the peer was tried, and at none it is there: nobody listens, or the answer
    /// was an answer that shows it (see [`crate::Member::shows_absence`]). `dialled_ms` is when that began, by the clock
    /// that [`crate::Member::step`] is told.
    NotThere {
        peer: MemberId,
        dialled_ms: u64,
    },
    /// A peer was dialled, and the connection was refused by who showed `key`.
    Refused {
        peer: MemberId,
        refusal: Refusal,
        key: KeyId,
    },
    /// What [`crate::Output::ask_room`] asked for.
    Room(MemberId),
    /// The answer to [`crate::Output::ask`].
    Asked {
        addr: String,
        answer: AskAnswer,
    },
    /// The log is on disk up to here, as `quorate_consensus::Event::Persisted` wants it: asked of the
    /// log with no output left to be carried out.
    Persisted(LogPosition),
    /// The log failed, for good.
    LogFailed(String),
    /// A thread ended by a panic, which is a bug: nothing that this process says can be relied on.
    Broken(String),
    /// The answer to a fetch: consecutive entries from `from` on (at least one).
    Fetched {
        to: MemberId,
        from: Index,
        entries: Vec<Entry>,
    },
    FetchUnavailable {
        to: MemberId,
    },
    /// A leader's snapshot that was to be written is not in the directory: it could not be, another one
    /// took its turn, or it was deleted, durably.
    SnapshotNotStored(Received),
    SnapshotSent {
        to: MemberId,
        last: Index,
        ok: bool,
    },
    /// An own snapshot was taken, and is durable if there was room for it. `needed`: the first index
    /// that the state machine still needs; `files`: the indexes of all snapshots there are, newest
    /// first.
    SnapshotTaken {
        needed: Index,
        files: Vec<Index>,
    },
    /// The log now starts after `base`: it was released up to a snapshot with this configuration.
    Released {
        base: LogPosition,
        config: Config,
    },
    /// The state machine starts, or starts anew, from here.
    Started(Applied),
    /// Whether the database above has what this member's log has not: it saw that committed, and a crash came before
    /// the own disk had it. Before [`Input::Started`] if it is so at the start, and when it is no more.
    Unlogged(bool),
    /// How far the state machine got: before each tick, and after each entry that is not data.
    Applied(Applied),
    /// This note is in the log, and was applied.
    Noted(NoteId),
    /// How the host's server stands, `None` without one: before each tick. What `prompt` others wait for is handed in
    /// at once ([`crate::Intake::standing`]).
    Standing(Option<Standing>),
    /// The commit that the host is in the middle of: before each tick.
    HostCommit(Option<i64>),
    /// The room on the log's disk, what the log says of it, and how much of what the log may have it takes: before
    /// each tick.
    LogRoom {
        room: LogRoom,
        warning: Option<String>,
        percent: u8,
    },
    /// Whether all members of this process are isolated: before each tick and each greeting.
    ProcessIsolated(bool),
    /// This member is going down.
    Close,
}

/// What the log says of the room on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRoom {
    Enough,
    /// The disk is full; so many segments were prepared before.
    Reserve {
        segments: u64,
    },
    /// The log stands still, and waits for room.
    Blocked,
}

/// Where the state machine stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    pub last: LogPosition,
    pub view: View,
}

/// What came of asking for admission at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskAnswer {
    Admission {
        from: PeerIdentity,
        admission: Admission,
    },
    /// The host of this member does not want to join the group found there.
    Objection {
        from: PeerIdentity,
        reason: String,
    },
    /// The connection was refused by who showed `key`.
    Refused {
        refusal: Refusal,
        key: KeyId,
    },
    /// There was no answer.
    Failed {
        reason: String,
    },
}
