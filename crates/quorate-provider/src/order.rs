//! The two orders that every write set passes: apply order and commit order.
//!
//! Invariants:
//! - commit order is strict: at most one seqno is inside, and it is `last_left + 1`;
//! - apply order's `last_left` is the largest seqno such that it and everything below is released;
//!   this is what `last_committed` means, and what a reader may rely on;
//! - both are entered at most once for a seqno, and left for every seqno that was ordered;
//! - above the gate for isolated actions, none is inside, nor executed before its turn.
//!
//! Waiters sleep on one of a fixed ring of condition variables chosen by seqno, so that leaving
//! wakes the one thread whose turn it is and nothing is allocated while waiting.

use crate::blocking::{Condvar, Mutex, MutexGuard};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

const SLOTS: usize = 1024;

/// How an attempt to enter the commit order ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    Yes,
    /// Aborted by a brute-force transaction while waiting: not entered.
    Interrupted,
}

struct Slots(Box<[Condvar]>);

impl Slots {
    fn new() -> Self {
        Self((0..SLOTS).map(|_| Condvar::new()).collect())
    }

    fn of(&self, seqno: i64) -> &Condvar {
        &self.0[seqno.rem_euclid(SLOTS as i64) as usize]
    }

    fn wake_range(&self, from: i64, to: i64) {
        if to - from >= SLOTS as i64 {
            self.0.iter().for_each(|c| {
                c.notify_all();
            });
        } else {
            (from..=to).for_each(|s| {
                self.of(s).notify_all();
            });
        }
    }
}

/// Who holds commits back; each has a gate of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateKeeper {
    Pause = 0,
    Donor = 1,
}

/// Strict commit order, with gates for pausing.
pub struct CommitOrder {
    inner: Mutex<CommitInner>,
    slots: Slots,
}

struct CommitInner {
    last_left: i64,
    inside: Option<i64>,
    /// That is an isolated action, which may take its time.
    isolated: bool,
    /// Nothing above any of these may enter (`i64::MAX`: open).
    gates: [i64; 2],
    /// No isolated action above this may begin (`i64::MAX`: open).
    isolated_gate: i64,
    interrupted: HashSet<i64>,
}

impl CommitInner {
    fn is_turn_of(&self, seqno: i64) -> bool {
        self.last_left + 1 == seqno && self.gates.iter().all(|gate| seqno <= *gate)
    }

    fn let_in(&mut self, seqno: i64, isolated: bool) {
        debug_assert!(self.inside.is_none());
        self.inside = Some(seqno);
        self.isolated = isolated;
    }
}

impl CommitOrder {
    pub fn new() -> Self {
        let inner = CommitInner {
            last_left: -1,
            inside: None,
            isolated: false,
            gates: [i64::MAX; 2],
            isolated_gate: i64::MAX,
            interrupted: HashSet::new(),
        };
        Self { inner: Mutex::new(inner), slots: Slots::new() }
    }

    /// Starts (again) after `seqno`: nobody may be waiting or inside.
    pub fn set_position(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        inner.last_left = seqno;
        inner.inside = None;
        inner.interrupted.clear();
        drop(inner);
        self.slots.0.iter().for_each(|c| {
            c.notify_all();
        });
    }

    /// Blocks until every lower seqno has left. With `interruptible`, [`Self::interrupt`] ends it.
    pub fn enter(&self, seqno: i64, interruptible: bool) -> Entered {
        let mut inner = self.inner.lock();
        loop {
            if interruptible && !inner.interrupted.is_empty() && inner.interrupted.remove(&seqno) {
                return Entered::Interrupted;
            }
            if inner.is_turn_of(seqno) {
                inner.let_in(seqno, false);
                if !inner.interrupted.is_empty() {
                    inner.interrupted.remove(&seqno);
                }
                return Entered::Yes;
            }
            debug_assert!(seqno > inner.last_left, "seqno {seqno} entered commit order twice");
            self.slots.of(seqno).wait(&mut inner);
        }
    }

    /// As [`Self::enter`], for an isolated action.
    pub fn enter_isolated(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        while !inner.is_turn_of(seqno) || seqno > inner.isolated_gate {
            self.slots.of(seqno).wait(&mut inner);
        }
        inner.let_in(seqno, true);
    }

