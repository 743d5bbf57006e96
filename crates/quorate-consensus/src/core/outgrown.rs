//! Members without a vote that are in a later term than their leader: a voter that stood in vain before it became
//! a learner, or a learner that followed a majority which was given up by force. They take nothing from a leader of
//! a former term, and depose none ([`super::believed`]): so the leader has itself elected again, in a term beyond
//! theirs.
//!
//! Invariants:
//! - only a leader that a quorum has confirmed since it heard of them does so: one that was deposed, unknown to
//!   itself, learns of that from the voters that it asks;
//! - it never leads its group further on than elections do: who is ahead by more than those is left behind;
//! - once in ten minutes at most, whoever says what: an election among members that are all there takes a moment, in
//!   which nothing is decided. Any other election has them follow again, too.

use super::{Consensus, Role};
use crate::effects::Effects;
use crate::types::Term;

const PAUSE_MS: u64 = 600_000;

/// By so many terms at most is somebody ahead that stood in vain. A voter that was away for years still follows.
const TERMS_MAX: Term = 1 << 20;

/// What a member without a vote was ahead by.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    term: Term,
    /// The round that is to be confirmed first.
    round: u64,
}

impl Consensus {
    /// A member without a vote has answered from a later term.
    pub(super) fn note_ahead(&mut self, term: Term) {
        if self.now_ms < self.outgrow_due_ms || term.saturating_sub(self.hard.term) > TERMS_MAX {
            return;
        }
        if let Some(leadership) = self.leadership() {
            let round = leadership.rounds.current + 1;
            let ahead = leadership.ahead.get_or_insert(Ahead { term, round });
            ahead.term = ahead.term.max(term);
        }
    }

    /// Stands for election beyond the term of those that are ahead, if that is due.
    pub(super) fn outgrows(&mut self, fx: &mut Effects) -> bool {
        let Role::Leader(leadership) = &self.role else { return false };
        let confirmed = |ahead: &Ahead| self.confirmed_round(leadership) >= ahead.round;
        let Some(ahead) = leadership.ahead.filter(confirmed) else { return false };
        if leadership.transfer.is_some() {
            return false;
        }
        self.outgrow_due_ms = self.now_ms.saturating_add(PAUSE_MS);
        self.become_follower(ahead.term, None, fx);
        self.campaign(true, fx);
        true
    }
}
