//! How far the sequencer is, and who waits for it.
//!
//! Invariant: `awaited` is at most the lowest index that somebody waits for. It is lowered, and the sequencer
//! compares with it, under one lock, so no wake-up is lost; and an entry that nobody waits for wakes nobody.

use crate::blocking::{Condvar, Mutex};
use quorate_live::View;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// How far the sequencer is, and the first view with this process in it.
pub struct SequencerProgress {
    inner: Mutex<Reached>,
    changed: Condvar,
    seqno: AtomicI64,
}

struct Reached {
    index: u64,
    /// The lowest index that is waited for, or was; `u64::MAX`: none.
    awaited: u64,
    first_view: Option<(i64, View)>,
    start_members: Vec<u128>,
    /// Large transactions are open whose first parts are not in the log here.
    headless: bool,
}

impl SequencerProgress {
    pub(super) fn new() -> Self {
        let start_members = Vec::new();
        Self {
            inner: Mutex::new(Reached {
                index: 0,
                awaited: u64::MAX,
                first_view: None,
                start_members,
                headless: false,
            }),
            changed: Condvar::new(),
            seqno: AtomicI64::new(-1),
        }
    }

    /// The last seqno given out by the sequencer. Published before its fate or event is.
    pub fn seqno(&self) -> i64 {
        self.seqno.load(Ordering::Acquire)
    }

    pub fn set_seqno(&self, seqno: i64) {
        self.seqno.store(seqno, Ordering::Release);
    }

    pub fn set_index(&self, index: u64) {
        if self.inner.lock().reach(index) {
            self.changed.notify_all();
        }
    }

    pub fn index(&self) -> u64 {
        self.inner.lock().index
    }

    pub fn set_first_view(&self, seqno: i64, view: &View) {
        let mut inner = self.inner.lock();
        if inner.first_view.is_none() {
            inner.first_view = Some((seqno, view.clone()));
            self.changed.notify_all();
        }
    }

    pub fn has_first_view(&self) -> bool {
        self.inner.lock().first_view.is_some()
    }

    /// Who was in the view that holds where the database stands; none before the first view.
    pub fn start_members(&self) -> Vec<u128> {
        self.inner.lock().start_members.clone()
    }

    pub fn set_start_members(&self, members: Vec<u128>) {
        self.inner.lock().start_members = members;
    }

    pub fn set_headless(&self, headless: bool) {
        self.inner.lock().headless = headless;
        self.changed.notify_all();
    }

    /// Blocks until all open transactions can be read whole in the log here; false: not in time.
    pub fn wait_whole(&self, deadline: Instant, give_up: impl Fn() -> bool) -> bool {
        let mut inner = self.inner.lock();
        while inner.headless && !give_up() {
            if self.changed.wait_until(&mut inner, deadline).timed_out() {
                break;
            }
        }
        !inner.headless
    }

    pub fn wake(&self) {
        let _inner = self.inner.lock();
        self.changed.notify_all();
    }

    /// Blocks until the group has a view with this process in it; `None` if `give_up`.
    pub fn wait_first_view(&self, give_up: impl Fn() -> bool) -> Option<(i64, View)> {
        let mut inner = self.inner.lock();
        loop {
            if let Some(found) = &inner.first_view {
                return Some(found.clone());
            }
            if give_up() {
                return None;
            }
            self.changed.wait(&mut inner);
        }
    }

    /// Blocks until the sequencer has passed `index`; the seqno reached, or `None` in time.
    pub(super) fn wait_index(
        &self,
        index: u64,
        deadline: Instant,
        give_up: impl Fn() -> bool,
    ) -> Option<i64> {
        let mut inner = self.inner.lock();
        while inner.awaits(index) && !give_up() {
            if self.changed.wait_until(&mut inner, deadline).timed_out() {
                break;
            }
        }
        let reached = inner.index >= index;
        drop(inner);
        reached.then(|| self.seqno())
    }
}

impl Reached {
    /// True: somebody is to be woken. All are, and who goes on waiting says so again.
    fn reach(&mut self, index: u64) -> bool {
        self.index = index;
        let awaited = self.awaited <= index;
        if awaited {
            self.awaited = u64::MAX;
        }
        awaited
    }

    /// Whether `index` is still to come; noted before the lock is released to wait for it.
    fn awaits(&mut self, index: u64) -> bool {
        let to_come = self.index < index;
        if to_come {
            self.awaited = self.awaited.min(index);
        }
        to_come
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_reader_is_woken_by_what_it_waits_for_and_not_by_each_entry_before_it() {
        let progress = SequencerProgress::new();
        let mut inner = progress.inner.lock();
        assert!(!inner.reach(1), "nobody waits");
        assert!(!inner.awaits(1) && inner.awaits(4) && inner.awaits(7) && inner.awaits(5));
        assert!(!inner.reach(2) && !inner.reach(3));
        assert!(inner.reach(6), "for 4 and 5");
        assert!(inner.awaits(7), "woken with them, it goes on");
        assert!(inner.reach(7) && !inner.reach(8));
    }

    #[test]
    fn no_reader_misses_what_it_waits_for() {
        const LAST: u64 = 2000;
        let progress = Arc::new(SequencerProgress::new());
        let deadline = Instant::now() + Duration::from_secs(60);
        let readers: Vec<_> = (0..8)
            .map(|reader| {
                let progress = progress.clone();
                thread::spawn(move || {
                    for index in (reader..=LAST).step_by(7) {
                        assert!(progress.wait_index(index, deadline, || false).is_some());
                        assert!(progress.index() >= index);
                    }
                })
            })
            .collect();
        for index in 1..=LAST {
            progress.set_index(index);
            thread::yield_now();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(progress.wait_index(LAST + 1, Instant::now(), || false).is_none());
    }
}
