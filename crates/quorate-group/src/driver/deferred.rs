//! Others' proposals that cannot be proposed yet: leadership is on its way to somebody who may not take it, the
//! leader's disk is behind, or their sender is just being admitted. Who sent them takes it that they are under way.
//!
//! Invariant: nothing of a member overtakes what waits here of it. The parts of a transaction come before its write
//! set, or that fails.

use quorate_consensus::{MemberId, Proposal, StepError};
use std::collections::BTreeMap;

/// What a proposal costs beside its data.
const COST: usize = 64;

/// Of one member: what a server may have under way at once, and more. Its proposals wait for their fates.
const MEMBERS_BYTES_MAX: usize = 320 << 20;
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
    disk_behind: bool,
    own_first: bool,
}

impl Deferred {
    /// False, and it is gone, if there would be more of this member than so many bytes. A member's first batch
    /// is taken whatever its length: one proposal may be longer, and would come again and again.
    pub fn add(&mut self, from: MemberId, batch: Vec<Proposal>, room: Room) -> bool {
        let more = batch.iter().map(|proposal| proposal.data.len() + COST).sum::<usize>();
        let bytes = self.bytes.get(&from).map_or(more, |waiting| waiting + more);
        let fits = match room {
            Room::Member => !self.waits(from) || bytes <= MEMBERS_BYTES_MAX,
            Room::Guest => bytes <= GUESTS_BYTES_MAX,
        };
        if fits {
            self.bytes.insert(from, bytes);
            self.batches.push((from, batch));
        }
        fits
    }

    /// Whether something of this member does.
    pub fn waits(&self, from: MemberId) -> bool {
        self.bytes.contains_key(&from)
    }

    /// Drops what waits of this member: it sends everything again.
    pub fn forget(&mut self, from: MemberId) {
        self.bytes.remove(&from);
        self.batches.retain(|(other, _)| *other != from);
    }

    /// Why something was held up, of others or of this member.
    pub fn note(&mut self, refusal: &StepError) {
        self.disk_behind |= matches!(refusal, StepError::DiskBehind { .. });
    }

    /// The disk has gone on. Whether something waits for it: then it is somebody else's turn to come first. Where the
    /// disk is the bottleneck, whoever always did could take all of it.
    pub fn disk_moved(&mut self) -> bool {
        self.own_first ^= self.disk_behind;
        self.disk_behind
    }

    /// In the order in which they came; and whether it is this member's turn to come before them.
    pub fn take(&mut self) -> (Vec<(MemberId, Vec<Proposal>)>, bool) {
        let own_first = self.own_first;
        let taken = std::mem::replace(self, Self { own_first, ..Self::default() });
        (taken.batches, own_first)
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
        let all: Vec<_> = deferred.take().0.into_iter().map(|(from, _)| from).collect();
        assert_eq!(all, [one, one, other]);
        assert!(deferred.add(one, batch(half), Room::Guest) && deferred.take().0.len() == 1);
    }

    #[test]
    fn a_members_long_proposal_waits_and_a_guests_does_not() {
        let long = vec![Proposal::new(EntryKind::Data, vec![7; MEMBERS_BYTES_MAX].into())];
        let long = || long.clone();
        let mut deferred = Deferred::default();
        assert!(deferred.add(MemberId(1), long(), Room::Member));
        assert!(!deferred.add(MemberId(1), long(), Room::Member), "there is one already");
        assert!(!deferred.add(MemberId(2), long(), Room::Guest));
        assert_eq!(deferred.take().0.len(), 1);
    }
}
