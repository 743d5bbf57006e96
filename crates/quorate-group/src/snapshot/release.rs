//! How much of the log is needless.
//!
//! Invariant: the log is purged only up to the newest snapshot but one, so log and files together
//! reach from a whole state to the end of the log, even should the newest file be damaged.

use quorate_consensus::Index;

/// The snapshots there are, newest first, and the first index that is still needed: to be applied by the
/// state machine, or by it, as it last said.
#[derive(Default)]
pub(crate) struct Releases {
    files: Vec<Index>,
    needed: Index,
}

impl Releases {
    /// A leader's snapshots may be ahead of `applied`, what the state machine has, for good: where the
    /// log has their last entry, they do not replace it.
    pub fn note(&mut self, files: Vec<Index>, needed: Index, applied: Index) {
        (self.files, self.needed) = (files, needed.min(applied + 1));
    }

    /// Up to where the log may go, and not beyond `at_most`.
    pub fn due(&self, at_most: Index) -> Option<Index> {
        let is_needless = |index: &&Index| **index < self.needed && **index <= at_most;
        self.files.iter().skip(1).find(is_needless).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_reaches_back_to_the_newest_snapshot_but_one_and_to_what_is_needed() {
        let releasable = |files: &[Index], needed| {
            let mut releases = Releases::default();
            releases.note(files.to_vec(), needed, 30);
            releases.due(Index::MAX)
        };
        assert_eq!(releasable(&[], Index::MAX), None);
        assert_eq!(releasable(&[30], Index::MAX), None);
        assert_eq!(releasable(&[30, 20, 10], Index::MAX), Some(20));
        assert_eq!(releasable(&[30, 20, 10], 20), Some(10));
        assert_eq!(releasable(&[30, 20, 10], 5), None);
        let mut releases = Releases::default();
        releases.note(vec![30, 20, 10], Index::MAX, 30);
        assert_eq!(
            [25, 20, 19, 9].map(|most| releases.due(most)),
            [Some(20), Some(20), Some(10), None]
        );
    }

    #[test]
    fn what_is_not_applied_yet_stays_though_a_leaders_snapshots_are_ahead() {
        let mut releases = Releases::default();
        releases.note(vec![40, 30, 20, 10], Index::MAX, 20);
        assert_eq!(releases.due(Index::MAX), Some(20));
        releases.note(vec![40, 30, 20], Index::MAX, 15);
        assert_eq!(releases.due(Index::MAX), None);
    }
}
