//! What is in memory of the disk, and who has which lock.

use super::disk::{Beside, Record};
use super::rows::{Key, Rows, Writes};
use super::{Owner, StreamId};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Tables {
    pub rows: Rows,
    /// Beside of streaming transactions, by transaction.
    pub fragments: BTreeMap<StreamId, Writes>,
    /// Who is in the last view.
    pub members: Vec<u128>,
    position: i64,
    /// Seqnos above the position that pass without a trace.
    skipped: BTreeSet<i64>,
    pub locks: BTreeMap<Key, Owner>,
    /// Gaps between rows that sessions have locked; they share them with each other, but keep write
    /// sets out whose keys do not conflict with theirs.
    pub gaps: BTreeMap<Key, BTreeSet<u64>>,
}

impl Tables {
    pub fn take_in(&mut self, record: &Record) {
        for write in &record.writes {
            self.rows.entry(write.key).or_default().push(write.tag);
        }
        match &record.beside {
            Beside::Keep => {}
            Beside::Add(id, writes) => {
                self.fragments.entry(*id).or_default().extend_from_slice(writes);
            }
            Beside::Remove(id) => {
                self.fragments.remove(id);
            }
            Beside::View(members) => self.members.clone_from(members),
        }
        if let Some(seqno) = record.seqno {
            self.position = seqno;
        }
    }

    pub fn begin_at(&mut self, position: i64) {
        self.position = position;
        self.skipped.clear();
    }

    /// The position, when everything up to `seqno` is over: what passed without a trace counts.
    pub fn position(&mut self, seqno: i64) -> i64 {
        while self.position < seqno && self.skipped.remove(&(self.position + 1)) {
            self.position += 1;
        }
        self.position
    }

    pub fn skip(&mut self, seqno: i64) {
        self.skipped.insert(seqno);
    }

    /// Who keeps `owner` from this row.
    pub fn in_the_way(&self, owner: Owner, key: Key) -> Option<Owner> {
        let row = self.locks.get(&key).copied().filter(|holder| *holder != owner);
        let gap = self.gaps.get(&gap_of(key)).and_then(|holders| holders.first());
        row.or(gap.map(|id| Owner::Local(*id)))
    }

    pub fn lock_gap(&mut self, id: u64, key: Key) {
        self.gaps.entry(gap_of(key)).or_default().insert(id);
    }
}

fn gap_of(key: Key) -> Key {
    key / 4
}
