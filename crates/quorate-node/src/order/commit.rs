//! Strict commit order, with gates for pausing.

use super::{Brake, Halted, Slots};
use crate::blocking::Mutex;
use std::collections::{BTreeSet, HashSet};

/// How an attempt to enter the commit order ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    Yes,
    /// Aborted by a transaction with priority while waiting: not entered.
    Interrupted,
}

/// Who holds commits back; each has a gate of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateHolder {
    Pause = 0,
    Donor = 1,
}

/// One seqno at a time is inside; see the room's head.
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
    /// Isolated actions that are ordered and may not have run.
    isolated_ahead: BTreeSet<i64>,
    interrupted: HashSet<i64>,
    brake: Brake,
}

impl CommitInner {
    fn is_turn_of(&self, seqno: i64) -> bool {
        self.last_left + 1 == seqno && self.gates.iter().all(|gate| seqno <= *gate)
    }

    /// Whether `seqno` may still come in: neither inside nor past.
    fn check(&self, seqno: i64) -> Result<(), Halted> {
        self.brake.check()?;
        if seqno <= self.last_left || self.inside == Some(seqno) {
            let last = self.last_left;
            let why = format!("seqno {seqno} enters commit order twice (last left: {last})");
            return Err(Halted::at(why));
        }
        Ok(())
    }

