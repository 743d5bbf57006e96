//! The machine behind its lock. Nothing else in this crate can reach it.
//!
//! There is no thread of its own: whichever thread has an event locks the machine, steps it and carries
//! its output out; packets are put into outboxes under the lock and written after it is released.
//!
//! Invariants:
//! - whoever held the machine drains what others handed in while they found it taken, before and after
//!   it lets go ([`Core::with`] is the only way to it): so nothing handed in waits for the next event;
//! - a panic while the machine is stepped, or its output carried out, on whatever thread, is the end of
//!   this member: nothing of the half-made output leaves, and nothing after it.
//!
//! Lock order: the machine → (an outbox | intake | gate | notices | answers | jobs of a thread); a
//! peer's writer before its outbox. No two others are held together.

mod alone;
mod answers;
mod arriving;
mod asks;
mod carry;
mod gate;
mod hands;
mod links;
pub(crate) mod mark;
mod notices;
mod snapshots;

pub(crate) use alone::Alone;
pub(crate) use answers::Answers;
pub(crate) use arriving::Arriving;
pub(crate) use asks::Asks;
pub(crate) use gate::{Gate, Next};
pub(crate) use hands::{Hands, StartSender};
pub(crate) use notices::Notices;
pub(crate) use snapshots::{Job, SnapshotError, Snapshots};

