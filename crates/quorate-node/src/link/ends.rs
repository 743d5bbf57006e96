//! Streaming transactions that are over here while the other nodes do not know it yet: their rollback
//! fragment could not be sent, or follows a fragment that was given up and passed.
//!
//! Here their rows are free; elsewhere they are locked until that rollback fragment. A write set on such a
//! row that is ordered before it could not be applied there, ever: the row's lock waits for the rollback,
//! the rollback for all that is ordered before it.
//!
//! Invariants:
//! - While there is one, this node proposes no write set. What it stamped before had its rows locked
//!   before, or has not seen the fragment, and fails certification if it should have.
//! - Each is proposed, once there is a majority, until it is in the log: see [`Ends::unproposed`].

use crate::blocking::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[derive(Default)]
pub struct Ends {
    /// By transaction: whether the group was given its end.
    open: Mutex<BTreeMap<u64, bool>>,
    any: AtomicBool,
    changed: Condvar,
}

impl Ends {
    /// Before its rows, or what it wrote, can be seen by anybody.
    pub fn note(&self, trx_id: u64, proposed: bool) {
        let mut open = self.open.lock();
        *open.entry(trx_id).or_default() |= proposed;
        self.any.store(true, SeqCst);
    }

    /// The end of this one is in the log.
    pub fn ordered(&self, trx_id: u64) {
        if self.are_ordered() {
            return;
        }
        let mut open = self.open.lock();
        open.remove(&trx_id);
        self.any.store(!open.is_empty(), SeqCst);
        self.changed.notify_all();
    }

    /// Those whose end is not in the log.
    pub fn open(&self) -> BTreeSet<u64> {
        self.open.lock().keys().copied().collect()
    }

    /// Those that the group was not given yet; they count as given from now on.
    pub fn unproposed(&self) -> Vec<u64> {
        let mut open = self.open.lock();
        let waiting = open.iter_mut().filter(|(_, proposed)| !**proposed);
        let take = |(trx_id, proposed): (&u64, &mut bool)| {
            *proposed = true;
            *trx_id
        };
        waiting.map(take).collect()
    }

    pub fn are_ordered(&self) -> bool {
        !self.any.load(SeqCst)
    }

    /// Blocks until all are; false if `give_up` says so first. It is asked again at each [`Self::nudge`].
    pub fn wait(&self, give_up: impl Fn() -> bool) -> bool {
        let mut open = self.open.lock();
        while !open.is_empty() && !give_up() {
            self.changed.wait(&mut open);
        }
        open.is_empty()
    }

    /// Those who wait look again, whether they still should.
    pub fn nudge(&self) {
        if !self.are_ordered() {
            let _open = self.open.lock();
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_proposed_once_and_waited_for_until_it_is_ordered() {
        let ends = Ends::default();
        assert!(ends.are_ordered() && ends.wait(|| false));
        ends.note(7, false);
        ends.note(9, true);
        assert_eq!(ends.unproposed(), [7]);
        ends.note(7, false);
        assert!(ends.unproposed().is_empty(), "the group has it");
        ends.ordered(9);
        assert!(!ends.are_ordered() && !ends.wait(|| true));
        ends.ordered(7);
        assert!(ends.are_ordered() && ends.wait(|| false));
    }
}
