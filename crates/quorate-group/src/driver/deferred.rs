//! Others' proposals that cannot be proposed yet: leadership is on its way to somebody who may not take it, or
//! their sender is just being admitted. Who sent them takes it that they are under way.

use quorate_consensus::{MemberId, Proposal};
use std::collections::BTreeMap;

/// What a proposal costs beside its data.
const COST: usize = 64;

/// Of one member. What it has in its outbox and in the sockets is less; its proposals wait for their fates.
const MEMBERS_BYTES_MAX: usize = 64 << 20;
/// Of one that is no member (yet): who joins writes nothing, it asks for the state.
const GUESTS_BYTES_MAX: usize = 1 << 20;

/// How much of a sender's waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    Member,
    Guest,
}

#[derive(Default)]
pub(super) struct Deferred {
    batches: Vec<(MemberId, Vec<Proposal>)>,
    bytes: BTreeMap<MemberId, usize>,
}

impl Deferred {
    /// False, and it is gone, if there would be more of this member than so many bytes. A member's first batch
    /// is taken whatever its length: one proposal may be longer, and would come again and again.
    pub fn add(&mut self, from: MemberId, batch: Vec<Proposal>, room: Room) -> bool {
        let bytes = self.bytes.entry(from).or_default();
        let first = *bytes == 0;
        *bytes += batch.iter().map(|proposal| proposal.data.len() + COST).sum::<usize>();
        let fits = match room {
            Room::Member => first || *bytes <= MEMBERS_BYTES_MAX,
            Room::Guest => *bytes <= GUESTS_BYTES_MAX,
        };
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
    use quorate_consensus::EntryKind;

    #[test]
    fn each_has_its_room_and_gets_it_back() {
        let batch = |bytes: usize| vec![Proposal::new(EntryKind::Data, vec![7; bytes].into())];
        let half = GUESTS_BYTES_MAX / 2 - COST;
        let mut deferred = Deferred::default();
        let (one, other) = (MemberId(1), MemberId(2));
        let taken = [one, one, one, other].map(|from| deferred.add(from, batch(half), Room::Guest));
        assert_eq!(taken, [true, true, false, true]);
        let all: Vec<_> = deferred.take().into_iter().map(|(from, _)| from).collect();
        assert_eq!(all, [one, one, other]);
        assert!(deferred.add(one, batch(half), Room::Guest) && deferred.take().len() == 1);
    }

    #[test]
    fn a_members_long_proposal_waits_and_a_guests_does_not() {
        let long = || vec![Proposal::new(EntryKind::Data, vec![7; MEMBERS_BYTES_MAX].into())];
        let mut deferred = Deferred::default();
        assert!(deferred.add(MemberId(1), long(), Room::Member));
        assert!(!deferred.add(MemberId(1), long(), Room::Member), "there is one already");
        assert!(!deferred.add(MemberId(2), long(), Room::Guest));
        assert_eq!(deferred.take().len(), 1);
    }
}
