//! This node's large transactions on their way: which streams of parts are open, and what of them is proposed
//! and not in the log yet.
//!
//! Invariants:
//! - as much as a window of them is on its way, over all sessions: more wait, so that nobody else's write sets
//!   wait for long behind them, and no memory but the window's is taken for them;
//! - a stream whose session goes on with it is in `open`. One that is in the log and not here was given up: it
//!   is ended there, as often as a copy of a part opens it again ([`OwnParts::ordered`]).

use crate::blocking::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct OwnParts {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    open: BTreeSet<u64>,
    /// By serial: its stream, and how long it is.
    flying: BTreeMap<u64, (u64, usize)>,
    /// Of those.
    bytes: usize,
    /// Given up, and the group could not be told.
    untold: BTreeSet<u64>,
}

impl OwnParts {
    /// Before its first part is proposed.
    pub fn open(&self, stream: u64) {
        self.inner.lock().open.insert(stream);
    }

    /// Blocks until there is room for a part of so many bytes, which is then on its way; false if `give_up` says
    /// so first. It is asked again at each [`Self::nudge`].
    pub fn enter(
        &self,
        (stream, serial): (u64, u64),
        bytes: usize,
        window: usize,
        give_up: impl Fn() -> bool,
    ) -> bool {
        let mut inner = self.inner.lock();
        while inner.bytes + bytes > window && !inner.flying.is_empty() {
            if give_up() {
                return false;
            }
            self.changed.wait(&mut inner);
        }
        inner.flying.insert(serial, (stream, bytes));
        inner.bytes += bytes;
        true
    }

    /// Blocks until all parts of a stream are in the log; false if `give_up` says so first.
    pub fn wait_ordered(&self, stream: u64, give_up: impl Fn() -> bool) -> bool {
        let mut inner = self.inner.lock();
        while inner.flying.values().any(|(of, _)| *of == stream) {
            if give_up() {
                return false;
            }
            self.changed.wait(&mut inner);
        }
        true
    }

    /// A part is in the log. False: nobody goes on with its stream.
    pub fn ordered(&self, stream: u64, serial: u64) -> bool {
        let mut inner = self.inner.lock();
        inner.land(serial);
        self.changed.notify_all();
        inner.open.contains(&stream)
    }

    /// The write set of a stream has its verdict.
    pub fn close(&self, stream: u64) {
        self.inner.lock().open.remove(&stream);
    }

    /// Nobody goes on with it. Gives back the serials of what was on its way.
    pub fn give_up(&self, stream: u64) -> Vec<u64> {
        let mut inner = self.inner.lock();
        inner.open.remove(&stream);
        let of = |(serial, (of, _)): (&u64, &(u64, usize))| (*of == stream).then_some(*serial);
        let flying: Vec<u64> = inner.flying.iter().filter_map(of).collect();
        flying.iter().for_each(|serial| inner.land(*serial));
        self.changed.notify_all();
        flying
    }

    /// The group could not be told that a stream was given up.
    pub fn note_untold(&self, stream: u64) {
        self.inner.lock().untold.insert(stream);
    }

    /// Those that it is to be told of now.
    pub fn take_untold(&self) -> BTreeSet<u64> {
        std::mem::take(&mut self.inner.lock().untold)
    }

    /// Those who wait look again, whether they still should.
    pub fn nudge(&self) {
        let _inner = self.inner.lock();
        self.changed.notify_all();
    }
}

impl Inner {
    fn land(&mut self, serial: u64) {
        self.bytes -= self.flying.remove(&serial).map_or(0, |(_, bytes)| bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_parts_flies_and_what_nobody_goes_on_with_is_noticed() {
        let parts = OwnParts::default();
        parts.open(1);
        assert!(parts.enter((1, 1), 900, 100, || true), "longer than the window, and alone");
        assert!(!parts.enter((1, 2), 1, 100, || true));
        assert!(parts.ordered(1, 1));
        assert!(parts.enter((1, 2), 60, 100, || true) && parts.enter((1, 3), 40, 100, || true));
        assert!(!parts.enter((1, 4), 1, 100, || true) && !parts.wait_ordered(1, || true));
        assert_eq!(parts.give_up(1), [2, 3]);
        assert!(parts.wait_ordered(1, || true) && !parts.ordered(1, 2));
        parts.open(9);
        assert!(parts.enter((9, 9), 100, 100, || true) && parts.ordered(9, 9));
        parts.close(9);
        assert!(!parts.ordered(9, 9), "a copy");
        parts.note_untold(1);
        assert_eq!(parts.take_untold().into_iter().collect::<Vec<_>>(), [1]);
        assert!(parts.take_untold().is_empty());
    }
}
