//! What waits for the applier threads, in log order.
//!
//! Invariants:
//! - events leave in the order they came; nothing leaves while an exclusive one is being handled
//!   (what was taken out before may still be under way: see [`EventQueue::wait_for_others`]);
//! - payloads in memory stay below `bytes_max`; past it an event keeps only its place in the log,
//!   and its payload is read back when its turn comes, so a lagging member's memory is bounded.

use crate::blocking::{Condvar, Mutex};
use bytes::Bytes;
use quorate_certify::flags;
use quorate_live::View;
use std::collections::VecDeque;

/// Flags of a write set that only advances the position.
pub const DUMMY: u32 = flags::TRX_START | flags::TRX_END | flags::ROLLBACK;

/// A write set to apply (or to record as failed).
#[derive(Clone, Debug)]
pub struct WriteSetEvent {
    pub index: u64,
    pub seqno: i64,
    pub depends_on: i64,
    /// As the server is to see them.
    pub flags: u32,
    pub certified: bool,
    /// The whole log entry; `None` when it has to be read back.
    pub entry: Option<Bytes>,
}

#[derive(Clone, Debug)]
pub enum Event {
    /// Introduce the server to the group: the first event of each connection.
    Connect,
    WriteSet(WriteSetEvent),
    /// A primary view; `mine` if this member (this process) is in it.
    View {
        seqno: i64,
        view: View,
        mine: bool,
    },
    /// Contact with the quorum was lost.
    NonPrimary,
    /// This member is to send its state to another.
    Donate {
        /// Everything up to here must be applied first.
        seqno: i64,
        request: Bytes,
        joiner: u128,
    },
    /// Others vote on an error at this seqno: say how it went here, once it is past.
    Vote {
        seqno: i64,
    },
    /// This member has nothing more to catch up with.
    Synced,
    /// The connection ends: the last event.
    Final,
}

impl Event {
    pub fn exclusive(&self) -> bool {
        !matches!(self, Event::WriteSet(_) | Event::Vote { .. })
    }

    /// The place in the total order that this event fills.
    fn seqno(&self) -> Option<i64> {
        match self {
            Event::WriteSet(w) => Some(w.seqno),
            Event::View { seqno, .. } => Some(*seqno),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Event::WriteSet(w) => w.entry.as_ref().map_or(0, Bytes::len),
            _ => 0,
        }
    }
}

pub struct EventQueue {
    inner: Mutex<Inner>,
    ready: Condvar,
    idle: Condvar,
    bytes_max: usize,
}

struct Inner {
    events: VecDeque<Event>,
    bytes: usize,
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
    longest: usize,
}

/// What a popper got.
pub enum Popped {
    Event(Event),
    Closed,
}

impl EventQueue {
    pub fn new(bytes_max: usize) -> Self {
        let inner = Inner {
            events: VecDeque::new(),
            bytes: 0,
            exclusive_busy: false,
            shared_busy: 0,
            received: -1,
            ending: false,
            gate: i64::MAX,
            closed: true,
            longest: 0,
        };
        Self { inner: Mutex::new(inner), ready: Condvar::new(), idle: Condvar::new(), bytes_max }
    }

    /// Empties and opens it for a new connection.
    pub fn open(&self) {
        let mut inner = self.inner.lock();
        inner.events.clear();
        inner.bytes = 0;
        inner.exclusive_busy = false;
        inner.received = -1;
        inner.ending = false;
        inner.closed = false;
    }

