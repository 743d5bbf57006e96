//! What waits for the applier threads, in log order.
//!
//! Invariants:
//! - events leave in the order they came; nothing leaves while an exclusive one is being handled
//!   (what was taken out before may still be under way: see [`EventQueue::wait_for_others`]);
//! - write sets in memory stay below `bytes_max`. Past it only their places are kept, a few bytes each, and what
//!   they hold is read back in order, ahead of the appliers: so a lagging member's memory is bounded.

use super::event::{Event, WriteSetEvent};
use super::places::{Place, Places};
use super::read_back::ReadBack;
use crate::blocking::{Condvar, Mutex};
use bytes::Bytes;
use quorate_live::Depth;
use std::collections::VecDeque;

pub use super::read_back::Reading;

/// So many that wait are soon gone, and nothing is copied for them.
const AT_HAND: usize = 32;

pub struct EventQueue {
    inner: Mutex<Inner>,
    ready: Condvar,
    idle: Condvar,
    bytes_max: usize,
}

struct Inner {
    waiting: VecDeque<Waiting>,
    /// Events in `waiting`.
    len: usize,
    /// Those of them that are in the log only.
    in_log: usize,
    /// Of the write sets in `waiting`.
    bytes: usize,
    read_back: ReadBack,
    exclusive_busy: bool,
    /// Others that were taken out and are being handled.
    shared_busy: usize,
    /// Ordered events up to this seqno are in the database already.
    received: i64,
    /// Only [`Event::Final`] is taken in any more.
    ending: bool,
    /// Ordered events above this seqno stay (`i64::MAX`: open).
    gate: i64,
    closed: bool,
    depth: Depth,
}

/// How many events wait to be applied.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Queued {
    pub now: usize,
    /// The most that ever did.
    pub max: usize,
    /// How many another one found when it came, on average.
    pub avg: f64,
}

enum Waiting {
    Event(Event),
    /// Write sets that follow each other, in the log only.
    InLog(Places),
}

impl Waiting {
    /// Of the first in it.
    fn seqno(&self) -> Option<i64> {
        match self {
            Waiting::Event(event) => event.seqno(),
            Waiting::InLog(places) => places.first().map(|place| place.seqno),
        }
    }
}

/// What a popper got.
pub enum Popped {
    Event(Event),
    /// Entries to be read from the log first, and handed to [`EventQueue::fill`], or
    /// [`EventQueue::not_read`].
    Read(Reading),
    Closed,
}

impl EventQueue {
    pub fn new(bytes_max: usize) -> Self {
        let inner = Inner {
            waiting: VecDeque::new(),
            len: 0,
            in_log: 0,
            bytes: 0,
            read_back: ReadBack::new(bytes_max),
            exclusive_busy: false,
            shared_busy: 0,
            received: -1,
            ending: false,
            gate: i64::MAX,
            closed: true,
            depth: Depth::default(),
        };
        Self { inner: Mutex::new(inner), ready: Condvar::new(), idle: Condvar::new(), bytes_max }
    }

    /// Empties and opens it for a new connection.
    pub fn open(&self) {
        let mut inner = self.inner.lock();
        inner.clear();
        inner.exclusive_busy = false;
        inner.received = -1;
        inner.ending = false;
        inner.closed = false;
    }

    pub fn push(&self, event: Event) {
        let mut inner = self.inner.lock();
        let is_there = event.seqno().is_some_and(|seqno| seqno <= inner.received);
        if inner.closed || is_there || (inner.ending && !matches!(event, Event::Final)) {
            return;
        }
        let bytes = event.bytes();
        let no_room = inner.bytes + bytes > self.bytes_max && inner.len > 0;
        match event {
            // Whatever is behind what has to be read comes from there, too: it is not needed sooner.
            Event::WriteSet(w) if no_room || inner.in_log > 0 => inner.leave_in_log(w.place),
            event => {
                inner.bytes += bytes;
                let event = if inner.len < AT_HAND { event } else { event.detached() };
                inner.waiting.push_back(Waiting::Event(event));
            }
        }
        let found = inner.len;
        inner.depth.comes(found);
        inner.len += 1;
        drop(inner);
        self.ready.notify_one();
    }

    /// The next event. After it the taker calls [`Self::finish_exclusive`] or
    /// [`Self::finish_shared`].
    pub fn pop(&self) -> Popped {
        let mut inner = self.inner.lock();
        loop {
            if inner.closed {
                return Popped::Closed;
            }
            if !inner.exclusive_busy {
                if let Some(reading) = inner.reading_due() {
                    drop(inner);
                    // There may be an event for another one meanwhile.
                    self.ready.notify_one();
                    return Popped::Read(reading);
                }
                if let Some(event) = inner.take() {
                    inner.exclusive_busy = event.exclusive();
                    inner.shared_busy += usize::from(!event.exclusive());
                    return Popped::Event(event);
                }
            }
            self.ready.wait(&mut inner);
        }
    }

    /// What a reading found: the entries from its first one on.
    pub fn fill(&self, reading: Reading, read: Vec<Bytes>) {
        self.inner.lock().read_back.fill(reading, read);
        self.ready.notify_all();
    }

    /// A reading failed. False if what it was for is not needed any more.
    pub fn not_read(&self, reading: Reading) -> bool {
        let mut inner = self.inner.lock();
        let waits = inner.first_in_log().is_some_and(|(first, _)| first <= reading.from);
        let needed = inner.read_back.gave_up(reading) && waits;
        drop(inner);
        self.ready.notify_all();
        needed
    }

