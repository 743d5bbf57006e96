//! As what an ordered write set comes to the appliers, whatever became of it.

use crate::order::DUMMY;
use quorate_certify::{flags, Outcome};

/// A write set that failed is still delivered, so that the position advances, but as a dummy: an isolated
/// action would be executed, and a fragment's failure would end its transaction here before it has ended
/// at home. There its fragments leave the database with the rollback fragment that its server sends now,
/// and a node that stopped in between would start with a transaction open that is over for the others.
pub fn delivered_flags(original: u32, outcome: &Outcome) -> u32 {
    match outcome {
        Outcome::Ok => original,
        Outcome::Duplicate => DUMMY,
        // Nothing that it could conflict with: it ends what it says, however old it is.
        _ if original & flags::ROLLBACK != 0 => original,
        Outcome::Conflict { .. } | Outcome::TooOld | Outcome::Orphan | Outcome::NotPrimary => DUMMY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_a_dummy_but_for_an_end_which_ends_however_it_comes() {
        let failed = [Outcome::Conflict { with: 3 }, Outcome::TooOld, Outcome::Orphan];
        let end = flags::ROLLBACK | flags::PA_UNSAFE;
        for outcome in failed {
            for kind in [flags::TRX_START, 0, flags::TRX_END, flags::ISOLATION] {
                assert_eq!(delivered_flags(kind, &outcome), DUMMY, "{kind:x} {outcome:?}");
            }
            assert_eq!(delivered_flags(end, &outcome), end, "{outcome:?}");
        }
        assert_eq!(delivered_flags(end, &Outcome::Duplicate), DUMMY);
    }
}
