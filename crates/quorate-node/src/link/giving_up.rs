//! The wait for the fate of a proposal, and the one rule of giving it up.
//!
//! A session that loses the quorum while its write set may be in some log gives up after a while:
//! the server rolls the transaction back, and should the write set turn out committed, the appliers
//! apply it like any other server's. Its outcome is *unknown*, and is told as that.
//!
//! Invariants:
//! - What was given up is kin to nothing that is proposed later (`Header::kin_epoch`): its session
//!   drops its locks, so what comes after it has not seen it, and would overwrite it, or be
//!   overwritten by it, whichever is ordered first. The epoch rises before the locks are dropped.
//! - What another life of this process proposed is kin to nothing of this one. A life is a start with its
//!   count of starts; but a member whose directory was set back to an older state may count one start
//!   twice, unnoticed, and then both lives have one process identity. The later one may have executed
//!   something before the earlier one's last write set was ordered, which can wait in the log of a
//!   deposed leader. So epochs begin at the clock ([`KinEpoch::of_life`]).
//! - An applier takes over only what is the whole transaction. A *fragment* is nothing without those
//!   before it, which the server has just rolled back; applied alone it would leave other data here
//!   than elsewhere. So the session of a *last* fragment waits until its fate is known, however long
//!   there is no quorum, or until this connection is closed: should it pass then, nothing from it on is
//!   for this start any more, and the next one takes the transaction up from the fragments that the
//!   database keeps. (It cannot wait for longer: an applier may wait for its rows, and the end of the
//!   connection for that applier.) Any other fragment may be given up, since its transaction can never
//!   commit without its server. Should it pass after all, it is a dummy here, and a rollback fragment
//!   follows it to the others.

use crate::fate::trx::{Fate, Trx};
use crate::link::Link;
use quorate_certify::{flags, Header};
use std::sync::atomic::{AtomicU16, Ordering};

/// Epochs begin below this one, and it is far from there to [`EPOCH_MAX`].
const FIRST_EPOCHS: u64 = 1 << 15;

/// Nothing of this epoch is given up before the connection is closing: there is none after it.
const EPOCH_MAX: u16 = u16::MAX;

/// The epoch of what is proposed next; see [`Header::kin_epoch`].
pub struct KinEpoch(AtomicU16);

impl KinEpoch {
    /// `began` differs from that of any other life of the process: seconds of its clock. Two that are
    /// less than nine hours apart never begin at one epoch, and as an epoch ends with the loss of a
    /// quorum, so less than once a second, the earlier one has not come to where the later one begins;
    /// of others one pair in 32,768 does. (A second life needs a rollback that nobody noticed.)
    pub fn of_life(began: u64) -> Self {
        Self(AtomicU16::new((began % FIRST_EPOCHS) as u16))
    }

    pub fn get(&self) -> u16 {
        self.0.load(Ordering::Acquire)
    }

    /// What `header` proposed was given up before it was sequenced.
    pub fn given_up(&self, header: &Header) {
        // A rollback fragment changes no row, and an isolated action is kin to nothing.
        if !header.has(flags::ROLLBACK | flags::ISOLATION) {
            self.end(header.kin_epoch);
        }
    }

    /// Something of the epoch `of` was given up. Many at once, as when a quorum is lost, end it once.
    fn end(&self, of: u16) {
        self.0.fetch_max(of.saturating_add(1), Ordering::AcqRel);
    }
}

impl Link {
    /// Blocks until the fate of what `header` proposed for `trx` is known. None: it was given up.
    pub fn await_fate(&self, trx: &Trx, header: &Header) -> Option<Fate> {
        let patient = is_patient(header);
        let over = || if patient { self.closing() } else { self.abandoned() };
        let mut state = trx.await_fate(trx.lock(), over);
        if state.fate.is_none() {
            drop(state);
            if self.give_up(header) {
                return None;
            }
            // The sequencer had taken the handle: its verdict is here, or on the way.
            state = trx.await_fate(trx.lock(), || false);
        }
        state.fate.clone()
    }

    /// False: too late, the sequencer has it.
    fn give_up(&self, header: &Header) -> bool {
        let fragment = is_fragment(header.flags) && !header.has(flags::ROLLBACK);
        if fragment {
            // Noted first: who is not found among the waiting ones is found here.
            self.given_up.lock().insert(header.serial);
        }
        let in_time = self.settle(header.serial).is_some();
        if fragment && !in_time {
            self.given_up.lock().remove(&header.serial);
        }
        if in_time {
            self.kin_epoch.given_up(header);
        }
        in_time
    }

    /// Whether a fragment that nobody waits for was given up; told once.
    pub fn was_given_up(&self, serial: u64) -> bool {
        self.given_up.lock().remove(&serial)
    }
}

/// Whether the session of what `header` proposed waits for its fate however long there is no quorum.
pub fn is_patient(header: &Header) -> bool {
    is_last_fragment(header.flags) || header.kin_epoch == EPOCH_MAX
}

/// Whether it takes other write sets to make a transaction of this one.
pub fn is_fragment(ws_flags: u32) -> bool {
    let whole = flags::TRX_START | flags::TRX_END;
    ws_flags & whole != whole
}

/// Whether it is the last one of several.
pub fn is_last_fragment(ws_flags: u32) -> bool {
    is_fragment(ws_flags) && ws_flags & flags::TRX_END != 0
}

/// Whether a proposal with these flags takes effect if it passes, though nobody waits for it.
pub fn takes_effect_alone(ws_flags: u32) -> bool {
    !is_fragment(ws_flags) || is_last_fragment(ws_flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_epoch_ends_once_however_many_of_it_are_given_up() {
        let epoch = KinEpoch::of_life(0);
        epoch.end(0);
        epoch.end(0);
        assert_eq!(epoch.get(), 1);
        epoch.end(1);
        epoch.end(0);
        assert_eq!(epoch.get(), 2);
        epoch.end(EPOCH_MAX - 1);
        epoch.end(EPOCH_MAX);
        assert_eq!(epoch.get(), EPOCH_MAX, "it does not wrap");
    }

    #[test]
    fn two_lives_of_a_process_do_not_begin_at_one_epoch() {
        let (noon, mut epochs) = (1_700_000_000, BTreeSet::new());
        assert!((0..FIRST_EPOCHS).all(|s| epochs.insert(KinEpoch::of_life(noon + s).get())));
        assert!(epochs.iter().all(|epoch| *epoch < EPOCH_MAX / 2 + 1), "each can end often");
    }

    #[test]
    fn fragments_are_told_from_what_is_whole() {
        let (start, end) = (flags::TRX_START, flags::TRX_END);
        let kinds = [
            (start | end, false, true),
            (start | end | flags::ISOLATION, false, true),
            (start, true, false),
            (0, true, false),
            (end | flags::PA_UNSAFE, true, true),
            (flags::ROLLBACK | flags::PA_UNSAFE, true, false),
        ];
        for (kind, fragment, effect) in kinds {
            assert_eq!(
                (is_fragment(kind), takes_effect_alone(kind)),
                (fragment, effect),
                "{kind:x}"
            );
        }
    }
}
