//! A connection to the group: the member, the identity of its process, and what it has proposed.

pub mod ends;
pub mod giving_up;
mod open_streams;
mod own_parts;
mod progress;
mod room;
pub mod severed;

use self::ends::Ends;
use self::giving_up::KinEpoch;
use self::own_parts::OwnParts;
use self::progress::SequencerProgress;
use self::room::Room;
use self::severed::Severed;
use crate::blocking::{self, Mutex, MutexGuard};
use crate::fate::trx::{Fate, Handle, Trx};
use crate::flow::Flow;
use crate::group::Group;
use crate::host::Meta;
use crate::start::genesis::Genesis;
use quorate_certify::{process_uuid, WriteSet};
use quorate_consensus::level::Level;
use quorate_consensus::MemberId;
use quorate_live::{GroupError, View};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The identity of one process of a member.
pub fn node_uuid(member: MemberId, incarnation: u32) -> u128 {
    process_uuid(member.0, incarnation)
}

/// The processes of a view's members.
pub fn process_ids(view: &View) -> Vec<u128> {
    view.members.iter().map(|m| node_uuid(m.id, m.incarnation)).collect()
}

/// While the group is at an older feature level, it is asked so often at most for its present one.
const LEVEL_INTERVAL: Duration = Duration::from_secs(1);

/// Where this node's database stands when the connection begins.
struct Start {
    /// `None`: needs a state transfer.
    position: Option<i64>,
    /// The server was told: there is no way back.
    announced: bool,
    /// The state of another node has arrived.
    received: bool,
}

pub struct Link {
    pub group: Arc<dyn Group>,
    /// The group's uuid to the server.
    pub history: u128,
    pub genesis: Genesis,
    pub node: u128,
    pub member: MemberId,
    pub incarnation: u32,
    start: Mutex<Start>,
    /// Up to which seqno a fetched state may go: -1 where none was asked for, `i64::MAX` until it has arrived.
    fetched: AtomicI64,
    pub progress: SequencerProgress,
    /// For what this node proposes.
    pub room: Room,
    /// How fast it may.
    pub flow: Flow,
    /// Of its large transactions.
    pub parts: OwnParts,
    pending: Mutex<HashMap<u64, Arc<Handle>>>,
    /// Fragments whose sessions gave them up before they were sequenced.
    pub(crate) given_up: Mutex<HashSet<u64>>,
    /// Streaming transactions of this node whose end the others have to hear.
    pub ends: Ends,
    /// Streaming transactions that DDL of the former process may have ended here.
    pub severed: Severed,
    serial: AtomicU64,
    /// The group's feature level, as last seen.
    level: AtomicU16,
    level_asked: Mutex<Option<Instant>>,
    pub(crate) kin_epoch: KinEpoch,
    primary: AtomicBool,
    /// This node takes no part any more until it is restarted.
    failed: AtomicBool,
    closing: AtomicBool,
    /// It closes though the server goes on.
    server_stays: AtomicBool,
    /// Another member's server has a state that it can send, as far as was heard.
    state_elsewhere: AtomicBool,
    closed: AtomicBool,
    /// The end is behind all that is sequenced for this connection. Held for each entry.
    ended: Mutex<bool>,
}

impl Link {
    pub fn new(
        group: Arc<dyn Group>,
        genesis: Genesis,
        member: MemberId,
        incarnation: u32,
        start: Option<i64>,
    ) -> Self {
        let began = life_began();
        Self {
            group,
            history: genesis.history,
            genesis,
            node: node_uuid(member, incarnation),
            member,
            incarnation,
            start: Mutex::new(Start { position: start, announced: false, received: false }),
            fetched: AtomicI64::new(-1),
            progress: SequencerProgress::new(),
            room: Room::new(),
            flow: Flow::new(None),
            parts: OwnParts::default(),
            pending: Mutex::new(HashMap::new()),
            given_up: Mutex::new(HashSet::new()),
            ends: Ends::default(),
            severed: Severed::default(),
            serial: AtomicU64::new(began.as_nanos() as u64),
            level: AtomicU16::new(0),
            level_asked: Mutex::new(None),
            kin_epoch: KinEpoch::of_life(began.as_secs()),
            primary: AtomicBool::new(true),
            failed: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            server_stays: AtomicBool::new(false),
            state_elsewhere: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            ended: Mutex::new(false),
        }
    }

    /// Where this node's database stands; `None`: it needs a state transfer.
    pub fn start(&self) -> Option<i64> {
        self.start.lock().position
    }

    /// As [`Self::start`], on the way to the server: final from now on.
    pub fn announce_start(&self) -> Option<i64> {
        let mut start = self.start.lock();
        start.announced = true;
        start.position
    }

    /// The log no longer reaches back to the database. False if the server was told otherwise.
    pub fn needs_transfer(&self) -> bool {
        let mut start = self.start.lock();
        if !start.announced {
            start.position = None;
        }
        !start.announced
    }

    /// The state of another node is being asked for: it may be of any place of the log.
    pub fn fetches(&self) {
        self.fetched.store(i64::MAX, Ordering::Release);
    }

    /// It was refused: -1; or it has arrived, and goes up to this seqno.
    pub fn fetched(&self, seqno: i64) {
        self.fetched.store(seqno, Ordering::Release);
    }

