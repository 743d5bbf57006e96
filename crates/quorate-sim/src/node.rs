//! One place where a member can run: a machine with a disk and a clock, and the process on it, if one
//! runs. All that is in the process is the product's; what it wants done, the world does.

use crate::database::{Database, Part};
use crate::schedule::Micros;
use crate::world::{Action, Sessions};
use quorate_certify::{Header, Seqno};
use quorate_consensus::{Config, Index, LogPosition, MemberId, MemberRole, Rules, Term};
use quorate_group::{Feed, Member, Output, Redial};
use quorate_wal::sim::{Image, Next, SimDisk, Steps};
use quorate_wal::{SnapshotFiles, Wal};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub struct Node {
    /// Of the member whose directory is on the disk; 0: of none yet.
    pub id: MemberId,
    pub disk: SimDisk,
    pub process: Option<Process>,
    /// Counts the lives of the process; events of an earlier life are ignored.
    pub run: u32,
    /// Stopped by a signal: what happens to it piles up in `backlog`.
    pub paused: bool,
    pub backlog: VecDeque<Action>,
    /// The machine has no power: nobody refuses a connection.
    pub off: bool,
    pub clock: Clock,
    pub slow_disk_until: Micros,
    /// Entries applied so long after they committed.
    pub apply_lag_us: Micros,
    /// What its log promised to hold when the last life ended.
    pub promised: Option<LogPosition>,
    /// Where its database stood then.
    pub database_at: Index,
    /// The term of its last entry; `None`: the log began after that.
    pub database_term: Option<Term>,
    /// The disk holds other than what was synced: rot, or an older image.
    pub damage: Option<Damage>,
    /// The disk has no room.
    pub full: bool,
    pub image: Option<Image>,
    /// What a member that is an older state of itself leaves in its directory.
    pub mark: Option<String>,
    /// It refused to start, for good.
    pub refused: Option<String>,
    /// What it wishes to be when it asks for admission: role and priority.
    pub wish: (MemberRole, u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    Rot,
    RolledBack,
    /// It was given up for lost, and came back.
    GivenUp,
}

pub struct Process {
    pub wal: Wal,
    pub steps: Steps,
    pub snapshots: SnapshotFiles,
    pub member: Member,
    pub out: Output,
    pub feed: Feed,
    /// Digest of the notes that it shows.
    pub notes: u64,
    pub database: Database,
    pub fed_to: Index,
    pub install: Option<Index>,
    pub origin: u128,
    pub term: Term,
    pub leads: bool,
    /// Of the group, as far as it knows.
    pub rules: Rules,
    /// What it writes with, by its last look: see [`Process::look_who_writes`].
    pub writing_term: Option<Term>,
    pub ticks: u64,
    /// By the membership that it made last, or was elected in, it only hands over.
    pub caretaker: bool,
    /// All members of the process are cut off.
    pub isolated: bool,
    /// When it was cut off by its operator last, until then.
    pub cut_until: Micros,
    /// A view has it in it that was made since it started or was cut off.
    pub in_view: bool,
    /// When it had applied all that it knew to be committed, for the first time.
    pub synced_since: Option<Micros>,
    /// Clients of others wait for what it applies.
    pub awaited: bool,
    /// The votes that it was told to want, last.
    pub wants_votes: u8,
    pub links: BTreeMap<MemberId, Outgoing>,
    /// Number and connection of the peers that dialled.
    pub incoming: BTreeMap<MemberId, (u64, u64)>,
    pub clients: Vec<Client>,
    pub pending: BTreeMap<u64, Pending>,
    pub next_serial: u64,
    pub reads: Vec<Read>,
    pub sessions: Sessions,
    /// The question for admission that is under way: its number, and whom it goes to.
    pub asking: Option<(u64, String)>,
    /// Orders under way, by their ids.
    pub orders: BTreeMap<u64, &'static str>,
    /// Those that have an author.
    pub signed: BTreeSet<u64>,
    /// What the disk is at. A mark waits for nothing, and nothing for it.
    pub disk_at: Option<Next>,
    /// Counts what the disk was given to do: a wait for nothing urgent is taken back.
    pub disk_turn: u64,
    pub feed_due: bool,
    /// The database has what the log has not, and the member was told.
    pub unlogged: bool,
    /// The snapshot that is being saved.
    pub saving: bool,
    /// It said that it cannot go on.
    pub fatal: Option<String>,
    pub hangs: bool,
}

/// What a process has of a connection that it wants to a peer.
pub struct Outgoing {
    pub addrs: Vec<String>,
    pub connection: Option<u64>,
    pub dialling: bool,
    /// The connection that a dial waits for to be welcomed.
    pub greeting: Option<u64>,
    /// Counts dials: answers to an earlier one are ignored.
    pub attempt: u64,
    pub redial: Redial,
    pub since: Micros,
    /// Something says that it may be there after all.
    pub wanted_now: bool,
}

impl Outgoing {
    pub fn new(pause_max_us: Micros) -> Self {
        Outgoing {
            addrs: Vec::new(),
            connection: None,
            dialling: false,
            greeting: None,
            attempt: 0,
            redial: Redial::new(Duration::from_micros(pause_max_us)),
            since: 0,
            wanted_now: false,
        }
    }
}

/// A clock that started at some time and runs a little fast or slow.
#[derive(Clone, Copy, Default, Debug)]
pub struct Clock {
    pub offset_us: i64,
    pub parts_per_million: i64,
}

/// A proposal of this member that is not decided yet.
pub struct Pending {
    /// None: it has left.
    pub client: Option<usize>,
    pub op: u32,
    pub part: Part,
    pub header: Header,
    /// Rows that its session has locked.
    pub changes: Vec<u64>,
    pub task: Option<u32>,
}

#[derive(Clone, Default)]
pub struct Client {
    /// The last fragment of its streaming transaction.
    pub stream: Option<Seqno>,
    /// The task for which it came from another node.
    pub guest: Option<u32>,
}

/// A linearizable read under way.
pub struct Read {
    pub id: u64,
    pub client: usize,
    /// What was fed somewhere when it was asked for.
    pub floor: Index,
    /// The read point, once known: the read is done when that is applied.
    pub point: Option<Index>,
}

impl Clock {
    pub fn millis(&self, now: Micros) -> u64 {
        (self.micros(now) / 1000) as u64
    }

    /// From `now` on it runs at another speed.
    pub fn drift(&mut self, now: Micros, parts_per_million: i64) {
        let shown = self.micros(now);
        self.parts_per_million = parts_per_million;
        self.offset_us += shown - self.micros(now);
    }

    fn micros(&self, now: Micros) -> i64 {
        let now = now as i64;
        self.offset_us + now + now * self.parts_per_million / 1_000_000
    }
}

impl Node {
    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Events may be handled now.
    pub fn runs(&self) -> bool {
        self.process.is_some() && !self.paused
    }

    pub fn leads(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.leads)
    }

    /// The disk holds what was synced, as far as anybody has noticed.
    pub fn is_whole(&self) -> bool {
        self.damage.is_none() && self.refused.is_none()
    }

    /// Its disk was put back, and it says that somebody told it so whose word does not count there.
    pub fn is_disputed(&mut self) -> bool {
        let Some(process) = self.process.as_mut().filter(|_| self.damage.is_some()) else {
            return false;
        };
        process.member.status(0, Default::default()).disputed.is_some()
    }

    /// It runs, and `config` is the newest membership in its log.
    pub fn goes_by(&mut self, config: &Config) -> bool {
        self.process.as_mut().is_some_and(|process| process.config() == *config)
    }
}

