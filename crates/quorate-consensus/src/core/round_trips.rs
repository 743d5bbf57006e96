//! How far the others are, as measured by questions and their answers: heartbeats of a leader,
//! pre-votes of a candidate. Timers that wait for an answer are no shorter.

use super::Consensus;
use crate::types::MemberId;
use std::collections::BTreeMap;

/// An answer later than this many election timeouts says more of the peer than of the distance.
const CREDIBLE_TIMEOUTS: u64 = 2;

#[derive(Default)]
pub(super) struct RoundTrips {
    /// Smoothed, in milliseconds.
    known: BTreeMap<MemberId, u64>,
    /// When pre-votes were asked for; none if not exactly once, for then it is not known which
    /// question an answer is to.
    asked_ms: Option<u64>,
    asking: bool,
}

impl RoundTrips {
    /// Pre-votes are asked for.
    pub fn ask(&mut self, now_ms: u64) {
        self.asked_ms = (!self.asking).then_some(now_ms);
        self.asking = true;
    }

    /// A leader is there: the next question is a new one.
    pub fn settle(&mut self) {
        (self.asked_ms, self.asking) = (None, false);
    }

    /// The answer to [`RoundTrips::ask`].
    pub fn answered(&mut self, from: MemberId, now_ms: u64) {
        if let Some(asked_ms) = self.asked_ms {
            self.learn(from, now_ms.saturating_sub(asked_ms));
        }
    }

    pub fn learn(&mut self, peer: MemberId, sample_ms: u64) {
        let known = self.known.entry(peer).or_insert(sample_ms);
        *known = known.saturating_mul(7).saturating_add(sample_ms) / 8;
    }
}

impl Consensus {
    /// The round trip to the farthest voter known of.
    pub(super) fn farthest_ms(&self) -> u64 {
        let credible_ms = self.options.election_timeout_ms.saturating_mul(CREDIBLE_TIMEOUTS);
        let voters = self.round_trips.known.iter().filter(|(id, _)| self.config().is_voter(**id));
        voters.map(|(_, round_trip_ms)| *round_trip_ms).max().unwrap_or(0).min(credible_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_to_a_single_question_count() {
        let (far, near) = (MemberId(1), MemberId(2));
        let mut trips = RoundTrips::default();
        trips.ask(100);
        trips.answered(far, 180);
        assert_eq!(trips.known[&far], 80);
        trips.ask(300);
        trips.answered(near, 900);
        assert!(!trips.known.contains_key(&near), "to which of the two questions?");
        trips.settle();
        trips.ask(1000);
        trips.answered(near, 1001);
        trips.answered(far, 1160);
        assert_eq!((trips.known[&near], trips.known[&far]), (1, 90));
    }
}
