//! Others' proposals while leadership is on its way to somebody who may not take it.

use quorate_consensus::{MemberId, Proposal};
use std::collections::BTreeMap;

/// Of one member. What it has in its outbox and in the sockets is less; its proposals wait for their fates.
const BYTES_MAX: usize = 64 << 20;
/// What a proposal costs beside its data.
const COST: usize = 64;

#[derive(Default)]
pub(super) struct Deferred {
    batch: Vec<Proposal>,
    bytes: BTreeMap<MemberId, usize>,
}

impl Deferred {
    /// False if this member has no room left.
    pub fn add(&mut self, from: MemberId, batch: Vec<Proposal>) -> bool {
        let bytes = self.bytes.entry(from).or_default();
        *bytes += batch.iter().map(|proposal| proposal.data.len() + COST).sum::<usize>();
        let fits = *bytes <= BYTES_MAX;
        if fits {
            self.batch.extend(batch);
        }
        fits
    }

    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub fn take(&mut self) -> Vec<Proposal> {
        self.bytes.clear();
        std::mem::take(&mut self.batch)
    }

    /// Not yet.
    pub fn put_back(&mut self, batch: Vec<Proposal>) {
        self.batch = batch;
    }
}
