//! What a server's disk has: a redo log of which a crash keeps a prefix.

use super::copy::Origin;
use super::rows::Writes;
use super::StreamId;
use crate::baton::installed;
use crate::oracle::Tag;
use std::collections::BTreeMap;

/// What a commit changes in the server's own tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Beside {
    Keep,
    /// One more of this streaming transaction.
    Add(StreamId, Writes),
    /// It has ended.
    Remove(StreamId),
    /// These are the members from now on.
    View(Vec<u128>),
}

/// One commit.
#[derive(Clone)]
pub(super) struct Record {
    /// The position that is stored with it; `None`: it has no place in the order.
    pub seqno: Option<i64>,
    pub writes: Writes,
    pub beside: Beside,
}

/// Outlives the server's processes.
#[derive(Default)]
pub struct Disk {
    /// Streams that a view has ended here, with its seqno: gone before that is stored.
    pub ended: BTreeMap<StreamId, i64>,
    pub(super) origin: Origin,
    /// The copy that it began with has not been synced.
    pub(super) unsynced: bool,
    /// The last seqno that gave an error.
    pub(super) error_at: Option<i64>,
    /// What was committed after that.
    pub(super) records: Vec<Record>,
    pub(super) flushed: usize,
    /// DDL that was executed: durable at once, unlike the position that says so.
    pub(super) schema: Vec<Tag>,
}

impl Disk {
    /// The server stopped cleanly.
    pub fn flush(&mut self) {
        self.flushed = self.records.len();
    }

    /// Keeps what was flushed and, by chance, some of what followed. Says how much is lost.
    pub fn crash(&mut self) -> usize {
        self.lose_unsynced_copy();
        let tail = self.records.len() - self.flushed;
        let kept = installed().random(|rng| match rng.index(3) {
            0 => 0,
            1 => tail,
            _ => rng.index(tail + 1),
        });
        self.records.truncate(self.flushed + kept);
        self.flushed = self.records.len();
        tail - kept
    }
}
