//! One simulated member: the core, its disk, its replicated state, and what its clients wait for.

use crate::disk::{Disk, Snapshot};
use crate::machine::Machine;
use crate::net::SLOTS_MAX;
use crate::schedule::Micros;
use crate::world::Event;
use bytes::Bytes;
use quorate_consensus::placement::Writes;
use quorate_consensus::{
    Config, Consensus, Effects, Entry, Index, LogPosition, MemberId, RoleState, Term,
};
use std::collections::VecDeque;
use std::rc::Rc;

pub struct Member {
    pub id: MemberId,
    /// `None` while the process is down.
    pub core: Option<Consensus>,
    /// Counts the lives of the process; events of an earlier life are ignored.
    pub run: u32,
    /// When its present life began.
    pub since: Micros,
    /// The disk is lost for good: this identity never comes back.
    pub gone: bool,
    /// Stopped by a signal: events pile up in `backlog`.
    pub paused: bool,
    pub backlog: VecDeque<Event>,
    pub clock: Clock,
    pub disk: Disk,
    pub slow_disk_until: Micros,
    /// When the core hears of the last sync.
    pub told_at: Micros,
    pub crash_at: Option<CrashPoint>,

    pub machine: Machine,
    /// The entry of the last view it accepted in this life.
    pub view_at: LogPosition,
    pub commit: Index,
    /// How far its own disk has the log, as far as it knows.
    pub persisted: Index,
    /// What the core holds committed; ahead of `commit` until that is carried out.
    pub commit_seen: Index,
    /// The membership the core goes by.
    pub config: Rc<Config>,
    /// What the core wants done and is not done yet.
    pub effects: Effects,
    /// Terms it came to lead, of which nobody can know yet.
    pub elected: Vec<Term>,
    /// Entries it made as leader, each with the term before it, not yet handed to anybody.
    pub made: Vec<(Entry, Term)>,
    pub role: RoleState,
    /// Entries applied so long after they committed.
    pub apply_lag_us: Micros,
    /// Snapshots the core was told of, until what it wants done with them is carried out.
    pub installing: Vec<Rc<Snapshot>>,
    pub snapshot_at: Index,

    pub origin: u128,
    pub next_serial: u64,
    pub pending: VecDeque<Pending>,
    /// The first so many of `pending` were sent in this session.
    pub sent: usize,
    pub session: Session,
    /// As leader: how far the stream of proposals of each other member has come.
    pub streams: [Stream; SLOTS_MAX],
    pub clients: Vec<Client>,
    pub reads: Vec<Read>,
    pub ticks: u64,
    pub view_proposed: (Term, u64),
    /// What local writes are stamped with, as last looked at; `None`: none is taken.
    pub writing_term: Option<Term>,
    /// As leader: where the proposals come from.
    pub writes: Writes,
}

/// A clock that started at some time and runs a little fast or slow.
#[derive(Clone, Copy, Default, Debug)]
pub struct Clock {
    pub offset_us: Micros,
    pub parts_per_million: i64,
}

/// Where the next crash of a member falls, relative to the effects of one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashPoint {
    /// Before the new term or vote is on disk.
    BeforeHardState,
    /// After it is, before anything else.
    AfterHardState,
    /// After the log has the entries, before any message left.
    AfterAppend,
    /// After that many messages left.
    AfterMessages(usize),
}

/// A proposal of this member that is not decided yet.
pub struct Pending {
    pub serial: u64,
    pub client: usize,
    pub data: Bytes,
}

/// A stream of forwarded proposals to one leader; nothing overtakes within it.
#[derive(Clone, Copy, Default)]
pub struct Session {
    pub number: u64,
    pub next: u64,
    pub leader: Option<MemberId>,
    pub term: Term,
    pub since: Micros,
}

#[derive(Clone, Copy, Default)]
pub struct Stream {
    pub session: u64,
    pub next: u64,
    pub broken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    Idle,
    Writing,
    Reading,
}

/// A linearizable read under way.
pub struct Read {
    pub ctx: u64,
    pub client: usize,
    /// What was committed somewhere when it was asked for.
    pub floor: Index,
    /// The read point, once known: the read is done when that is applied.
    pub point: Option<Index>,
    pub asked: Micros,
}

impl Clock {
    pub fn millis(&self, now: Micros) -> u64 {
        let drift = now as i64 * self.parts_per_million / 1_000_000;
        (self.offset_us + now).saturating_add_signed(drift) / 1000
    }
}

impl Member {
    pub fn is_up(&self) -> bool {
        self.core.is_some()
    }

    pub fn is_leader(&self) -> bool {
        self.core.as_ref().is_some_and(Consensus::is_leader)
    }

    /// Events may be handled now.
    pub fn runs(&self) -> bool {
        self.core.is_some() && !self.paused
    }

    /// Nothing that this member's clients asked for is open.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.reads.is_empty()
    }

    /// Starts a new stream of proposals to whoever leads now.
    pub fn reconnect(&mut self, number: u64, leader: Option<MemberId>, term: Term, now: Micros) {
        self.session = Session { number, next: 0, leader, term, since: now };
        self.sent = 0;
    }

    /// Takes the decided proposal out.
    pub fn decide(&mut self, serial: u64) -> Option<Pending> {
        let at = self.pending.iter().position(|p| p.serial == serial)?;
        if at < self.sent {
            self.sent -= 1;
        }
        self.pending.remove(at)
    }
}
