//! Holding still: nothing is applied or committed past a point.
//!
//! Locks: the queue's is held while commit order's is taken, to choose the point; `paused` is held
//! while neither is.

use crate::blocking::{Condvar, Mutex};
use crate::local::Local;
use crate::order::GateHolder;
use crate::withdraw::Withdrawal;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

pub struct Pause {
    local: Arc<Local>,
    withdrawal: Arc<Withdrawal>,
    paused: Mutex<bool>,
    resumed: Condvar,
    /// While paused: the seqno at which everything stands still; `i64::MAX` otherwise.
    at: AtomicI64,
}

impl Pause {
    pub fn new(local: Arc<Local>, withdrawal: Arc<Withdrawal>) -> Self {
        Self {
            local,
            withdrawal,
            paused: Mutex::new(false),
            resumed: Condvar::new(),
            at: AtomicI64::new(i64::MAX),
        }
    }

    /// Stops applying and committing and returns the seqno at which everything stands still.
    /// A second pauser waits for the first to resume. Negative: the node is withdrawn.
    pub fn pause(&self) -> i64 {
        let mut paused = self.paused.lock();
        while *paused {
            self.resumed.wait(&mut paused);
        }
        *paused = true;
        drop(paused);
        // With the queue held, nothing is taken out; what was taken out or decided before is at
        // or below the sequencer's seqno, and may finish.
        let at = self.local.queue.set_gate(|| {
            let sequenced = self.local.link().map_or(-1, |l| l.progress.seqno());
            self.local
                .commit
                .close_gate(GateHolder::Pause, sequenced.max(self.local.apply.last_left()))
        });
        self.stand_still(at);
        // What holds it back may be waiting for this pause: a backup that sends the state.
        self.local.commit.raise_isolated_gate(at);
        if self.withdrawal.in_order(self.local.apply.wait(at)).is_none() {
            self.resume();
            return i64::from(-libc::EIO);
        }
        self.local.info(&format!("Provider paused at seqno {at}"));
        at
    }

    pub fn resume(&self) {
        self.local.commit.open_gate(GateHolder::Pause);
        self.local.queue.open_gate();
        self.end();
        self.local.info("Provider resumed");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Records;

    fn pause() -> Pause {
        let local = Arc::new(Local::for_tests());
        let records = Arc::new(Records::new(local.clone()));
        Pause::new(local.clone(), Arc::new(Withdrawal::new(local, records, Vec::new())))
    }

    #[test]
    fn verdicts_past_the_pause_are_told_after_it() {
        let state = Arc::new(pause());
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
        let state = Arc::new(pause());
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
