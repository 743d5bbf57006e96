//! Holding still: pause (nothing is applied or committed past a point) and desync (this node may
//! fall behind: it says so, and nobody waits for it anyway).

use crate::node::{LocalState, Node};
use crate::order::GateKeeper;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU32, Ordering};

pub struct PauseState {
    paused: Mutex<bool>,
    resumed: Condvar,
    desync: AtomicU32,
}

impl PauseState {
    pub fn new() -> Self {
        Self { paused: Mutex::new(false), resumed: Condvar::new(), desync: AtomicU32::new(0) }
    }

    pub fn desync_count(&self) -> u32 {
        self.desync.load(Ordering::Acquire)
    }
}

impl Node {
    /// Stops applying and committing and returns the seqno at which everything stands still.
    /// A second pauser waits for the first to resume.
    pub fn pause(&self) -> i64 {
        let mut paused = self.pause.paused.lock();
        while *paused {
            self.pause.resumed.wait(&mut paused);
        }
        *paused = true;
        drop(paused);
        // With the queue held, nothing is taken out; what was taken out or decided before is at
        // or below the sequencer's seqno, and may finish.
        let at = self.queue.set_gate(|| {
            let sequenced = self.link().map_or(-1, |l| l.progress.seqno());
            self.commit.close_gate(GateKeeper::Pause, sequenced.max(self.apply.last_left()))
        });
        self.apply.wait(at);
        self.info(&format!("Provider paused at seqno {at}"));
        at
    }

    pub fn resume(&self) {
        self.commit.open_gate(GateKeeper::Pause);
        self.queue.open_gate();
        *self.pause.paused.lock() = false;
        self.pause.resumed.notify_one();
        self.info("Provider resumed");
    }

    pub fn desync(&self) {
        self.pause.desync.fetch_add(1, Ordering::AcqRel);
        if matches!(self.local_state(), LocalState::Synced | LocalState::Joined) {
            self.set_local_state(LocalState::Donor);
        }
    }

    /// False if it was not desynced.
    pub fn resync(&self) -> bool {
        let before = self
            .pause
            .desync
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        if before == Ok(1) && self.local_state() == LocalState::Donor {
            self.set_local_state(LocalState::Joined);
            if let Some(link) = self.link() {
                self.check_synced(&link);
            }
        }
        before.is_ok()
    }
}