    fn let_in(&mut self, seqno: i64, isolated: bool) {
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
            isolated_ahead: BTreeSet::new(),
            interrupted: HashSet::new(),
            brake: Brake::default(),
        };
        Self { inner: Mutex::new(inner), slots: Slots::new() }
    }

    /// Starts (again) after `seqno`: nobody may be waiting or inside.
    pub fn set_position(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        inner.last_left = seqno;
        inner.inside = None;
        inner.interrupted.clear();
        inner.brake = Brake::default();
        drop(inner);
        self.slots.wake_all();
    }

    /// Ends all waits in this order, now and later, until [`Self::set_position`].
    pub fn halt(&self, why: &str) {
        self.pull(&mut self.inner.lock(), Halted::at(why.to_string()));
    }

    fn pull(&self, inner: &mut CommitInner, why: Halted) -> Halted {
        let why = inner.brake.pull(why);
        self.slots.wake_all();
        why
    }

    /// Blocks until every lower seqno has left. With `interruptible`, [`Self::interrupt`] ends it.
    pub fn enter(&self, seqno: i64, interruptible: bool) -> Result<Entered, Halted> {
        let mut inner = self.inner.lock();
        loop {
            if interruptible && !inner.interrupted.is_empty() && inner.interrupted.remove(&seqno) {
                return Ok(Entered::Interrupted);
            }
            inner.check(seqno).map_err(|why| self.pull(&mut inner, why))?;
            if inner.is_turn_of(seqno) {
                inner.let_in(seqno, false);
                if !inner.interrupted.is_empty() {
                    inner.interrupted.remove(&seqno);
                }
                return Ok(Entered::Yes);
            }
            self.slots.of(seqno).wait(&mut inner);
        }
    }

    /// As [`Self::enter`], for an isolated action.
    pub fn enter_isolated(&self, seqno: i64) -> Result<(), Halted> {
        let mut inner = self.inner.lock();
        loop {
            inner.check(seqno).map_err(|why| self.pull(&mut inner, why))?;
            if inner.is_turn_of(seqno) && seqno <= inner.isolated_gate {
                inner.let_in(seqno, true);
                return Ok(());
            }
            self.slots.of(seqno).wait(&mut inner);
        }
    }

    /// Blocks until an isolated action may begin that enters only when it has run. Everything
    /// below it must be done.
    pub fn await_isolated(&self, seqno: i64) -> Result<(), Halted> {
        let mut inner = self.inner.lock();
        loop {
            inner.brake.check()?;
            if seqno <= inner.isolated_gate {
                return Ok(());
            }
            self.slots.of(seqno).wait(&mut inner);
        }
    }

    pub fn leave(&self, seqno: i64) -> Result<(), Halted> {
        let mut inner = self.inner.lock();
        inner.brake.check()?;
        if inner.inside != Some(seqno) {
            let inside =
                inner.inside.map_or("nothing".to_owned(), |seqno| format!("seqno {seqno}"));
            let why = format!("seqno {seqno} leaves commit order, but {inside} is inside (a bug)");
            return Err(self.pull(&mut inner, Halted::at(why)));
        }
        inner.inside = None;
        inner.last_left = seqno;
        drop(inner);
        self.slots.of(seqno + 1).notify_all();
        Ok(())
    }

    /// Passes through: for a seqno that commits nothing here.
    pub fn skip(&self, seqno: i64) -> Result<(), Halted> {
        self.enter(seqno, false)?;
        self.leave(seqno)
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

    /// The last one whose commit has begun: it is inside, or has left.
    pub fn last_under_way(&self) -> i64 {
        let inner = self.inner.lock();
        inner.inside.filter(|_| !inner.isolated).unwrap_or(inner.last_left)
    }

    /// Blocks until `seqno` has left.
    pub fn wait_left(&self, seqno: i64) -> Result<(), Halted> {
        let mut inner = self.inner.lock();
        while inner.last_left < seqno {
            inner.brake.check()?;
            self.slots.of(seqno + 1).wait(&mut inner);
        }
        Ok(())
    }

    /// The donor's gate, and the one for isolated actions at the same place; that one stays when
    /// the other opens.
    pub fn close_gates_of_donor(&self, seqno: i64) -> i64 {
        let mut inner = self.inner.lock();
        let bound = seqno.max(inner.inside.unwrap_or(inner.last_left));
        inner.gates[GateHolder::Donor as usize] = bound;
        // A pause waits for all up to its own place; its holder may be the one that sends the state.
        let paused = inner.gates[GateHolder::Pause as usize];
        inner.isolated_gate = if paused == i64::MAX { bound } else { bound.max(paused) };
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

    /// An isolated action has been given its place in the order.
    pub fn note_isolated(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        let next = inner.last_left + 1;
        inner.isolated_ahead = inner.isolated_ahead.split_off(&next);
        inner.isolated_ahead.insert(seqno);
    }

    /// Whether an isolated action waits at or below `seqno` for the gate, or will: so that `seqno` does
    /// not pass before it opens.
    pub fn holds_isolated(&self, seqno: i64) -> bool {
        let inner = self.inner.lock();
        let held = inner.isolated_gate.saturating_add(1);
        held <= seqno && inner.isolated_ahead.range(held..=seqno).next().is_some()
    }

    pub fn open_isolated_gate(&self) {
        self.raise_isolated_gate(i64::MAX);
    }

    /// Lets nothing above `seqno` enter, or above what is already inside; returns that bound.
    pub fn close_gate(&self, holder: GateHolder, seqno: i64) -> i64 {
        let mut inner = self.inner.lock();
        let bound = seqno.max(inner.inside.unwrap_or(inner.last_left));
        inner.gates[holder as usize] = bound;
        bound
    }

    pub fn open_gate(&self, holder: GateHolder) {
        let mut inner = self.inner.lock();
        inner.gates[holder as usize] = i64::MAX;
        let next = inner.last_left + 1;
        drop(inner);
        self.slots.of(next).notify_all();
    }

    pub fn last_left(&self) -> i64 {
        self.inner.lock().last_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn only_what_is_behind_an_isolated_action_is_held_with_it() {
        let order = CommitOrder::new();
        order.set_position(4);
        order.close_gates_of_donor(5);
        assert!(!order.holds_isolated(9), "write sets go on");
        order.note_isolated(5);
        order.note_isolated(8);
        let held: Vec<bool> = (5..10).map(|seqno| order.holds_isolated(seqno)).collect();
        assert_eq!(held, [false, false, false, true, true]);
        order.open_isolated_gate();
        assert!(!order.holds_isolated(8));
    }

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
                    assert_eq!(order.enter(s, true), Ok(Entered::Yes));
                    log.lock().push(s);
                    order.leave(s).unwrap();
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
        assert_eq!(waiter.join().unwrap(), Ok(Entered::Interrupted));
        order.skip(1).unwrap();
        assert_eq!(order.last_under_way(), 1);
        assert_eq!(order.enter(2, false), Ok(Entered::Yes));
        assert!(!order.interrupt(2), "inside: too late");
        order.leave(2).unwrap();
    }

    #[test]
    fn a_commit_is_under_way_once_it_is_inside_and_an_isolated_action_when_it_has_left() {
        let order = CommitOrder::new();
        order.set_position(0);
        assert_eq!(order.last_under_way(), 0, "its turn, but not there");
        assert_eq!(order.enter(1, true), Ok(Entered::Yes));
        assert_eq!(order.last_under_way(), 1);
        order.leave(1).unwrap();
        assert_eq!(order.last_under_way(), 1, "it may wait for the disk");
        order.enter_isolated(2).unwrap();
        assert_eq!(order.last_under_way(), 1);
        order.leave(2).unwrap();
        assert_eq!(order.last_under_way(), 2);
    }

    #[test]
    fn a_closed_gate_holds_back_until_opened() {
        let order = Arc::new(CommitOrder::new());
        order.set_position(10);
        assert_eq!(order.close_gate(GateHolder::Pause, 11), 11);
        order.skip(11).unwrap();
        let waiter = {
            let order = order.clone();
            thread::spawn(move || order.skip(12).unwrap())
        };
        assert_eq!(order.last_left(), 11);
        order.open_gate(GateHolder::Pause);
        waiter.join().unwrap();
        assert_eq!(order.last_left(), 12);
    }

    #[test]
    fn an_isolated_action_waits_for_the_transfer_and_others_do_not() {
        let order = Arc::new(CommitOrder::new());
        order.set_position(10);
        assert_eq!(order.close_gates_of_donor(9), 10);
        order.open_gate(GateHolder::Donor);
        order.skip(11).unwrap();
        let (tx, rx) = std::sync::mpsc::channel();
        let isolated = {
            let order = order.clone();
            thread::spawn(move || {
                order.await_isolated(12).unwrap();
                order.enter_isolated(12).unwrap();
                tx.send(()).unwrap();
                order.leave(12).unwrap();
                order.skip(13).unwrap();
                order.enter_isolated(14).unwrap();
                order.leave(14).unwrap();
            })
        };
        assert!(rx.try_recv().is_err());
        order.raise_isolated_gate(12);
        rx.recv().unwrap();
        order.wait_left(13).unwrap();
        assert_eq!(order.last_left(), 13, "above the raised gate");
        order.open_isolated_gate();
        isolated.join().unwrap();
        assert_eq!(order.last_left(), 14);
    }

    /// Its holder may be the one that sends the state.
    #[test]
    fn a_donor_holds_no_ddl_that_a_pause_waits_for() {
        let order = CommitOrder::new();
        order.set_position(4);
        order.note_isolated(8);
        assert_eq!(order.close_gates_of_donor(5), 5);
        assert!(order.holds_isolated(9));
        order.open_isolated_gate();
        order.close_gate(GateHolder::Pause, 9);
        assert_eq!(order.close_gates_of_donor(5), 5);
        assert!(!order.holds_isolated(9));
        order.open_gate(GateHolder::Pause);
        order.close_gates_of_donor(5);
        assert!(order.holds_isolated(9), "the pause is over");
    }

    #[test]
    fn a_seqno_that_comes_twice_halts_the_order_and_all_who_wait_in_it() {
        let order = Arc::new(CommitOrder::new());
        order.set_position(0);
        order.skip(1).unwrap();
        order.enter(2, true).unwrap();
        let waiters: Vec<_> = (3..6)
            .map(|seqno| {
                let order = order.clone();
                thread::spawn(move || match seqno {
                    3 => order.enter(seqno, true).map(|_| ()),
                    4 => order.enter_isolated(seqno),
                    _ => order.wait_left(seqno),
                })
            })
            .collect();
        let why = order.leave(1).unwrap_err();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Err(why.clone()));
        }
        assert_eq!(order.leave(2), Err(why.clone()), "it stays halted");
        assert_eq!(order.last_left(), 1);
        for again in [1, 2] {
            order.set_position(0);
            order.skip(1).unwrap();
            order.enter(2, true).unwrap();
            assert!(order.enter(again, false).is_err(), "past, or inside");
        }
        order.set_position(7);
        order.skip(8).unwrap();
    }
}
