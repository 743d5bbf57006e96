//! What a group's founder decided for good: where its history begins, and the size of the
//! certification window. Every member has it from the group, none from its own configuration.

use crate::snapshot::{SEQNO_MAX, WINDOW_MAX};
use crate::{Limits, Seqno, KEYS_MAX_DEFAULT, WINDOW_DEFAULT};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Constants {
    /// The uuid of the history that the group continues; 0: a history of its own.
    pub history: u128,
    /// The last seqno before the group.
    pub seqno: Seqno,
    /// The mark of the founder's database; 0: none.
    pub lineage: u64,
    /// How many of the seqnos up to `seqno` are known to be views.
    pub views: u32,
    /// Write sets in the certification window; 0: [`WINDOW_DEFAULT`].
    pub window: u32,
}

impl Constants {
    /// As a group stores them; all zero is the default.
    pub fn words(&self) -> [u64; 5] {
        [
            (self.history >> 64) as u64,
            self.history as u64,
            self.seqno as u64,
            self.lineage,
            u64::from(self.window) << 32 | u64::from(self.views),
        ]
    }

    pub fn from_words([high, low, seqno, lineage, sizes]: [u64; 5]) -> Constants {
        Constants {
            history: u128::from(high) << 64 | u128::from(low),
            seqno: seqno as Seqno,
            lineage,
            views: sizes as u32,
            window: (sizes >> 32) as u32,
        }
    }

    /// Whether a founder can have chosen these: else a state that follows from them could not be read back. Half of
    /// all seqnos are left for what comes.
    pub fn are_sound(&self) -> bool {
        (0..=SEQNO_MAX / 2).contains(&self.seqno) && self.window <= WINDOW_MAX
    }

    pub fn limits(&self) -> Limits {
        let window = if self.window == 0 { WINDOW_DEFAULT } else { self.window };
        Limits { window, keys_max: KEYS_MAX_DEFAULT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_stores_them_as_words() {
        let all = Constants { history: 7 << 90, seqno: 1 << 40, lineage: 3, views: 2, window: 512 };
        assert_eq!(Constants::from_words(all.words()), all);
        assert_eq!(all.limits().window, 512);
        assert_eq!(Constants::from_words([0; 5]), Constants::default());
        assert_eq!(Constants::default().limits().window, WINDOW_DEFAULT);
        assert!(all.are_sound() && Constants::default().are_sound());
        for seqno in [-1, Seqno::MIN, Seqno::MAX, SEQNO_MAX, SEQNO_MAX / 2 + 1] {
            assert!(!Constants { seqno, ..all }.are_sound(), "{seqno}");
        }
        assert!(!Constants { window: WINDOW_MAX + 1, ..all }.are_sound());
    }
}
