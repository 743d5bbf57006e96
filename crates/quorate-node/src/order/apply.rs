//! Apply order: which seqnos are completely done here.

use super::{Brake, Halted, Slots};
use crate::blocking::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// Apply order: which seqnos are completely done here.
pub struct ApplyOrder {
    inner: Mutex<ApplyInner>,
    last_left: AtomicI64,
    slots: Slots,
}

struct ApplyInner {
    last_left: i64,
    /// `done[i]`: seqno `last_left + 1 + i` is released, though something below it is not.
    done: VecDeque<bool>,
    brake: Brake,
}

impl ApplyOrder {
    pub fn new() -> Self {
        Self {
            inner: Mutex::new(ApplyInner {
                last_left: -1,
                done: VecDeque::new(),
                brake: Brake::default(),
            }),
            last_left: AtomicI64::new(-1),
            slots: Slots::new(),
        }
    }

    /// Starts (again) after `seqno`. What was released above it stays released.
    pub fn set_position(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        inner.last_left = seqno;
        inner.done.clear();
        inner.brake = Brake::default();
        self.last_left.store(seqno, Ordering::Release);
        drop(inner);
        self.slots.wake_all();
    }

    /// The last seqno that is visible to readers with all before it.
    pub fn last_left(&self) -> i64 {
        self.last_left.load(Ordering::Acquire)
    }

    /// Ends all waits in this order, now and later, until [`Self::set_position`].
    pub fn halt(&self, why: &str) {
        self.inner.lock().brake.pull(Halted::at(why.to_string()));
        self.slots.wake_all();
    }

    pub fn leave(&self, seqno: i64) -> Result<(), Halted> {
        let mut inner = self.inner.lock();
        inner.brake.check()?;
        let before = inner.last_left;
        let offset = usize::try_from(seqno - before - 1).ok();
        let Some(offset) = offset.filter(|at| inner.done.get(*at) != Some(&true)) else {
            let why = format!("seqno {seqno} leaves apply order twice (last left: {before})");
            let why = inner.brake.pull(Halted::at(why));
            self.slots.wake_all();
            return Err(why);
        };
        if inner.done.len() <= offset {
            inner.done.resize(offset + 1, false);
        }
        inner.done[offset] = true;
        while inner.done.front() == Some(&true) {
            inner.done.pop_front();
            inner.last_left += 1;
        }
        let after = inner.last_left;
        self.last_left.store(after, Ordering::Release);
        drop(inner);
        if after > before {
            self.slots.wake_range(before + 1, after);
        }
        Ok(())
    }

    /// Blocks until everything up to `seqno` is released.
    pub fn wait(&self, seqno: i64) -> Result<(), Halted> {
        if self.last_left() >= seqno {
            return Ok(());
        }
        let mut inner = self.inner.lock();
        while inner.last_left < seqno {
            inner.brake.check()?;
            self.slots.of(seqno).wait(&mut inner);
        }
        Ok(())
    }

    /// As [`Self::wait`]; false if `deadline` came first, or the order is halted.
    pub fn wait_until(&self, seqno: i64, deadline: Instant) -> bool {
        if self.last_left() >= seqno {
            return true;
        }
        let mut inner: MutexGuard<'_, ApplyInner> = self.inner.lock();
        while inner.last_left < seqno && inner.brake.check().is_ok() {
            if self.slots.of(seqno).wait_until(&mut inner, deadline).timed_out() {
                break;
            }
        }
        inner.last_left >= seqno
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn apply_order_advances_over_gaps_only_when_filled() {
        let order = ApplyOrder::new();
        order.set_position(5);
        order.leave(8).unwrap();
        order.leave(7).unwrap();
        assert_eq!(order.last_left(), 5);
        order.leave(6).unwrap();
        assert_eq!(order.last_left(), 8);
        order.wait(8).unwrap();
        assert!(!order.wait_until(9, Instant::now()));
    }

    #[test]
    fn a_seqno_that_is_released_twice_halts_apply_order() {
        let order = Arc::new(ApplyOrder::new());
        for twice in [6, 8] {
            order.set_position(5);
            order.leave(6).unwrap();
            order.leave(8).unwrap();
            let waiter = {
                let order = order.clone();
                thread::spawn(move || order.wait(7))
            };
            let why = order.leave(twice).unwrap_err();
            assert_eq!(waiter.join().unwrap(), Err(why.clone()));
            assert_eq!(order.leave(7), Err(why));
            assert!(!order.wait_until(7, crate::blocking::now()));
            assert_eq!(order.last_left(), 6);
        }
    }
}
