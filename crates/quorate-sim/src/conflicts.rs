//! First committer wins, checked the slow and obvious way.
//!
//! Knows nothing of indexes, windows or dependencies: two write sets of different servers that
//! both changed a row, where the later one had not seen the earlier, must not both pass.

use crate::database::changed_rows;
use crate::oracle::rows::Row;
use quorate_certify::{Seqno, WriteSet};
use quorate_consensus::Index;

struct PassedOne {
    index: Index,
    seqno: Seqno,
    /// Write sets of one origin and epoch have seen each other.
    kin: (u128, u16),
    isolation: bool,
    changed: Vec<Row>,
}

/// Every write set that passed.
#[derive(Default)]
pub struct Passed(Vec<PassedOne>);

impl Passed {
    /// What was ordered after `upto` never was.
    pub fn forget_after(&mut self, upto: Index) {
        self.0.retain(|one| one.index <= upto);
    }

    /// Adds the next one; returns an earlier one that should have kept it out.
    pub fn admit(&mut self, index: Index, seqno: Seqno, write_set: &WriteSet) -> Option<Seqno> {
        let header = write_set.header();
        let changed = changed_rows(write_set).collect();
        let kin = (header.origin, header.kin_epoch);
        let one = PassedOne { index, seqno, kin, isolation: header.is_toi(), changed };
        let unseen = self.0.iter().rev().take_while(|earlier| earlier.seqno > header.last_seen);
        let missed = unseen
            .filter(|earlier| earlier.isolation || earlier.kin != one.kin)
            .find(|earlier| earlier.overlaps(&one))
            .map(|earlier| earlier.seqno);
        self.0.push(one);
        missed.filter(|_| !header.is_toi())
    }
}

impl PassedOne {
    fn overlaps(&self, other: &PassedOne) -> bool {
        self.changed.iter().any(|row| other.changed.contains(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_certify::{Header, KeyType, WriteSetBuilder};

    fn write(origin: u128, last_seen: Seqno, row: &[u8], key_type: KeyType) -> WriteSet {
        let mut builder = WriteSetBuilder::new();
        builder.append_key(&[row], key_type);
        let bytes = builder.finish(&Header::transaction(origin, 1, last_seen));
        WriteSet::parse(bytes).expect("just built")
    }

    #[test]
    fn only_unseen_changes_of_others_matter() {
        let mut passed = Passed::default();
        assert_eq!(passed.admit(1, 1, &write(1, 0, b"a", KeyType::Update)), None);
        assert_eq!(passed.admit(2, 2, &write(1, 0, b"a", KeyType::Update)), None, "own");
        assert_eq!(passed.admit(3, 3, &write(2, 2, b"a", KeyType::Update)), None, "seen");
        assert_eq!(passed.admit(4, 4, &write(1, 2, b"a", KeyType::Shared)), None, "only read");
        assert_eq!(passed.admit(5, 5, &write(1, 2, b"b", KeyType::Update)), None, "another row");
        assert_eq!(passed.admit(6, 6, &write(1, 2, b"a", KeyType::Exclusive)), Some(3));
    }
}
