//! What members say: votes and terms, held against what they said before and what is on their disks.

use super::{Oracle, Rule};
use quorate_consensus::{HardState, MemberId, Term};

#[derive(Clone, Copy, Default)]
pub struct Voice {
    /// The highest term this member spoke in.
    term: Term,
    /// Whom it granted its last vote.
    granted: Option<(Term, MemberId)>,
    /// What it wants on its disk, and what is certainly there.
    hard: HardState,
    durable: HardState,
}

impl Oracle {
    /// What `member` wanted on its disk last is there.
    pub fn hard_state_saved(&mut self, member: MemberId) {
        let voice = self.voice(member);
        voice.durable = voice.hard;
    }

    /// `member` starts as an older state of itself: what it said since is forgotten there.
    pub fn rolled_back(&mut self, member: MemberId, state: HardState) {
        *self.voice(member) = Voice { hard: state, durable: state, ..Voice::default() };
    }

    /// `member` starts with this term and vote on its disk.
    pub fn restarted(&mut self, member: MemberId, state: HardState) {
        let voice = self.voice(member);
        let before = voice.durable;
        (voice.hard, voice.durable) = (state, state);
        self.fail_if(goes_back(before, state), Rule::VoteOnlyPersisted, || {
            format!("{member:?} finds {state:?} on its disk, where it had {before:?}")
        });
    }

    /// `member` must put `state` on disk.
    pub fn hard_state(&mut self, member: MemberId, state: HardState) {
        let before = std::mem::replace(&mut self.voice(member).hard, state);
        self.fail_if(goes_back(before, state), Rule::TermNeverGoesBack, || {
            format!("{member:?} replaces {before:?} by {state:?}")
        });
    }

    /// `member` sends a message of its own term.
    pub fn spoke(&mut self, member: MemberId, term: Term) {
        let voice = self.voice(member);
        let before = voice.term;
        voice.term = before.max(term);
        self.fail_if(term < before, Rule::TermNeverGoesBack, || {
            format!("{member:?} speaks in term {term} after it spoke in term {before}")
        });
    }

    pub fn voted(&mut self, member: MemberId, term: Term, candidate: MemberId) {
        let voice = self.voice(member);
        let before = voice.granted.replace((term, candidate));
        let twice = before.filter(|(voted_in, other)| *voted_in == term && *other != candidate);
        self.fail_for(twice, Rule::OneVotePerTerm, |(_, other)| {
            format!("{member:?} votes for {candidate:?} and {other:?} in term {term}")
        });
    }

    pub(super) fn term_on_disk(&mut self, member: MemberId) -> Term {
        self.voice(member).durable.term
    }

    fn voice(&mut self, member: MemberId) -> &mut Voice {
        self.voices.entry(member).or_default()
    }
}

/// To an earlier term, or from one vote in it to another, or to none.
fn goes_back(before: HardState, after: HardState) -> bool {
    let other_vote = before.voted_for.is_some() && after.voted_for != before.voted_for;
    after.term < before.term || (after.term == before.term && other_vote)
}
