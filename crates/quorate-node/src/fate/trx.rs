//! A local transaction from its first key to its release, and the table of them.
//!
//! Invariants:
//! - a fate is set at most once a fragment, by the sequencer, in seqno order; a transaction whose
//!   write set may be in any log stays in `Sending` (or `MustAbort`) until then;
//! - once commit order is entered for a commit fragment, nothing aborts the transaction;
//! - whoever has a fate leaves commit order and apply order exactly once for its seqno.

use crate::blocking::{now, Condvar, Mutex, MutexGuard};
use crate::counters::CommitLatency;
use crate::fate::stream::Stream;
use crate::order::{CommitOrder, Entered, Halted};
use bytes::Bytes;
use quorate_certify::{flags, Packed, PartsOf, WriteSetBuilder};
use quorate_latency::Latency;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Where a local transaction stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Executing,
    /// Marked by a transaction with priority (one that is ordered before it); the owner notices at its next call.
    MustAbort,
    /// Proposed, fate unknown.
    Sending,
    /// Ordered and certified.
    Ordered,
    /// Waiting for, or inside, commit order.
    Committing,
    /// Commit order left.
    Committed,
    /// Certified but aborted here: to be applied again from its write set.
    MustReplay,
    Replaying,
    /// Failed certification, or aborted without replay.
    Aborting,
    RollingBack,
    RolledBack,
}

/// What the log decided about a fragment.
#[derive(Clone, Debug)]
pub struct Fate {
    pub seqno: i64,
    pub depends_on: i64,
    pub certified: bool,
    pub flags: u32,
    /// What the server gave as data, for a replay.
    pub payload: Bytes,
    /// What stands before it in the log, and how it is packed.
    pub parts: Option<PartsOf>,
    pub packed: Option<Packed>,
}

pub struct TrxState {
    pub phase: Phase,
    pub builder: WriteSetBuilder,
    /// Of its data, what was sent before its write set.
    pub stream: Option<Stream>,
    pub conn_id: u64,
    pub fate: Option<Fate>,
    /// Seqno of the fragment before this one, -1 if there was none.
    pub last_fragment: i64,
    pub commit_entered: bool,
    pub commit_left: bool,
    /// A fragment was aborted inside commit order: told at its release.
    pub deferred_abort: bool,
    /// When the stage of its commit began that it is in, if that is counted.
    stage_began: Option<Instant>,
}

pub struct Trx {
    pub id: u64,
    state: Mutex<TrxState>,
    decided: Condvar,
}

/// A write set of another member (or an orphaned one of our own) while the server applies it.
pub struct Remote {
    seqno: i64,
    /// Its origin, which is another process, has committed it, if anybody can: it ends a transaction, and is no DDL.
    committed: bool,
    /// Why nobody can apply it, the same on all nodes. Whatever a server says of it then, this is the error that the
    /// group votes on.
    pub unreadable: Option<String>,
    progress: Mutex<RemoteProgress>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RemoteProgress {
    Applying,
    Inside,
    Left,
}

/// What a write-set handle of the server points to.
#[allow(clippy::large_enum_variant, reason = "behind a pointer of its own, made once, never moved")]
pub enum Handle {
    Local(Trx),
    Remote(Remote),
}

/// How an abort by a transaction with priority went, and the victim's seqno (-1 if not ordered).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abort {
    /// The victim is marked now.
    Marked(i64),
    /// It was marked before, or fails by itself: nothing is to be done.
    Done(i64),
    NotAllowed(i64),
}

/// The outcome of waiting for commit order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EnterResult {
    Entered,
    /// Commit fragment: roll back and replay.
    Replay,
    /// Other fragment: roll back.
    Failed,
}

impl TrxState {
    pub fn seqno(&self) -> i64 {
        self.fate.as_ref().map_or(-1, |f| f.seqno)
    }

    /// It is proposed now: its commit begins.
    pub fn begin_commit(&mut self) {
        self.phase = Phase::Sending;
        self.stage_began = Some(now());
    }

    /// A stage of its commit has ended, and the next one begun.
    pub fn end_stage(&mut self, stage: &Latency, ended: Instant) {
        if let Some(began) = &mut self.stage_began {
            stage.took(ended.saturating_duration_since(*began));
            *began = ended;
        }
    }