    pub fn finish_exclusive(&self) {
        self.inner.lock().exclusive_busy = false;
        self.ready.notify_all();
    }

    /// After an event that is not exclusive.
    pub fn finish_shared(&self) {
        let mut inner = self.inner.lock();
        inner.shared_busy -= 1;
        if inner.shared_busy == 0 {
            self.idle.notify_all();
        }
    }

    /// For the taker of an exclusive event: blocks until all that was taken before is done.
    pub fn wait_for_others(&self) {
        let mut inner = self.inner.lock();
        while inner.shared_busy > 0 {
            self.idle.wait(&mut inner);
        }
    }

    /// Drops ordered events up to `seqno`: a state transfer brought them. The log may be heard of later
    /// than the state: what of them is still to come is dropped, too.
    pub fn discard_upto(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        inner.received = seqno;
        inner.discard_upto(seqno);
    }

    /// Drops everything but the last event, now and until the next [`Self::open`].
    pub fn leave_only_the_end(&self) {
        let mut inner = self.inner.lock();
        inner.ending = true;
        let end =
            inner.waiting.iter().any(|waiting| matches!(waiting, Waiting::Event(Event::Final)));
        inner.clear();
        if end {
            inner.waiting.push_back(Waiting::Event(Event::Final));
            inner.len = 1;
        }
        drop(inner);
        self.ready.notify_all();
    }

    /// Ends all pops, now and later, until the next [`Self::open`].
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.ready.notify_all();
    }

    pub fn set_gate(&self, choose: impl FnOnce() -> i64) -> i64 {
        let mut inner = self.inner.lock();
        inner.gate = choose();
        inner.gate
    }

    pub fn open_gate(&self) {
        self.inner.lock().gate = i64::MAX;
        self.ready.notify_all();
    }

    /// Log index of the first write set that waits; the appliers read it from there on.
    pub fn first_index(&self) -> Option<u64> {
        self.inner.lock().waiting.iter().find_map(|waiting| match waiting {
            Waiting::Event(Event::WriteSet(w)) => Some(w.place.index),
            Waiting::Event(_) => None,
            Waiting::InLog(places) => places.first().map(|place| place.index),
        })
    }

    pub fn len(&self) -> usize {
        self.inner.lock().len
    }

    pub fn queued(&self) -> Queued {
        let inner = self.inner.lock();
        Queued { now: inner.len, max: inner.depth.max(), avg: inner.depth.avg() }
    }
}

impl Inner {
    fn clear(&mut self) {
        self.waiting.clear();
        (self.len, self.in_log, self.bytes) = (0, 0, 0);
        self.read_back.clear();
    }

    fn leave_in_log(&mut self, place: Place) {
        self.in_log += 1;
        match self.waiting.back_mut() {
            Some(Waiting::InLog(places)) => places.push(place),
            _ => self.waiting.push_back(Waiting::InLog(Places::new(place))),
        }
    }

    /// If a write set is next that is in the log only: its index, and that of the last of those behind it
    /// without another event between.
    fn first_in_log(&self) -> Option<(u64, u64)> {
        match self.waiting.front()? {
            Waiting::InLog(places) => Some((places.first()?.index, places.last_index())),
            Waiting::Event(_) => None,
        }
    }

    fn reading_due(&mut self) -> Option<Reading> {
        let (first, last) = self.first_in_log()?;
        self.read_back.due(first, last)
    }

    /// The next event, if it may be taken, and is in memory.
    fn take(&mut self) -> Option<Event> {
        let front = self.waiting.front()?;
        let waits = match front {
            Waiting::Event(event) if event.changes_state() => {
                let next = self.waiting.iter().find_map(Waiting::seqno);
                self.gate < i64::MAX && next.is_none_or(|seqno| seqno > self.gate)
            }
            front => front.seqno().is_some_and(|seqno| seqno > self.gate),
        };
        if waits {
            return None;
        }
        let in_log = match front {
            Waiting::Event(_) => None,
            Waiting::InLog(places) => Some(places.first()?.index),
        };
        let event = match in_log {
            Some(index) => {
                let entry = self.read_back.take(index)?;
                Event::WriteSet(WriteSetEvent { place: self.pop_place()?, entry })
            }
            None => {
                let Some(Waiting::Event(event)) = self.waiting.pop_front() else { return None };
                self.bytes -= event.bytes();
                event
            }
        };
        self.len -= 1;
        Some(event)
    }

    /// Takes out the first of the places in front.
    fn pop_place(&mut self) -> Option<Place> {
        let Some(Waiting::InLog(places)) = self.waiting.front_mut() else { return None };
        let place = places.pop()?;
        self.in_log -= 1;
        if places.first().is_none() {
            self.waiting.pop_front();
        }
        Some(place)
    }

    fn discard_upto(&mut self, seqno: i64) {
        let (mut len, mut in_log, mut bytes) = (0, 0, 0);
        self.waiting.retain_mut(|waiting| match waiting {
            Waiting::Event(event) => {
                let stays = event.seqno().is_none_or(|s| s > seqno);
                len += usize::from(stays);
                bytes += if stays { event.bytes() } else { 0 };
                stays
            }
            Waiting::InLog(places) => {
                places.discard_upto(seqno);
                len += places.len();
                in_log += places.len();
                places.first().is_some()
            }
        });
        (self.len, self.in_log, self.bytes) = (len, in_log, bytes);
    }
}

#[cfg(test)]
mod tests;
