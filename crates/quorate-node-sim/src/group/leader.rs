//! Who leads, and whose writes count: everybody's, or in single-primary mode the leader's of each term.

use super::log::State;
use super::{id_of, member::Member};
use crate::baton::installed;
use bytes::Bytes;
use quorate_certify::WriteSet;
use quorate_consensus::{MemberId, Primaries, Rules, Term};
use quorate_live::Observer;
use std::collections::BTreeMap;

/// Of a thousand ticks, after how many an operator has somebody else lead.
const MOVES: u32 = 15;

#[derive(Default)]
pub(super) struct Mode {
    pub(super) rules: Rules,
    pub(super) term: Term,
    pub(super) lead: Option<usize>,
    leaders: BTreeMap<Term, usize>,
    /// Leadership stays where it is as long as it can.
    pub(super) steady: bool,
}

impl Mode {
    pub(super) fn choose() -> Self {
        let (single, failover_waits) = installed().random(|rng| (rng.chance(250), rng.chance(500)));
        let primaries = if single { Primaries::Single } else { Primaries::Multi };
        let rules = Rules { primaries, failover_waits, ..Rules::default() };
        Self { rules, ..Self::default() }
    }

    pub(super) fn is_single(&self) -> bool {
        self.rules.primaries == Primaries::Single
    }

    /// Under which entries are appended, where that matters.
    pub(super) fn primary_term(&self) -> Option<Term> {
        self.is_single().then_some(self.term)
    }

    pub(super) fn primary(&self) -> Option<MemberId> {
        self.lead.filter(|_| self.is_single()).map(id_of)
    }

    /// A write set that says that its node led in a term in which another did.
    pub(super) fn impostor(&self, data: &Bytes) -> Option<String> {
        let write_set = WriteSet::parse(data.clone()).ok()?;
        let header = write_set.header();
        let leader = *self.leaders.get(&header.term)?;
        // A process has its member's id in the low half.
        let led = header.origin as u32 == id_of(leader).0 as u32;
        (!led).then(|| {
            format!(
                "{:x} writes as the primary of term {}, n{leader}'s",
                header.origin, header.term
            )
        })
    }
}

impl State {
    /// Somebody else leads if the leader is gone; and now and then so.
    pub(super) fn settle_leader(&mut self) -> bool {
        let leads = self.mode.lead.is_some_and(|node| self.in_contact(node));
        let moves = self.mode.is_single()
            && !self.mode.steady
            && installed().random(|rng| rng.chance(MOVES));
        if leads && !moves {
            return false;
        }
        let able: Vec<usize> =
            (0..self.places.len()).filter(|node| self.in_contact(*node)).collect();
        if able.is_empty() {
            self.mode.lead = None;
            return false;
        }
        let node = installed().random(|rng| able[rng.index(able.len())]);
        self.mode.term += 1;
        self.mode.lead = Some(node);
        self.mode.leaders.insert(self.mode.term, node);
        moves
    }
}

impl Member {
    /// What this member knows of the leader: the term, who it is, and whether it is this one itself.
    pub(super) fn leader_seen(&self, state: &State) -> (Term, Option<MemberId>, bool) {
        // Who leads does so until another does, in another term: it never leads again in the same one.
        let leads = state.mode.lead == Some(self.node);
        let lead = state.mode.lead.filter(|_| leads || state.in_contact(self.node));
        (state.mode.term, lead.map(id_of), leads)
    }

    pub(super) fn tell_rules(&self, observer: &dyn Observer) {
        let rules = self.network.state.lock().mode.rules;
        observer.rules(rules);
    }
}