    /// It does not commit, or is applied again first: what follows is no stage of a commit.
    pub fn end_timing(&mut self) {
        self.stage_began = None;
    }

    fn is_commit_fragment(&self) -> bool {
        self.fate.as_ref().is_some_and(|f| f.flags & flags::TRX_END != 0)
    }

    fn interrupted(&mut self) -> EnterResult {
        self.end_timing();
        if self.is_commit_fragment() {
            self.phase = Phase::MustReplay;
            EnterResult::Replay
        } else {
            self.phase = Phase::Aborting;
            EnterResult::Failed
        }
    }
}

impl Trx {
    pub fn new(id: u64) -> Self {
        let state = TrxState {
            phase: Phase::Executing,
            builder: WriteSetBuilder::new(),
            stream: None,
            conn_id: 0,
            fate: None,
            last_fragment: -1,
            commit_entered: false,
            commit_left: false,
            deferred_abort: false,
            stage_began: None,
        };
        Self { id, state: Mutex::new(state), decided: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, TrxState> {
        self.state.lock()
    }

    /// Called by the sequencer: the log has decided.
    pub fn decide(&self, fate: Fate) {
        let mut state = self.state.lock();
        debug_assert!(state.fate.is_none());
        state.fate = Some(fate);
        drop(state);
        self.decided.notify_all();
    }

    /// Wakes the owner to look again (the group is gone).
    pub fn nudge(&self) {
        let _state = self.state.lock();
        self.decided.notify_all();
    }

    /// Blocks until there is a fate, or `give_up` says so.
    pub fn await_fate<'a>(
        &'a self,
        mut state: MutexGuard<'a, TrxState>,
        give_up: impl Fn() -> bool,
    ) -> MutexGuard<'a, TrxState> {
        while state.fate.is_none() && !give_up() {
            self.decided.wait(&mut state);
        }
        state
    }

    /// Enters commit order for the current fragment. The interface's table of phases is here.
    pub fn enter_commit(
        &self,
        order: &CommitOrder,
        latency: &CommitLatency,
    ) -> Result<EnterResult, Halted> {
        let mut state = self.state.lock();
        // Without a seqno (-1) it has no turn, which the order says.
        let seqno = state.seqno();
        match state.phase {
            Phase::MustAbort => return Ok(state.interrupted()),
            Phase::Ordered => state.phase = Phase::Committing,
            Phase::Aborting => state.phase = Phase::RollingBack,
            _ => {}
        }
        if state.commit_entered {
            return Ok(EnterResult::Entered);
        }
        let interruptible = state.phase == Phase::Committing;
        drop(state);
        crate::sync::point("before_local_commit_monitor_enter");
        crate::sync::point("commit_monitor_master_enter_sync");
        let entered = order.enter(seqno, interruptible)?;
        let mut state = self.state.lock();
        if entered == Entered::Interrupted {
            return Ok(state.interrupted());
        }
        state.commit_entered = true;
        if state.phase == Phase::MustAbort {
            // Only a fragment that does not commit can be marked once inside.
            return Ok(state.interrupted());
        }
        state.end_stage(&latency.order, now());
        Ok(EnterResult::Entered)
    }

    pub fn leave_commit(&self, order: &CommitOrder, latency: &CommitLatency) -> Result<(), Halted> {
        let mut state = self.state.lock();
        if !state.commit_entered || state.commit_left {
            return Ok(());
        }
        state.commit_left = true;
        state.end_stage(&latency.commit, now());
        let seqno = state.seqno();
        match state.phase {
            Phase::MustAbort => {
                state.phase = Phase::Aborting;
                state.deferred_abort = true;
            }
            Phase::RollingBack => state.phase = Phase::RolledBack,
            Phase::Aborting => {}
            _ => state.phase = Phase::Committed,
        }
        drop(state);
        order.leave(seqno)
    }