    /// Blocks until an isolated action may begin that enters only when it has run. Everything
    /// below it must be done.
    pub fn await_isolated(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        while seqno > inner.isolated_gate {
            self.slots.of(seqno).wait(&mut inner);
        }
    }

    pub fn leave(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        debug_assert_eq!(inner.inside, Some(seqno));
        inner.inside = None;
        inner.last_left = seqno;
        drop(inner);
        self.slots.of(seqno + 1).notify_all();
    }

    /// Passes through: for a seqno that commits nothing here.
    pub fn skip(&self, seqno: i64) {
        self.enter(seqno, false);
        self.leave(seqno);
    }

    /// Ends (now or when it comes) an interruptible wait of `seqno`. False if it is inside or past.
    pub fn interrupt(&self, seqno: i64) -> bool {
        let mut inner = self.inner.lock();
        if inner.inside == Some(seqno) || inner.last_left >= seqno {
            return false;
        }
        inner.interrupted.insert(seqno);
        drop(inner);
        self.slots.of(seqno).notify_all();
        true
    }

    /// Whether its commit has begun: it is inside, or has left.
    pub fn is_under_way(&self, seqno: i64) -> bool {
        let inner = self.inner.lock();
        inner.last_left >= seqno || (inner.inside == Some(seqno) && !inner.isolated)
    }

    /// Blocks until `seqno` has left.
    pub fn wait_left(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        while inner.last_left < seqno {
            self.slots.of(seqno + 1).wait(&mut inner);
        }
    }

    /// The donor's gate, and the one for isolated actions at the same place; that one stays when
    /// the other opens.
    pub fn close_gates_of_donor(&self, seqno: i64) -> i64 {
        let mut inner = self.inner.lock();
        let bound = seqno.max(inner.inside.unwrap_or(inner.last_left));
        inner.gates[GateKeeper::Donor as usize] = bound;
        inner.isolated_gate = bound;
        bound
    }

    /// Moves the gate for isolated actions up to `seqno`, if it is closed below.
    pub fn raise_isolated_gate(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        inner.isolated_gate = inner.isolated_gate.max(seqno);
        let next = inner.last_left + 1;
        drop(inner);
        self.slots.of(next).notify_all();
    }

    /// Whether what is isolated waits at or below `seqno`, or would.
    pub fn holds_isolated(&self, seqno: i64) -> bool {
        self.inner.lock().isolated_gate < seqno
    }

    pub fn open_isolated_gate(&self) {
        self.raise_isolated_gate(i64::MAX);
    }

    /// Lets nothing above `seqno` enter, or above what is already inside; returns that bound.
    pub fn close_gate(&self, keeper: GateKeeper, seqno: i64) -> i64 {
        let mut inner = self.inner.lock();
        let bound = seqno.max(inner.inside.unwrap_or(inner.last_left));
        inner.gates[keeper as usize] = bound;
        bound
    }

    pub fn open_gate(&self, keeper: GateKeeper) {
        let mut inner = self.inner.lock();
        inner.gates[keeper as usize] = i64::MAX;
        let next = inner.last_left + 1;
        drop(inner);
        self.slots.of(next).notify_all();
    }

    pub fn last_left(&self) -> i64 {
        self.inner.lock().last_left
    }
}

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
}

impl ApplyOrder {
    pub fn new() -> Self {
        Self {
            inner: Mutex::new(ApplyInner { last_left: -1, done: VecDeque::new() }),
            last_left: AtomicI64::new(-1),
            slots: Slots::new(),
        }
    }

    /// Starts (again) after `seqno`. What was released above it stays released.
    pub fn set_position(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        inner.last_left = seqno;
        inner.done.clear();
        self.last_left.store(seqno, Ordering::Release);
        drop(inner);
        self.slots.0.iter().for_each(|c| {
            c.notify_all();
        });
    }

    /// The last seqno that is visible to readers with all before it.
    pub fn last_left(&self) -> i64 {
        self.last_left.load(Ordering::Acquire)
    }

    pub fn leave(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        let before = inner.last_left;
        if seqno <= before {
            debug_assert!(false, "seqno {seqno} left apply order twice");
            return;
        }
        let offset = (seqno - before - 1) as usize;
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
    }