impl Process {
    pub fn applied(&self) -> Index {
        self.feed.position().index
    }

    /// The newest membership in its log.
    pub fn config(&mut self) -> Config {
        self.member.status(0, Default::default()).config
    }

    /// Nothing that this client asked for is open.
    pub fn is_idle(&self, client: usize) -> bool {
        self.pending.values().all(|pending| pending.client != Some(client))
            && self.reads.iter().all(|read| read.client != client)
    }

    /// Whether it was told to leave.
    pub fn is_leaving(&self) -> bool {
        self.has_order_of(&["leave"])
    }

    /// Whether one of these orders is under way.
    pub fn has_order_of(&self, kinds: &[&str]) -> bool {
        self.orders.values().any(|what| kinds.contains(what))
    }

    /// Whether the log of this process has this entry, or begins after it.
    pub fn has(&self, position: LogPosition) -> bool {
        position.index <= self.wal.base().index
            || self.wal.term_at(position.index) == Some(position.term)
    }

    /// Whether it has it on disk.
    pub fn has_on_disk(&self, position: LogPosition) -> bool {
        let end = self.wal.persisted().index.max(self.wal.base().index);
        position.index <= end && self.has(position)
    }

    pub fn is_in_snapshot(&self, index: Index) -> bool {
        let newest = self.snapshots.list().unwrap_or_default().into_iter().next();
        newest.is_some_and(|newest| index <= newest)
    }
}