    /// A transaction ordered at `by_seqno` (0 or less: a KILL or an operation without order) wants
    /// this one out of its way. Never blocks.
    pub fn abort(&self, by_seqno: i64, order: &CommitOrder) -> Abort {
        let mut state = self.state.lock();
        let seqno = state.seqno();
        if seqno >= 0 && seqno < by_seqno && state.is_commit_fragment() {
            return Abort::NotAllowed(seqno);
        }
        match state.phase {
            Phase::Executing | Phase::Sending | Phase::Ordered => {
                state.phase = Phase::MustAbort;
                Abort::Marked(seqno)
            }
            Phase::Committing => {
                if order.interrupt(seqno) || !state.is_commit_fragment() {
                    state.phase = Phase::MustAbort;
                    Abort::Marked(seqno)
                } else {
                    Abort::NotAllowed(seqno)
                }
            }
            Phase::Committed if state.is_commit_fragment() => Abort::NotAllowed(seqno),
            // Nothing to be done, and nothing against it. The server may mean another one: an open
            // streaming transaction of another server with the same id, which waits for a yes.
            _ => Abort::Done(seqno),
        }
    }
}

impl Remote {
    pub fn new(seqno: i64, committed: bool) -> Self {
        let progress = Mutex::new(RemoteProgress::Applying);
        Self { seqno, committed, unreadable: None, progress }
    }

    /// Whether it counts as committed at its origin. What nobody can read, nobody has: an origin that has it all the
    /// same says so itself.
    pub fn is_committed(&self) -> bool {
        self.committed && self.unreadable.is_none()
    }

    pub fn enter_commit(&self, order: &CommitOrder) -> Result<(), Halted> {
        if *self.progress.lock() == RemoteProgress::Applying {
            crate::sync::point("commit_monitor_slave_enter_sync");
            order.enter(self.seqno, false)?;
            *self.progress.lock() = RemoteProgress::Inside;
        }
        Ok(())
    }

    pub fn leave_commit(&self, order: &CommitOrder) -> Result<(), Halted> {
        let mut progress = self.progress.lock();
        if *progress == RemoteProgress::Inside {
            *progress = RemoteProgress::Left;
            order.leave(self.seqno)?;
        }
        Ok(())
    }
}

const SHARDS: usize = 64;

/// Local transactions by the server's id, for those who know no handle (who abort them).
pub struct TrxTable {
    shards: Vec<Mutex<HashMap<u64, Arc<Handle>>>>,
}

impl Default for TrxTable {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::new(HashMap::new())).collect() }
    }
}

impl TrxTable {
    fn shard(&self, id: u64) -> &Mutex<HashMap<u64, Arc<Handle>>> {
        &self.shards[(id % SHARDS as u64) as usize]
    }

    pub fn get(&self, id: u64) -> Option<Arc<Handle>> {
        self.shard(id).lock().get(&id).cloned()
    }

    pub fn get_or_create(&self, id: u64) -> Arc<Handle> {
        self.shard(id)
            .lock()
            .entry(id)
            .or_insert_with(|| Arc::new(Handle::Local(Trx::new(id))))
            .clone()
    }

    pub fn remove(&self, id: u64) {
        self.shard(id).lock().remove(&id);
    }

    pub fn count(&self) -> usize {
        self.shards.iter().map(|s| s.lock().len()).sum()
    }
}

/// Isolated actions under way, by connection.
#[derive(Default)]
pub struct IsolatedTable(Mutex<HashMap<u64, Arc<Handle>>>);

impl IsolatedTable {
    pub fn insert(&self, conn_id: u64, handle: Arc<Handle>) {
        self.0.lock().insert(conn_id, handle);
    }

    pub fn remove(&self, conn_id: u64) -> Option<Arc<Handle>> {
        self.0.lock().remove(&conn_id)
    }
}

impl Handle {
    /// -1 if not ordered.
    pub fn seqno(&self) -> i64 {
        match self {
            Handle::Local(trx) => trx.lock().seqno(),
            Handle::Remote(remote) => remote.seqno,
        }
    }

    pub fn local(&self) -> Option<&Trx> {
        match self {
            Handle::Local(trx) => Some(trx),
            Handle::Remote(_) => None,
        }
    }

    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Handle::Local(_) => None,
            Handle::Remote(remote) => Some(remote),
        }
    }
}

#[cfg(test)]
mod tests;
