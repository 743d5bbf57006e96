//! Others' proposals that cannot be proposed yet: leadership is on its way to somebody who may not take it, or
//! their sender is just being admitted. Who sent them takes it that they are under way.

use quorate_consensus::{MemberId, Proposal};
use std::collections::BTreeMap;

/// What a proposal costs beside its data.
const COST: usize = 64;

#[derive(Default)]
pub(super) struct Deferred {
    batches: Vec<(MemberId, Vec<Proposal>)>,
    bytes: BTreeMap<MemberId, usize>,
}

impl Deferred {
    /// False, and it is gone, if there would be more of this member than so many bytes.
    pub fn add(&mut self, from: MemberId, batch: Vec<Proposal>, bytes_max: usize) -> bool {
        let bytes = self.bytes.entry(from).or_default();
        *bytes += batch.iter().map(|proposal| proposal.data.len() + COST).sum::<usize>();
        let fits = *bytes <= bytes_max;
        if fits {
            self.batches.push((from, batch));
        }
        fits
    }

    /// In the order in which they came.
    pub fn take(&mut self) -> Vec<(MemberId, Vec<Proposal>)> {
        self.bytes.clear();
        std::mem::take(&mut self.batches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quorate_consensus::EntryKind;

    #[test]
    fn each_has_its_room_and_gets_it_back() {
        let batch = || vec![Proposal::new(EntryKind::Data, Bytes::from_static(b"0123456789"))];
        let mut deferred = Deferred::default();
        let (one, other) = (MemberId(1), MemberId(2));
        let room = 2 * (COST + 10);
        let taken = [one, one, one, other].map(|from| deferred.add(from, batch(), room));
        assert_eq!(taken, [true, true, false, true]);
        let all: Vec<_> = deferred.take().into_iter().map(|(from, _)| from).collect();
        assert_eq!(all, [one, one, other]);
        assert!(deferred.add(one, batch(), room) && deferred.take().len() == 1);
    }
}
