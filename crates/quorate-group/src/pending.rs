//! Proposals of this member whose fate is not decided.
//!
//! Invariant: a proposal is kept from `push` to `decided`. It is in `queue` while it waits to be
//! sent to the present leader; each new leader, term or connection to the leader puts all kept
//! ones back in the queue, in serial order. How much is kept is up to those who propose: they have
//! it in memory as long, and wait for its fate.
//!
//! Any thread may push. Whoever holds the core's lock drains; [`Pending::fresh`] tells the holder,
//! after it has let go of the lock, that something was pushed meanwhile by a thread that found
//! the lock taken.

use bytes::Bytes;
use parking_lot::Mutex;
use quorate_consensus::{EntryKind, Proposal};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{fence, AtomicBool, Ordering};

#[derive(Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    fresh: AtomicBool,
    starved: AtomicBool,
}

#[derive(Default)]
struct State {
    kept: BTreeMap<u64, Proposal>,
    queue: VecDeque<u64>,
}

impl Pending {
    pub fn push(&self, serial: u64, data: Bytes) {
        let proposal = Proposal::new(EntryKind::Data, data);
        {
            let mut state = self.state.lock();
            let replaced = state.kept.insert(serial, proposal);
            debug_assert!(replaced.is_none(), "serial {serial} proposed twice");
            state.queue.push_back(serial);
        }
        self.set_fresh();
    }

    pub fn decided(&self, serial: u64) {
        self.state.lock().kept.remove(&serial);
    }

    /// A new leader, term, or connection to the leader: everything is to be sent again.
    pub fn requeue(&self) {
        let mut state = self.state.lock();
        state.queue = state.kept.keys().copied().collect();
        drop(state);
        self.set_fresh();
    }

    /// Takes proposals for sending, in order, at least one if there is one, until `bytes_max`.
    pub fn take(&self, bytes_max: usize) -> Vec<(u64, Proposal)> {
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        let mut bytes = 0;
        while bytes < bytes_max {
            let Some(serial) = state.queue.pop_front() else { break };
            // Decided (or given up) since it was queued: nothing to send.
            if let Some(proposal) = state.kept.get(&serial) {
                bytes += proposal.data.len();
                taken.push((serial, proposal.clone()));
            }
        }
        taken
    }

    /// What was taken could not be sent: it stays first in the queue.
    pub fn put_back(&self, taken: &[(u64, Proposal)]) {
        let mut state = self.state.lock();
        taken.iter().rev().for_each(|(serial, _)| state.queue.push_front(*serial));
    }

    /// True once after each push, requeue or [`Pending::set_fresh`].
    pub fn take_fresh(&self) -> bool {
        self.fresh.load(Ordering::Relaxed) && self.fresh.swap(false, Ordering::SeqCst)
    }

    /// For the thread that has just let go of the core's lock. The fences here and in `set_fresh`
    /// order the flag against that lock: either the pusher finds the lock free afterwards, or the
    /// holder finds the flag set after letting go.
    pub fn is_fresh(&self) -> bool {
        fence(Ordering::SeqCst);
        self.fresh.load(Ordering::Relaxed)
    }

    pub fn set_fresh(&self) {
        self.fresh.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The outbox to the leader is full: the queue waits until that has been written.
    pub fn set_starved(&self) {
        self.starved.store(true, Ordering::SeqCst);
    }

    /// There is room in the outbox to the leader (again).
    pub fn feed_starved(&self) {
        if self.starved.load(Ordering::SeqCst) && self.starved.swap(false, Ordering::SeqCst) {
            self.set_fresh();
        }
    }

    pub fn has_queued(&self) -> bool {
        !self.state.lock().queue.is_empty()
    }

    pub fn count(&self) -> usize {
        self.state.lock().kept.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pending: &Pending, bytes_max: usize) -> Vec<Bytes> {
        pending.take(bytes_max).into_iter().map(|(_, proposal)| proposal.data).collect()
    }

    #[test]
    fn everything_undecided_is_sent_again_in_serial_order() {
        let pending = Pending::default();
        for serial in [2, 1, 3] {
            pending.push(serial, Bytes::from(vec![serial as u8]));
        }
        assert!(pending.take_fresh() && !pending.take_fresh());
        assert_eq!(taken(&pending, 100), [&[2u8][..], &[1], &[3]]);
        assert!(taken(&pending, 100).is_empty());
        pending.decided(2);
        pending.requeue();
        assert!(pending.take_fresh());
        assert_eq!(taken(&pending, 1), [&[1u8][..]]);
        pending.decided(3);
        assert!(taken(&pending, 100).is_empty());
        assert_eq!(pending.count(), 1);
    }
}
