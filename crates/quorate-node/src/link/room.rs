//! How much of this node's own writes may be on its way at once: whoever finds no room waits for it.
//!
//! Short write sets share [`SHARED_BYTES`]. Long ones go one at a time beside them: however long one
//! is, it may go, and no short one waits for it here.
//!
//! Invariant: who waits was counted in `waiting` before it looked for room the last time, and whoever
//! makes room looks at `waiting` after it; so nobody sleeps beside free room.

use crate::blocking::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Bytes of short write sets.
const SHARED_BYTES: usize = 256 << 20;
/// A longer write set is a long one.
const SHORT_BYTES_MAX: usize = SHARED_BYTES / 4;

pub struct Room {
    /// Bytes of short ones under way.
    short: AtomicUsize,
    /// Whether a long one is under way.
    long: AtomicBool,
    waiting: AtomicUsize,
    queue: Mutex<()>,
    freed: Condvar,
}

/// A place in the room, given back when it is dropped.
pub struct Place<'a> {
    room: &'a Room,
    bytes: usize,
}

impl Room {
    pub fn new() -> Self {
        Self {
            short: AtomicUsize::new(0),
            long: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            queue: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    /// A place for a write set of so many bytes, if there is room.
    pub fn try_enter(&self, bytes: usize) -> Option<Place<'_>> {
        let entered = match bytes <= SHORT_BYTES_MAX {
            true => {
                let with =
                    |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= SHARED_BYTES);
                self.short.fetch_update(SeqCst, SeqCst, with).is_ok()
            }
            false => !self.long.swap(true, SeqCst),
        };
        entered.then(|| Place { room: self, bytes })
    }

    /// Waits for room; `None` if `give_up` says so first. It is asked again at each [`Self::nudge`].
    pub fn enter(&self, bytes: usize, give_up: impl Fn() -> bool) -> Option<Place<'_>> {
        let mut queue = self.queue.lock();
        self.waiting.fetch_add(1, SeqCst);
        let place = loop {
            if give_up() {
                break None;
            }
            if let Some(place) = self.try_enter(bytes) {
                break Some(place);
            }
            self.freed.wait(&mut queue);
        };
        self.waiting.fetch_sub(1, SeqCst);
        place
    }

    /// Those who wait look again, whether they still should.
    pub fn nudge(&self) {
        if self.waiting.load(SeqCst) > 0 {
            let _queue = self.queue.lock();
            self.freed.notify_all();
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        match self.bytes <= SHORT_BYTES_MAX {
            true => drop(self.room.short.fetch_sub(self.bytes, SeqCst)),
            false => self.room.long.store(false, SeqCst),
        }
        self.room.nudge();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    const LONG: usize = 3 * SHARED_BYTES;

    #[test]
    fn one_long_write_set_passes_and_keeps_no_short_one_waiting() {
        let room = Room::new();
        let short = room.try_enter(SHORT_BYTES_MAX).expect("there is room");
        let long = room.try_enter(LONG).expect("however long");
        assert!(room.try_enter(LONG).is_none(), "a second one waits");
        let others: Vec<_> = (0..3).map(|_| room.try_enter(SHORT_BYTES_MAX)).collect();
        assert!(others.iter().all(Option::is_some) && room.try_enter(1).is_none());
        drop(short);
        assert!(room.try_enter(1).is_some());
        drop(long);
        assert!(room.try_enter(LONG).is_some());
    }

    #[test]
    fn whoever_waits_is_woken_by_room_and_by_a_reason_to_give_up() {
        let room = Room::new();
        let held = room.try_enter(LONG).expect("there is room");
        let given_up = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let patient = threads.spawn(|| room.enter(LONG, || false).is_some());
            let other =
                threads.spawn(|| room.enter(LONG, || given_up.load(Ordering::SeqCst)).is_some());
            while room.waiting.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            given_up.store(true, Ordering::SeqCst);
            room.nudge();
            assert!(!other.join().expect("no panic"));
            drop(held);
            assert!(patient.join().expect("no panic"));
        });
        assert!(room.try_enter(LONG).is_some());
    }
}
