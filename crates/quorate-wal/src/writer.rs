//! The writer: takes everything queued, writes and syncs it, reports, and begins again. What is
//! queued meanwhile is the next batch: one sync for all that waited.

use crate::error::WalError;
use crate::index::Placement;
use crate::shared::Shared;
use crate::state::Op;
use crate::tail::Tail;
use crate::wal::OnSync;
use quorate_consensus::LogPosition;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After so long without work a `Mark` tells the next recovery that everything was synced.
const IDLE: Duration = Duration::from_millis(100);

pub(crate) struct Writer {
    shared: Arc<Shared>,
    tail: Tail,
    batch: Vec<Op>,
    /// Something was synced since the last `Mark`.
    unmarked: bool,
}

/// What there is to do.
enum Work {
    Batch,
    Mark,
    Close,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, tail: Tail) -> Self {
        Writer { shared, tail, batch: Vec::new(), unmarked: false }
    }

    /// Runs until the log is closed or fails.
    pub(crate) fn run(mut self, on_sync: OnSync) {
        let outcome = loop {
            match self.wait() {
                Ok(Work::Batch) => match self.write_batch() {
                    Ok(Some(position)) => on_sync(Ok(position)),
                    Ok(None) => {}
                    Err(error) => break Err(error),
                },
                Ok(Work::Mark) => {
                    if let Err(error) = self.mark() {
                        break Err(error);
                    }
                }
                Ok(Work::Close) => break self.mark().and_then(|()| self.shared.save_closed()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = outcome {
            on_sync(Err(error));
        }
    }

    /// Waits for something to do. Failed elsewhere is failed here.
    fn wait(&mut self) -> Result<Work, Arc<WalError>> {
        let mut state = self.shared.state();
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.is_queued() {
                state.take_queue(&mut self.batch);
                return Ok(Work::Batch);
            }
            if state.closing {
                return Ok(Work::Close);
            }
            state.idle = true;
            let wake = &self.shared.wake;
            if self.unmarked {
                let (guard, timeout) =
                    wake.wait_timeout(state, IDLE).expect("no panics under this lock");
                state = guard;
                state.idle = false;
                if timeout.timed_out() && !state.is_queued() && state.failed.is_none() {
                    return Ok(Work::Mark);
                }
            } else {
                state = wake.wait(state).expect("no panics under this lock");
                state.idle = false;
            }
        }
    }

    /// Writes what is queued, if anything is, and syncs it.
    #[cfg(test)]
    pub(crate) fn step(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        {
            let mut state = self.shared.state();
            if !state.is_queued() {
                return Ok(None);
            }
            state.take_queue(&mut self.batch);
        }
        self.write_batch()
    }

    /// Writes and syncs the batch; returns what of it is to be reported.
    fn write_batch(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        let begun = Instant::now();
        self.put_batch().map_err(|error| self.shared.fail(error))?;
        let took_us = begun.elapsed().as_micros() as u64;
        self.unmarked = true;

        let mut reset = false;
        let mut state = self.shared.state();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        state.stats.syncs += 1;
        state.stats.sync_us_sum += took_us;
        state.stats.sync_us_max = state.stats.sync_us_max.max(took_us);
        let (last, synced) = (self.tail.last(), self.tail.synced());
        let placements = self.tail.placements();
        let placements = placements.inspect(|p| reset |= matches!(p, Placement::Reset));
        let persisted = state.batch_synced(last, synced, placements);
        if reset {
            let released = state.release_unused();
            self.shared.supply.retire(released);
        }
        Ok(persisted)
    }

    fn put_batch(&mut self) -> Result<(), WalError> {
        let supply = &self.shared.supply;
        for op in self.batch.drain(..) {
            match op {
                Op::Append(entry) => self.tail.append(&entry, supply)?,
                Op::Truncate(last) => self.tail.truncate(last, supply)?,
                Op::Reset(base) => self.tail.reset(base, supply)?,
            }
        }
        self.tail.sync()
    }

    /// Says on disk that everything before was synced.
    pub(crate) fn mark(&mut self) -> Result<(), Arc<WalError>> {
        if !self.unmarked {
            return Ok(());
        }
        self.tail.mark(&self.shared.supply).map_err(|error| self.shared.fail(error))?;
        self.unmarked = false;
        let mut state = self.shared.state();
        self.tail.placements().for_each(|p| state.index.apply(p));
        state.synced = self.tail.synced();
        Ok(())
    }
}
