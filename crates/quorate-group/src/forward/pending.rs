//! Proposals of this member whose fate is not decided.
//!
//! Invariant: a proposal is kept from `push` to `decided`. It is in `queue` while it waits to be
//! sent to the present leader; each new leader, term or connection to the leader puts all kept
//! ones back in the queue, in serial order. How much is kept is up to those who propose: they have
//! it in memory as long, and wait for its fate.

use super::{BATCH_BYTES, BATCH_COUNT, FORWARD_BYTES};
use crate::depth::Depth;
use quorate_consensus::Proposal;
use std::collections::{BTreeMap, VecDeque};

#[derive(Default)]
pub(crate) struct Pending {
    kept: BTreeMap<u64, Proposal>,
    queue: VecDeque<u64>,
    /// Something may be sent.
    fresh: bool,
    /// Forwarded since there was last known to be room in the outbox.
    forwarded: usize,
    taken: Vec<u64>,
    depth: Depth,
}

impl Pending {
    pub fn push(&mut self, serial: u64, proposal: Proposal) {
        self.depth.comes(self.kept.len());
        let replaced = self.kept.insert(serial, proposal);
        debug_assert!(replaced.is_none(), "serial {serial} proposed twice");
        self.queue.push_back(serial);
        self.fresh = true;
    }

    pub fn decided(&mut self, serial: u64) {
        self.kept.remove(&serial);
    }

    /// A new leader, term, or connection to the leader: everything is to be sent again.
    pub fn requeue(&mut self) {
        self.queue.clear();
        self.queue.extend(self.kept.keys());
        self.room();
    }

    /// There is room in the outbox to the leader.
    pub fn room(&mut self) {
        self.forwarded = 0;
        self.fresh = true;
    }

    /// What was held back may be sent again.
    pub fn retry(&mut self) {
        self.fresh |= !self.queue.is_empty();
    }

    pub fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// Whether the outbox to the leader is full, as far as is known here.
    pub fn is_full(&self) -> bool {
        self.forwarded >= FORWARD_BYTES
    }

    pub fn note_forwarded(&mut self, batch: &[Proposal]) {
        self.forwarded += batch.iter().map(|proposal| proposal.data.len()).sum::<usize>();
    }

    /// Takes proposals for sending, in order, at least one if there is one.
    pub fn take(&mut self) -> Vec<Proposal> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        self.taken.clear();
        while bytes < BATCH_BYTES && batch.len() < BATCH_COUNT {
            let Some(serial) = self.queue.pop_front() else { break };
            // Decided (or given up) since it was queued: nothing to send.
            if let Some(proposal) = self.kept.get(&serial) {
                bytes += proposal.data.len();
                batch.push(proposal.clone());
                self.taken.push(serial);
            }
        }
        batch
    }

    /// The serial of the first of `batch`, which was taken last, that was altered since it was proposed.
    pub fn altered(&self, batch: &[Proposal]) -> Option<u64> {
        let at = batch.iter().position(|proposal| !proposal.is_intact())?;
        self.taken.get(at).copied()
    }

    /// What was taken last could not be sent: it stays first in the queue.
    pub fn put_back(&mut self) {
        while let Some(serial) = self.taken.pop() {
            self.queue.push_front(serial);
        }
    }

    pub fn count(&self) -> usize {
        self.kept.len()
    }

    /// How many there were so far.
    pub fn depth(&self) -> Depth {
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quorate_consensus::EntryKind;

    fn taken(pending: &mut Pending) -> Vec<Bytes> {
        pending.take().into_iter().map(|proposal| proposal.data).collect()
    }

    #[test]
    fn everything_undecided_is_sent_again_in_serial_order() {
        let mut pending = Pending::default();
        for serial in [2, 1, 3] {
            let data = Bytes::from(vec![serial as u8]);
            pending.push(serial, Proposal::new(EntryKind::Data, data));
        }
        assert!(pending.take_fresh() && !pending.take_fresh());
        assert_eq!(taken(&mut pending), [&[2u8][..], &[1], &[3]]);
        assert!(taken(&mut pending).is_empty());
        pending.decided(2);
        pending.requeue();
        assert!(pending.take_fresh());
        assert_eq!(taken(&mut pending), [&[1u8][..], &[3]]);
        pending.put_back();
        pending.decided(3);
        assert_eq!(taken(&mut pending), [&[1u8][..]]);
        assert!(taken(&mut pending).is_empty());
        let depth = pending.depth();
        assert_eq!((pending.count(), depth.max(), depth.avg()), (1, 3, 1.0));
    }
}