use crate::net::peer::Peer;
use bytes::Bytes;
use carry::carry_out;
use links::Links;
use parking_lot::{Mutex, MutexGuard};
use quorate_consensus::{EntryKind, Index, MemberId, Proposal};
use quorate_group::{EventKind, Input, Intake, Mandate, Member, Order, Output};
use quorate_wire::Standing;
use std::sync::atomic::{fence, AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::Thread;

pub(crate) struct Core {
    hands: Arc<Hands>,
    machine: Mutex<Locked>,
    /// What other threads hand in.
    intake: Mutex<Intake>,
    /// Something is in the intake that somebody waits for.
    fresh: AtomicBool,
    /// Something is in the intake that nobody waits for: no reason to take the machine.
    unhurried: AtomicBool,
}

struct Locked {
    machine: Member,
    out: Output,
    links: Links,
    /// How far entries may be read, if that has moved.
    feed: Option<Index>,
    /// Who waits for nothing any more.
    answered: Vec<Thread>,
    batch: Intake,
}

impl Core {
    /// `out` is what the machine wanted done so far.
    pub fn new(hands: Arc<Hands>, machine: Member, out: Output) -> Self {
        let (links, batch) = (Links::default(), Intake::default());
        let locked = Locked { machine, out, links, feed: None, answered: Vec::new(), batch };
        Self {
            hands,
            machine: Mutex::new(locked),
            intake: Mutex::default(),
            fresh: AtomicBool::new(false),
            unhurried: AtomicBool::new(false),
        }
    }

    /// Locks the machine, runs `work` at the present time, and carries out what that caused.
    pub fn with<T>(&self, work: impl FnOnce(&mut Member, u64, &mut Output) -> T) -> T {
        self.with_links(|locked| self.carried_out(locked, work))
    }

    pub fn step(&self, input: Input) {
        self.with(|machine, now_ms, out| machine.step(now_ms, input, out));
    }

    pub fn hands(&self) -> &Hands {
        &self.hands
    }

    /// As [`Core::with`], but wakes nobody to feed what is committed by that: `feed` sees to it, without the machine.
    pub fn with_feeding(
        &self,
        work: impl FnOnce(&mut Member, u64, &mut Output),
        feed: impl FnOnce(),
    ) {
        let mut held = self.hold(self.machine.lock());
        self.carried_out(&mut held.locked, work);
        self.let_go(held, Feeds::Caller);
        feed();
        // The look that is due after letting go comes only now: if it came before, and found something, the feeder would
        // have to be woken, for nothing where `feed` finds all of it brief. It comes whatever `feed` found. Nothing is
        // lost by that: who handed in before the machine was let go of has set the flag by now (see `is_fresh`),
        // and who did after that found it free, or with a thread that takes its own look after letting go.
        if self.is_fresh() {
            self.kick();
        }
    }

    fn carried_out<T>(
        &self,
        locked: &mut Locked,
        work: impl FnOnce(&mut Member, u64, &mut Output) -> T,
    ) -> T {
        let result = work(&mut locked.machine, self.hands.now_ms(), &mut locked.out);
        carry_out(locked, &self.hands);
        result
    }

    /// The connections with this peer.
    pub fn peer(&self, id: MemberId) -> Option<Arc<Peer>> {
        self.with_links(|locked| locked.links.get(id))
    }

    /// Ends the connections that this member dialled; they are dialled again.
    pub fn break_links(&self) {
        self.with_links(|locked| locked.links.break_all());
    }

    /// Ends all connections, for good.
    pub fn close_links(&self) {
        self.with_links(|locked| locked.links.close());
    }

    fn with_links<T>(&self, work: impl FnOnce(&mut Locked) -> T) -> T {
        let mut held = self.hold(self.machine.lock());
        let result = work(&mut held.locked);
        self.finish(held);
        result
    }

    fn hold<'a>(&'a self, locked: MutexGuard<'a, Locked>) -> Held<'a> {
        Held { locked, hands: &self.hands, whole: false }
    }

    /// Queues a proposal, and sends it, unless another thread holds the machine: that one looks again
    /// when it lets go. Where others are about to propose, too, one of them sends all.
    pub fn propose(&self, serial: u64, data: Bytes) {
        let proposal = Proposal::new(EntryKind::Data, data);
        self.intake.lock().push(serial, proposal);
        self.set_fresh();
        self.hands.wal.give_way();
        if self.is_fresh() {
            self.kick();
        }
    }

    /// Nobody waits for this to be taken in: whoever holds the machine next does it.
    pub fn decided(&self, serial: u64) {
        self.intake.lock().decided(serial);
        self.unhurried.store(true, Ordering::Relaxed);
    }

    pub fn order(&self, id: u64, order: Order, deadline_ms: u64, mandate: Option<Mandate>) {
        let mut intake = self.intake.lock();
        match mandate {
            Some(mandate) => intake.order_by(id, order, deadline_ms, mandate),
            None => intake.order(id, order, deadline_ms),
        }
        drop(intake);
        self.set_fresh();
        self.kick();
    }

    /// How the host's server stands now.
    pub fn stands(&self, standing: Standing) {
        self.intake.lock().standing(standing);
        self.set_fresh();
        self.kick();
    }

    pub fn event(&self, kind: EventKind, what: String) {
        self.intake.lock().event(kind, what);
        self.set_fresh();
        self.kick();
    }

    /// There is room (again) in the outbox of the leader.
    fn room(&self, peer: MemberId) {
        self.intake.lock().room(peer);
        self.set_fresh();
    }

    /// Takes in what waits, unless another thread holds the machine.
    pub fn kick(&self) {
        if let Some(locked) = self.machine.try_lock() {
            self.finish(self.hold(locked));
        }
    }

    /// Releases the machine, and takes care of what other threads handed in while they found the lock taken.
    fn finish<'a>(&'a self, mut held: Held<'a>) {
        loop {
            self.let_go(held, Feeds::Feeder);
            if !self.is_fresh() {
                return;
            }
            match self.machine.try_lock() {
                Some(locked) => held = self.hold(locked),
                None => return,
            }
        }
    }

    /// Releases the machine, has what is committed fed, and writes to the peers. What other threads hand in meanwhile is
    /// the caller's to look for.
    fn let_go(&self, mut held: Held<'_>, feeds: Feeds) {
        self.drain(&mut held);
        let (committed, touched) = (held.locked.feed.take(), held.locked.links.take_touched());
        let answered = std::mem::take(&mut held.locked.answered);
        held.whole = true;
        drop(held);
        answered.iter().for_each(Thread::unpark);
        if let Some(index) = committed {
            self.hands.gate.open(index);
            if feeds == Feeds::Feeder {
                self.hands.gate.wake();
            }
        }
        touched.iter().for_each(|peer| self.flush(peer));
    }

    /// Writes what a thread with other things to do can write in passing.
    fn flush(&self, peer: &Peer) {
        if peer.flush() {
            self.room(peer.id);
        }
    }

    /// Writes everything that waits for this peer. For its sender thread.
    pub fn flush_waiting(&self, peer: &Peer) {
        if peer.flush_waiting() {
            self.room(peer.id);
            self.kick();
        }
    }

    fn drain(&self, held: &mut Held<'_>) {
        while self.take_flags() {
            let locked = &mut *held.locked;
            self.intake.lock().hand_over(&mut locked.batch);
            locked.machine.take_in(self.hands.now_ms(), &mut locked.batch, &mut locked.out);
            carry_out(locked, &self.hands);
        }
    }

    /// Whether anything is in the intake.
    fn take_flags(&self) -> bool {
        let take =
            |flag: &AtomicBool| flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::SeqCst);
        // Both: what there is is taken in at once.
        take(&self.fresh) | take(&self.unhurried)
    }

    /// For the thread that has just let go of the machine. The fences here and in `set_fresh` order
    /// the flag against that lock: either who handed in finds the lock free afterwards, or the holder
    /// finds the flag set after letting go.
    fn is_fresh(&self) -> bool {
        fence(Ordering::SeqCst);
        self.fresh.load(Ordering::Relaxed)
    }

    /// As a thread does that finds the machine taken.
    #[cfg(test)]
    pub(crate) fn hand_in(&self, serial: u64) {
        let proposal = Proposal::new(EntryKind::Data, Bytes::from_static(b"x"));
        self.intake.lock().push(serial, proposal);
        self.set_fresh();
    }

    fn set_fresh(&self) {
        self.fresh.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
}

/// Who has what is committed fed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Feeds {
    /// The feeder's thread, which is woken.
    Feeder,
    /// Whoever has called, when it is done.
    Caller,
}

/// The machine, held by this thread.
struct Held<'a> {
    locked: MutexGuard<'a, Locked>,
    hands: &'a Hands,
    /// Nothing was left half-done.
    whole: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.whole {
            self.locked.machine.mark_broken();
            self.locked.out.clear();
            self.locked.feed = None;
            self.locked.links.break_all();
            self.hands.stepped_half();
        }
    }
}
