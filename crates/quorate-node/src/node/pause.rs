//! Holding still: pause (nothing is applied or committed past a point) and desync (this node may
//! fall behind: it says so, and nobody waits for it anyway).

use super::{LocalState, Node};
use crate::blocking::{Condvar, Mutex};
use crate::order::GateKeeper;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

pub struct PauseState {
    paused: Mutex<bool>,
    resumed: Condvar,
    /// While paused: the seqno at which everything stands still; `i64::MAX` otherwise.
    at: AtomicI64,
    desync: AtomicU32,
}

impl PauseState {
    pub fn new() -> Self {
        Self {
            paused: Mutex::new(false),
            resumed: Condvar::new(),
            at: AtomicI64::new(i64::MAX),
            desync: AtomicU32::new(0),
        }
    }

    pub fn desync_count(&self) -> u32 {
        self.desync.load(Ordering::Acquire)
    }

    /// The desynced one lost the group: whoever comes back starts in step with it.
    pub fn forget_desync(&self) {
        self.desync.store(0, Ordering::Release);
    }

    fn stand_still(&self, at: i64) {
        self.at.store(at, Ordering::Release);
    }

    fn end(&self) {
        let mut paused = self.paused.lock();
        *paused = false;
        self.at.store(i64::MAX, Ordering::Release);
        drop(paused);
        self.resumed.notify_all();
    }

    /// Blocks while everything stands still below `seqno`: a session learns its verdict, and drops
    /// its locks if it failed, only once its predecessors may go on. One that was `aborted` learns it at
    /// once: a predecessor waits for its locks, and the pause for that predecessor.
    pub fn hold(&self, seqno: i64, aborted: impl Fn() -> bool) {
        if seqno <= self.at.load(Ordering::Acquire) {
            return;
        }
        let mut paused = self.paused.lock();
        while seqno > self.at.load(Ordering::Acquire) && !aborted() {
            self.resumed.wait(&mut paused);
        }
    }

    /// A session was aborted, which may be held.
    pub fn look_again(&self) {
        if self.at.load(Ordering::Acquire) != i64::MAX {
            let _paused = self.paused.lock();
            self.resumed.notify_all();
        }
    }
}

impl Node {
    /// Stops applying and committing and returns the seqno at which everything stands still.
    /// A second pauser waits for the first to resume. Negative: the node is withdrawn.
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
        self.pause.stand_still(at);
        // What holds it back may be waiting for this pause: a backup that sends the state.
        self.commit.raise_isolated_gate(at);
        if self.in_order(self.apply.wait(at)).is_none() {
            self.resume();
            return i64::from(-libc::EIO);
        }
        self.info(&format!("Provider paused at seqno {at}"));
        at
    }

    pub fn resume(&self) {
        self.commit.open_gate(GateKeeper::Pause);
        self.queue.open_gate();
        self.pause.end();
        self.info("Provider resumed");
    }

    pub fn desync(&self) {
        self.pause.desync.fetch_add(1, Ordering::AcqRel);
        if matches!(self.local_state(), LocalState::Synced | LocalState::Joined) {
            self.set_local_state(LocalState::Donor);
        }
    }

    /// Without effect if it was not desynced (any more).
    pub fn resync(&self) {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn verdicts_past_the_pause_are_told_after_it() {
        let state = Arc::new(PauseState::new());
        state.stand_still(7);
        state.hold(7, || false);
        let waiter = {
            let state = state.clone();
            std::thread::spawn(move || state.hold(8, || false))
        };
        assert!(!waiter.is_finished());
        state.end();
        waiter.join().unwrap();
    }

    #[test]
    fn who_is_aborted_is_not_held_by_the_pause_that_waits_for_its_locks() {
        use std::sync::atomic::AtomicBool;
        let state = Arc::new(PauseState::new());
        let aborted = Arc::new(AtomicBool::new(false));
        state.stand_still(7);
        let waiter = {
            let (state, aborted) = (state.clone(), aborted.clone());
            std::thread::spawn(move || state.hold(8, || aborted.load(Ordering::Acquire)))
        };
        assert!(!waiter.is_finished());
        aborted.store(true, Ordering::Release);
        state.look_again();
        waiter.join().unwrap();
        state.hold(8, || true);
    }
}