    /// Blocks until everything up to `seqno` is released.
    pub fn wait(&self, seqno: i64) {
        if self.last_left() >= seqno {
            return;
        }
        let mut inner = self.inner.lock();
        while inner.last_left < seqno {
            self.slots.of(seqno).wait(&mut inner);
        }
    }

    /// As [`Self::wait`]; false if `deadline` came first.
    pub fn wait_until(&self, seqno: i64, deadline: Instant) -> bool {
        if self.last_left() >= seqno {
            return true;
        }
        let mut inner: MutexGuard<'_, ApplyInner> = self.inner.lock();
        while inner.last_left < seqno {
            if self.slots.of(seqno).wait_until(&mut inner, deadline).timed_out() {
                return inner.last_left >= seqno;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn commit_order_is_strict_whatever_the_arrival() {
        let order = Arc::new(CommitOrder::new());
        order.set_position(0);
        let log = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = (1..=64)
            .rev()
            .map(|s| {
                let (order, log) = (order.clone(), log.clone());
                thread::spawn(move || {
                    assert_eq!(order.enter(s, true), Entered::Yes);
                    log.lock().push(s);
                    order.leave(s);
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*log.lock(), (1..=64).collect::<Vec<i64>>());
    }

    #[test]
    fn an_interrupted_wait_does_not_enter_and_may_enter_later() {
        let order = Arc::new(CommitOrder::new());
        order.set_position(0);
        let waiter = {
            let order = order.clone();
            thread::spawn(move || order.enter(2, true))
        };
        assert!(order.interrupt(2));
        assert_eq!(waiter.join().unwrap(), Entered::Interrupted);
        order.skip(1);
        assert!(!order.is_under_way(2));
        assert_eq!(order.enter(2, false), Entered::Yes);
        assert!(!order.interrupt(2), "inside: too late");
        order.leave(2);
    }

    #[test]
    fn a_commit_is_under_way_once_it_is_inside_and_an_isolated_action_when_it_has_left() {
        let order = CommitOrder::new();
        order.set_position(0);
        assert!(!order.is_under_way(1), "its turn, but not there");
        assert_eq!(order.enter(1, true), Entered::Yes);
        assert!(order.is_under_way(1));
        order.leave(1);
        assert!(order.is_under_way(1), "it may wait for the disk");
        order.enter_isolated(2);
        assert!(!order.is_under_way(2));
        order.leave(2);
        assert!(order.is_under_way(2));
    }

    #[test]
    fn a_closed_gate_holds_back_until_opened() {
        let order = Arc::new(CommitOrder::new());
        order.set_position(10);
        assert_eq!(order.close_gate(GateKeeper::Pause, 11), 11);
        order.skip(11);
        let waiter = {
            let order = order.clone();
            thread::spawn(move || order.skip(12))
        };
        assert_eq!(order.last_left(), 11);
        order.open_gate(GateKeeper::Pause);
        waiter.join().unwrap();
        assert_eq!(order.last_left(), 12);
    }

    #[test]
    fn an_isolated_action_waits_for_the_transfer_and_others_do_not() {
        let order = Arc::new(CommitOrder::new());
        order.set_position(10);
        assert_eq!(order.close_gates_of_donor(9), 10);
        order.open_gate(GateKeeper::Donor);
        order.skip(11);
        let (tx, rx) = std::sync::mpsc::channel();
        let isolated = {
            let order = order.clone();
            thread::spawn(move || {
                order.await_isolated(12);
                order.enter_isolated(12);
                tx.send(()).unwrap();
                order.leave(12);
                order.skip(13);
                order.enter_isolated(14);
                order.leave(14);
            })
        };
        assert!(rx.try_recv().is_err());
        order.raise_isolated_gate(12);
        rx.recv().unwrap();
        order.wait_left(13);
        assert_eq!(order.last_left(), 13, "above the raised gate");
        order.open_isolated_gate();
        isolated.join().unwrap();
        assert_eq!(order.last_left(), 14);
    }

    #[test]
    fn apply_order_advances_over_gaps_only_when_filled() {
        let order = ApplyOrder::new();
        order.set_position(5);
        order.leave(8);
        order.leave(7);
        assert_eq!(order.last_left(), 5);
        order.leave(6);
        assert_eq!(order.last_left(), 8);
        order.wait(8);
        assert!(!order.wait_until(9, Instant::now()));
    }
}