    /// Up to which seqno this database may go by a state transfer, if there is or was one.
    pub fn may_be_fetched_to(&self) -> Option<i64> {
        Some(self.fetched.load(Ordering::Acquire)).filter(|seqno| *seqno >= 0)
    }

    /// A state transfer is done: the database is one of the group's.
    pub fn state_received(&self) {
        self.start.lock().received = true;
    }

    /// Whether the database is one of the group's, however far behind: its own, or received.
    pub fn has_state(&self) -> bool {
        let start = self.start.lock();
        start.position.is_some() || start.received
    }

    pub fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps the group from sending again what has been seen in the log, for entries without a fate.
    pub fn decided_if_mine(&self, write_set: &WriteSet) {
        let header = write_set.header();
        if header.origin == self.node {
            self.group.decided(header.serial);
        }
    }

    /// Registers who waits for the fate of `serial`; before it is proposed.
    pub fn expect(&self, serial: u64, handle: Arc<Handle>) {
        self.pending.lock().insert(serial, handle);
    }

    /// Takes the one who waits for `serial`, and ends its being proposed again.
    pub fn settle(&self, serial: u64) -> Option<Arc<Handle>> {
        let handle = self.pending.lock().remove(&serial);
        self.group.decided(serial);
        handle
    }

    /// May new proposals be made? False without a quorum and while leaving.
    pub fn open_for_writes(&self) -> bool {
        self.primary.load(Ordering::Acquire) && !self.closing.load(Ordering::Acquire)
    }

    /// No fate will be waited for any longer.
    pub fn abandoned(&self) -> bool {
        !self.open_for_writes()
    }

    pub fn set_primary(&self, primary: bool) {
        self.primary.store(primary, Ordering::Release);
        if !primary {
            self.nudge_all();
        }
    }

    /// This node takes no part any more.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.set_primary(false);
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub fn primary(&self) -> bool {
        self.primary.load(Ordering::Acquire)
    }

    pub fn begin_closing(&self) {
        self.closing.store(true, Ordering::Release);
        self.progress.wake();
        self.nudge_proposers();
    }

    pub fn closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub fn set_state_elsewhere(&self, is_there: bool) {
        self.state_elsewhere.store(is_there, Ordering::Release);
    }

    pub fn state_elsewhere(&self) -> bool {
        self.state_elsewhere.load(Ordering::Acquire)
    }

    pub fn set_server_stays(&self, stays: bool) {
        self.server_stays.store(stays, Ordering::Release);
    }

    pub fn server_stays(&self) -> bool {
        self.server_stays.load(Ordering::Acquire)
    }

    /// For the sequencer, around an entry: whether that comes behind the end, where nobody would apply it.
    pub fn ended(&self) -> MutexGuard<'_, bool> {
        self.ended.lock()
    }

    /// Nothing is sequenced here any more.
    pub fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Wakes all who wait for a fate, to look whether they still should.
    pub fn nudge_all(&self) {
        let pending = self.pending.lock();
        let mut waiting: Vec<_> = pending.iter().map(|(s, h)| (*s, h.clone())).collect();
        drop(pending);
        // Oldest first, and in a simulation always the same first.
        waiting.sort_unstable_by_key(|(serial, _)| *serial);
        waiting.iter().filter_map(|(_, h)| h.local()).for_each(Trx::nudge);
        self.nudge_proposers();
    }

    /// Whether all members know what this feature level brought. It is never left again.
    pub fn has_level(&self, level: Level) -> bool {
        if self.level.load(Ordering::Acquire) >= level {
            return true;
        }
        // It takes the group's time, and most often is the same.
        let mut asked = self.level_asked.lock();
        let now = blocking::now();
        if asked.is_none_or(|at| now.duration_since(at) >= LEVEL_INTERVAL) {
            *asked = Some(now);
            self.level.store(self.group.status().level, Ordering::Release);
        }
        self.level.load(Ordering::Acquire) >= level
    }

    /// Those who wait to propose something look again, whether they still should.
    pub fn nudge_proposers(&self) {
        self.room.nudge();
        self.flow.nudge();
        self.ends.nudge();
        self.parts.nudge();
    }

    /// What an ordered write set is known by.
    pub fn meta(&self, fate: &Fate, origin: u128, trx_id: u64, conn_id: u64) -> Meta {
        let history = self.history;
        Meta { history, seqno: fate.seqno, depends_on: fate.depends_on, origin, trx_id, conn_id }
    }

    pub fn open_transactions(&self) -> usize {
        self.pending.lock().len()
    }

    /// A linearizable read point as a seqno: everything acknowledged before the call is at or
    /// below it.
    pub fn barrier(&self, deadline: Instant) -> Result<Option<i64>, GroupError> {
        let left = deadline.saturating_duration_since(blocking::now());
        let index = self.group.barrier(left)?;
        let reached = self.progress.wait_index(index, deadline, || self.closing());
        // What came after this node took leave is not given out here: there is no telling.
        Ok(reached.filter(|_| !self.closing()))
    }
}

/// By the clock: serials and epochs of kin begin there, so that they are no other life's of this process.
/// A member whose directory was set back to an older state may count its starts once more, and must not
/// take an outcome of its forgotten life for its own, nor what that wrote for something that it has seen.
fn life_began() -> Duration {
    Duration::from_nanos(blocking::unix_nanos().max(1))
}
