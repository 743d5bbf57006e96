//! Standing still: nothing past a point is applied or committed, by who asked for it, until that one ends it.

use crate::blocking::{Condvar, Mutex};
use std::sync::atomic::{AtomicI64, Ordering};

pub struct Still {
    taken: Mutex<bool>,
    ended: Condvar,
    /// The seqno at which everything stands still; `i64::MAX`: it does not.
    at: AtomicI64,
}

impl Default for Still {
    fn default() -> Self {
        Self { taken: Mutex::new(false), ended: Condvar::new(), at: AtomicI64::new(i64::MAX) }
    }
}

impl Still {
    /// One at a time: another one waits until it has ended.
    pub fn begin(&self) {
        let mut taken = self.taken.lock();
        while *taken {
            self.ended.wait(&mut taken);
        }
        *taken = true;
    }

    /// From here on.
    pub fn stand(&self, at: i64) {
        self.at.store(at, Ordering::Release);
    }

    /// Without effect if it is not begun.
    pub fn end(&self) {
        let mut taken = self.taken.lock();
        *taken = false;
        self.at.store(i64::MAX, Ordering::Release);
        drop(taken);
        self.ended.notify_all();
    }

    /// Somebody has begun it.
    pub fn is_begun(&self) -> bool {
        *self.taken.lock()
    }

    /// Blocks while everything stands still below `seqno`, unless the waiter is `let_go`.
    pub fn hold(&self, seqno: i64, let_go: impl Fn() -> bool) {
        if seqno <= self.at.load(Ordering::Acquire) {
            return;
        }
        let mut taken = self.taken.lock();
        while seqno > self.at.load(Ordering::Acquire) && !let_go() {
            self.ended.wait(&mut taken);
        }
    }

    /// Who is held looks whether it is let go.
    pub fn look_again(&self) {
        if self.at.load(Ordering::Acquire) != i64::MAX {
            let _taken = self.taken.lock();
            self.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::Arc;

    #[test]
    fn verdicts_past_it_are_told_after_it() {
        let still = Arc::new(Still::default());
        still.begin();
        still.stand(7);
        still.hold(7, || false);
        let waiter = {
            let still = still.clone();
            std::thread::spawn(move || still.hold(8, || false))
        };
        assert!(!waiter.is_finished() && still.is_begun());
        still.end();
        waiter.join().unwrap();
        assert!(!still.is_begun());
    }

    #[test]
    fn who_is_aborted_is_not_held_by_the_pause_that_waits_for_its_locks() {
        let still = Arc::new(Still::default());
        let aborted = Arc::new(AtomicBool::new(false));
        still.stand(7);
        let waiter = {
            let (still, aborted) = (still.clone(), aborted.clone());
            std::thread::spawn(move || still.hold(8, || aborted.load(Ordering::Acquire)))
        };
        assert!(!waiter.is_finished());
        aborted.store(true, Ordering::Release);
        still.look_again();
        waiter.join().unwrap();
        still.hold(8, || true);
    }
}
