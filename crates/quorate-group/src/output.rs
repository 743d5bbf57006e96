//! What a member wants done.

use crate::order::Answer;
use quorate_consensus::{
    Charter, Effects, Entry, HardState, Index, LogPosition, MemberId, Rules, Term,
};
use quorate_wire::{JoinRequest, Packet, Standing};

/// What of the log is to go: see that the snapshot of index `upto` is readable, release the log up to it, delete the
/// snapshots that are needless then, and say [`crate::Input::Released`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    pub upto: Index,
    /// What comes after it is on its way to other members, which would need another state without it: it stays while
    /// there is room.
    pub sent: Index,
}

/// The output of one step, or of several in a row. It is carried out in the order of the fields,
/// cleared, and used again.
#[derive(Debug, Default)]
pub struct Output {
    /// The group this member belongs to from now on: durable before anything else is done.
    pub group: Option<(u128, Charter)>,
    /// This member is an older state of itself: leave this reason as a mark in the log directory,
    /// which is not to be opened any more. It stops in any case.
    pub mark: Option<String>,
    /// Of the consensus core: `hard_state` is to be durable before anything behind it is done;
    /// `reset_log`, `truncate_from` and `append` are queued for the log; `messages` go to the peers;
    /// `fetches` are read from the log, away from here. All else in it is the machine's.
    pub effects: Effects,
    /// Lost without a connection.
    pub packets: Vec<(MemberId, Packet)>,
    /// Say [`crate::Input::Room`] as soon as less than [`crate::FORWARD_BYTES`] wait for this peer.
    pub ask_room: Option<MemberId>,
    /// The state machine continues from the snapshot of this index: goes with `effects.reset_log`.
    pub install: Option<Index>,
    /// Entries up to here are committed: the state machine may see them. This member's own disk may be the last one
    /// to have them: so no snapshot of them is to be saved before that has. Never goes back.
    pub feed: Option<Index>,
    pub snapshots: Vec<SnapshotOrder>,
    pub links: Vec<Link>,
    /// One question at a time; the next follows the answer.
    pub ask: Option<Ask>,
    pub release: Option<Release>,
    /// Whether a majority is to go on with this member where others may stop, because all disks fill
    /// together: the log may use its reserve then.
    pub needed: Option<bool>,
    pub answers: Vec<(u64, Answer)>,
    /// For the observer, in order.
    pub notices: Vec<Notice>,
}

/// Send the newest snapshot to a peer whose next entry is purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotOrder {
    pub to: MemberId,
    pub term: Term,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Keep a connection to this peer, at one of these addresses (the first that works; none: do
    /// not dial). Do not wait with the next attempt.
    Connect { peer: MemberId, addrs: Vec<String> },
    /// End the connection dialled to this peer.
    Break(MemberId),
    /// End both connections with this peer.
    Cut(MemberId),
    /// No connection to this peer is wanted any more.
    Drop(MemberId),
    /// End every connection of this process, of strangers too.
    CutAll,
}

/// Ask for admission at `addr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    pub addr: String,
    pub request: JoinRequest,
    /// This member belongs to no group yet: the host is to agree to the one found there.
    pub agree: bool,
}

/// For the observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Leader(Term, Option<MemberId>),
    Rules(Rules),
    /// Somebody else waits for this member's server, or nobody any more (false): what it applies is to be handed in at
    /// once (see [`crate::Intake::standing`]).
    Awaited(bool),
    /// How the servers of all members stand, as far as that is known, this one's first: once a second.
    Standings(Vec<ServerStanding>),
    /// Lost (false) or regained (true) contact with a quorum.
    Primary(bool),
    Fatal(String),
    /// What is committed does not get through to the state machine any more: see `quorate_live::Observer::stuck`.
    Stuck(String),
    Log(LogLevel, String),
}

/// How the server of a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerStanding {
    pub member: MemberId,
    /// As the member last said.
    pub standing: Standing,
    /// Entries that were known to be committed then, and not certified there.
    pub uncertified: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// What is done of an output before all else: see [`Output::queue_log`].
pub trait LogQueue {
    type Error;

    /// Durable when it returns.
    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), Self::Error>;

    /// Durable when it returns.
    fn save_hard_state(&mut self, state: HardState) -> Result<(), Self::Error>;

    /// The state machine is to go on from the snapshot of this index.
    fn install(&mut self, index: Index);

    fn reset(&mut self, base: LogPosition);

    fn truncate(&mut self, from: Index);

    fn append(&mut self, entries: &[Entry]);
}

impl Output {
    /// Has everything done that is to be durable, or in the log's queue, before anything else of this is
    /// done. Where that fails, [`crate::Member::log_refused`] follows.
    pub fn queue_log<Q: LogQueue>(&self, log: &mut Q) -> Result<(), Q::Error> {
        if let Some((group, charter)) = self.group {
            log.save_group(group, charter)?;
        }
        if let Some(state) = self.effects.hard_state {
            log.save_hard_state(state)?;
        }
        if let Some(index) = self.install {
            // Before the entries go that may not be applied yet.
            log.install(index);
        }
        if let Some(meta) = &self.effects.reset_log {
            log.reset(meta.last);
        }
        if let Some(from) = self.effects.truncate_from {
            log.truncate(from);
        }
        if !self.effects.append.is_empty() {
            log.append(&self.effects.append);
        }
        Ok(())
    }

    pub(crate) fn log(&mut self, level: LogLevel, message: String) {
        self.notices.push(Notice::Log(level, message));
    }

    pub(crate) fn send(&mut self, to: MemberId, packet: Packet) {
        self.packets.push((to, packet));
    }

    /// Empties it, keeping the allocations.
    pub fn clear(&mut self) {
        self.group = None;
        self.mark = None;
        self.effects.clear();
        self.packets.clear();
        self.ask_room = None;
        self.install = None;
        self.feed = None;
        self.snapshots.clear();
        self.links.clear();
        self.ask = None;
        self.release = None;
        self.needed = None;
        self.answers.clear();
        self.notices.clear();
    }
}
