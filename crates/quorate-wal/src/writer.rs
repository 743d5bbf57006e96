//! The writer: takes everything queued, writes and syncs it, reports, and begins again. What is
//! queued meanwhile is the next batch: one sync for all that waited.
//!
//! It goes step by step ([`Writer::step`]), and what the next step will be can be asked
//! ([`Writer::next`]): the thread of the product ([`crate::threads`]) takes one after the other, a
//! simulation decides when, and what goes wrong in between.
//!
//! A disk without room blocks it: the batch stays, nothing is acknowledged, and each further step
//! tries again. Every other failure is final.

use crate::error::WalError;
use crate::index::Placement;
use crate::shared::Shared;
use crate::state::{Op, State};
use crate::tail::{Synced, Tail};
use quorate_consensus::LogPosition;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

pub(crate) struct Writer {
    shared: Arc<Shared>,
    tail: Tail,
    batch: VecDeque<Op>,
    stage: Stage,
    /// When the batch was taken.
    begun: Instant,
    /// Something was synced since the last mark.
    unmarked: bool,
    /// The batch is only the mark that says so.
    marking: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No batch.
    Idle,
    Writing,
    /// Blocked: a write, or the next segment, found no room.
    Full,
    Syncing,
}

/// What [`Writer::step`] would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing: until something is queued.
    Idle,
    /// Write what is queued, or more of it.
    Write,
    /// Sync what was written.
    Sync,
    /// Try again: the disk had no room.
    Full,
    /// Nothing is queued: write that everything is synced. Due after some time without work.
    Mark,
    /// Fail again: it is final.
    Failed,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, tail: Tail) -> Self {
        Writer {
            shared,
            tail,
            batch: VecDeque::new(),
            stage: Stage::Idle,
            begun: Instant::now(),
            unmarked: false,
            marking: false,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn is_between_batches(&self) -> bool {
        self.stage == Stage::Idle
    }

    pub(crate) fn next(&self) -> Next {
        self.next_in(&self.shared.state())
    }

    pub(crate) fn next_in(&self, state: &State) -> Next {
        match self.stage {
            _ if state.failed.is_some() => Next::Failed,
            Stage::Writing => Next::Write,
            Stage::Full => Next::Full,
            Stage::Syncing => Next::Sync,
            Stage::Idle if state.is_queued() => Next::Write,
            Stage::Idle if self.unmarked => Next::Mark,
            Stage::Idle => Next::Idle,
        }
    }

    /// Does that. `Some`: the disk got on, and the log as queued so far is on it up to here.
    pub(crate) fn step(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        match self.next() {
            Next::Idle => Ok(None),
            Next::Failed => Err(self.shared.state().failed.clone().expect("looked at it")),
            Next::Sync => self.sync(),
            Next::Write | Next::Full => self.write(),
            Next::Mark => {
                self.marking = true;
                self.batch.push_back(Op::Mark);
                self.stage = Stage::Writing;
                self.write()
            }
        }
    }

    fn write(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        if self.stage == Stage::Idle {
            self.shared.state().take_queue(&mut self.batch);
            self.begun = Instant::now();
        }
        let was_full = self.stage == Stage::Full;
        self.stage = match self.put_batch() {
            Ok(()) if self.marking && self.tail.is_flushed() => self.marked(),
            Ok(()) => Stage::Syncing,
            Err(full @ WalError::Full { .. }) => {
                self.shared.supply.set_blocked(Some(&full));
                Stage::Full
            }
            Err(error) => return Err(self.shared.fail(error)),
        };
        if was_full && self.stage != Stage::Full {
            self.shared.supply.set_blocked(None);
        }
        Ok(None)
    }

    /// Writes until a sync is due. What found no room is still there for the next try.
    fn put_batch(&mut self) -> Result<(), WalError> {
        loop {
            if self.tail.is_long() && !self.tail.flush()? {
                return Ok(());
            }
            let Some(op) = self.batch.front() else { break };
            if !self.tail.put_op(op, &self.shared.supply)? {
                break;
            }
            self.batch.pop_front();
        }
        self.tail.flush().map(drop)
    }

    fn sync(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        let synced = self.tail.sync().map_err(|error| self.shared.fail(error))?;
        self.stage = Stage::Writing;
        match synced {
            Synced::Piece => return Ok(self.shared.state().reportable()),
            Synced::Segment => return Ok(None),
            Synced::All => {}
        }
        debug_assert!(self.batch.is_empty() && !self.marking);
        self.stage = Stage::Idle;
        self.unmarked = true;
        self.batch_synced()
    }

    /// Nobody waits for the mark: it is synced in the background, or with the next batch.
    fn marked(&mut self) -> Stage {
        self.shared.supply.settle(self.tail.segment().clone());
        (self.marking, self.unmarked) = (false, false);
        Stage::Idle
    }

    /// Publishes that the batch is on disk; returns what of it is to be reported.
    fn batch_synced(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        let mut reset = false;
        let mut state = self.shared.state();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        state.stats.batch_took(self.begun.elapsed());
        let (last, synced) = (self.tail.last(), self.tail.synced());
        let placements = self.tail.placements();
        let placements = placements.inspect(|p| reset |= matches!(p, Placement::Reset));
        let persisted = state.batch_synced(last, synced, placements);
        let released = if reset { state.release_unused() } else { None };
        if let Some(released) = released {
            self.shared.supply.retire(released);
        }
        Ok(persisted)
    }
}

#[cfg(test)]
impl Writer {
    /// A whole batch, if something is queued, or as much of it as there is room for.
    pub(crate) fn write_batch(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        match self.next() {
            Next::Mark => Ok(None),
            _ => self.steps(),
        }
    }

    /// The mark, if one is due.
    pub(crate) fn mark(&mut self) -> Result<(), Arc<WalError>> {
        match self.next() {
            Next::Mark => self.steps().map(drop),
            _ => Ok(()),
        }
    }

    fn steps(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        loop {
            let done = self.step()?;
            if matches!(self.stage, Stage::Idle | Stage::Full) {
                return Ok(done);
            }
        }
    }
}