    pub fn push(&self, mut event: Event) {
        let mut inner = self.inner.lock();
        let is_there = event.seqno().is_some_and(|seqno| seqno <= inner.received);
        if inner.closed || is_there || (inner.ending && !matches!(event, Event::Final)) {
            return;
        }
        let bytes = event.bytes();
        if inner.bytes + bytes > self.bytes_max && !inner.events.is_empty() {
            if let Event::WriteSet(w) = &mut event {
                w.entry = None;
            }
        } else {
            inner.bytes += bytes;
        }
        inner.events.push_back(event);
        inner.longest = inner.longest.max(inner.events.len());
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
            let takeable = !inner.exclusive_busy
                && inner.events.front().is_some_and(|e| e.seqno().is_none_or(|s| s <= inner.gate));
            if takeable {
                if let Some(event) = inner.events.pop_front() {
                    inner.bytes -= event.bytes();
                    inner.exclusive_busy = event.exclusive();
                    inner.shared_busy += usize::from(!event.exclusive());
                    let more = !inner.exclusive_busy && !inner.events.is_empty();
                    drop(inner);
                    if more {
                        self.ready.notify_one();
                    }
                    return Popped::Event(event);
                }
            }
            self.ready.wait(&mut inner);
        }
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
        inner.events.retain(|e| e.seqno().is_none_or(|s| s > seqno));
        inner.bytes = inner.events.iter().map(Event::bytes).sum();
    }

    /// Drops everything but the last event, now and until the next [`Self::open`].
    pub fn leave_only_the_end(&self) {
        let mut inner = self.inner.lock();
        inner.ending = true;
        inner.events.retain(|event| matches!(event, Event::Final));
        inner.bytes = 0;
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
        self.inner.lock().events.iter().find_map(|e| match e {
            Event::WriteSet(w) => Some(w.index),
            _ => None,
        })
    }

    pub fn len(&self) -> usize {
        self.inner.lock().events.len()
    }

    pub fn longest(&self) -> usize {
        self.inner.lock().longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_set(seqno: i64, bytes: usize) -> Event {
        Event::WriteSet(WriteSetEvent {
            index: seqno as u64,
            seqno,
            depends_on: 0,
            flags: 0,
            certified: true,
            entry: Some(Bytes::from(vec![0; bytes])),
        })
    }

    fn take(queue: &EventQueue) -> Event {
        match queue.pop() {
            Popped::Event(e) => e,
            Popped::Closed => panic!("closed"),
        }
    }

    #[test]
    fn payloads_past_the_bound_are_left_in_the_log() {
        let queue = EventQueue::new(100);
        queue.open();
        for s in 1..=3 {
            queue.push(write_set(s, 60));
        }
        let kept: Vec<bool> = (0..3)
            .map(|_| matches!(take(&queue), Event::WriteSet(w) if w.entry.is_some()))
            .collect();
        assert_eq!(kept, [true, false, false]);
    }

    #[test]
    fn discarding_keeps_events_without_a_seqno() {
        let queue = EventQueue::new(1000);
        queue.open();
        queue.push(write_set(1, 1));
        queue.push(Event::NonPrimary);
        queue.push(write_set(2, 1));
        queue.discard_upto(1);
        assert!(matches!(take(&queue), Event::NonPrimary));
        queue.finish_exclusive();
        assert!(matches!(take(&queue), Event::WriteSet(w) if w.seqno == 2));
    }

    #[test]
    fn what_a_state_transfer_brought_is_not_taken_in_when_the_log_comes_to_it() {
        let queue = EventQueue::new(1000);
        queue.open();
        queue.push(write_set(1, 1));
        queue.discard_upto(3);
        (2..=4).for_each(|seqno| queue.push(write_set(seqno, 1)));
        assert!(matches!(take(&queue), Event::WriteSet(w) if w.seqno == 4));
    }

    #[test]
    fn only_the_end_is_left_of_a_connection_that_ends_before_it_began() {
        let queue = EventQueue::new(1000);
        queue.open();
        queue.push(write_set(1, 1));
        queue.push(Event::Vote { seqno: 1 });
        queue.leave_only_the_end();
        queue.push(write_set(2, 1));
        queue.push(Event::Final);
        assert!(matches!(take(&queue), Event::Final));
        queue.open();
        queue.push(write_set(3, 1));
        assert!(matches!(take(&queue), Event::WriteSet(w) if w.seqno == 3), "another connection");
    }

    #[test]
    fn the_last_event_waits_for_what_was_taken_before() {
        let queue = std::sync::Arc::new(EventQueue::new(1000));
        queue.open();
        queue.push(write_set(1, 1));
        queue.push(Event::Final);
        assert!(matches!(take(&queue), Event::WriteSet(_)));
        assert!(matches!(take(&queue), Event::Final));
        let last = {
            let queue = queue.clone();
            std::thread::spawn(move || queue.wait_for_others())
        };
        assert!(!last.is_finished());
        queue.finish_shared();
        last.join().unwrap();
    }

    #[test]
    fn nothing_is_taken_while_an_exclusive_event_is_handled() {
        let queue = std::sync::Arc::new(EventQueue::new(1000));
        queue.open();
        queue.push(Event::Connect);
        queue.push(write_set(1, 1));
        assert!(matches!(take(&queue), Event::Connect));
        let (tx, rx) = std::sync::mpsc::channel();
        let other = {
            let queue = queue.clone();
            std::thread::spawn(move || {
                let e = take(&queue);
                tx.send(e.seqno()).unwrap();
            })
        };
        assert!(rx.try_recv().is_err());
        queue.finish_exclusive();
        assert_eq!(rx.recv().unwrap(), Some(1));
        other.join().unwrap();
    }
}
