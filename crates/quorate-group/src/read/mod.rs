//! Linearizable read points, one round for all who wait.
//!
//! Invariant: a caller is answered only by a round that was asked for after it came. While a
//! round is under way, newcomers gather for the next.

use quorate_consensus::{Index, ReadReady};

#[derive(Default)]
pub(crate) struct Reads {
    /// The round new callers join.
    gathering: u64,
    /// A round that was asked for: its ctx, and when.
    asked: Option<(u64, u64)>,
    waiting: Vec<Waiting>,
}

struct Waiting {
    order: u64,
    round: u64,
    began_ms: u64,
    deadline_ms: u64,
}

impl Reads {
    pub fn join(&mut self, order: u64, now_ms: u64, deadline_ms: u64) {
        let round = self.gathering;
        self.waiting.push(Waiting { order, round, began_ms: now_ms, deadline_ms });
    }

    /// The ctx to ask the core for, if somebody waits and no round is under way.
    pub fn start_round(&mut self, now_ms: u64) -> Option<u64> {
        if self.asked.is_some() || self.waiting.is_empty() {
            return None;
        }
        let ctx = self.gathering;
        self.gathering += 1;
        self.asked = Some((ctx, now_ms));
        Some(ctx)
    }

    /// The core's word on a round: tells `answer` who has which read point. Without an index no
    /// leader could confirm it; [`Reads::give_up`] asks again.
    pub fn answered(&mut self, ready: ReadReady, mut answer: impl FnMut(u64, Index)) {
        let asked = self.asked.is_some_and(|(asked, _)| asked == ready.ctx);
        let Some(index) = ready.index.filter(|_| asked) else { return };
        self.asked = None;
        self.waiting.retain(|waiting| {
            let covered = waiting.round <= ready.ctx;
            if covered {
                answer(waiting.order, index);
            }
            !covered
        });
    }

    /// Gives up a round older than `patience_ms` (lost with a message or a leader), so that it is
    /// asked for again.
    pub fn give_up(&mut self, now_ms: u64, patience_ms: u64) {
        self.asked = self.asked.filter(|(_, since)| now_ms.saturating_sub(*since) < patience_ms);
    }

    /// Tells `answer` whom nobody answered in time, and for how long it waited.
    pub fn expire(&mut self, now_ms: u64, mut answer: impl FnMut(u64, u64)) {
        self.waiting.retain(|waiting| {
            let expired = now_ms >= waiting.deadline_ms;
            if expired {
                answer(waiting.order, now_ms.saturating_sub(waiting.began_ms));
            }
            !expired
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(reads: &mut Reads, ctx: u64, index: Option<Index>) -> Vec<(u64, Index)> {
        let mut answers = Vec::new();
        reads.answered(ReadReady { ctx, index }, |order, index| answers.push((order, index)));
        answers
    }

    #[test]
    fn callers_gather_for_the_round_after_theirs() {
        let mut reads = Reads::default();
        reads.join(7, 0, 100);
        assert_eq!(reads.start_round(0), Some(0));
        reads.join(8, 0, 100);
        reads.join(9, 0, 100);
        assert_eq!(reads.start_round(0), None, "one round at a time");
        assert_eq!(answered(&mut reads, 0, Some(5)), [(7, 5)]);
        assert_eq!(reads.start_round(0), Some(1));
        assert_eq!(answered(&mut reads, 1, Some(9)), [(8, 9), (9, 9)]);
        assert_eq!(reads.start_round(0), None);
    }

    #[test]
    fn a_lost_round_is_asked_again_and_its_late_answer_counts_for_nothing() {
        let mut reads = Reads::default();
        reads.join(7, 0, 100);
        assert_eq!(reads.start_round(0), Some(0));
        assert!(answered(&mut reads, 0, None).is_empty());
        reads.give_up(9, 10);
        assert_eq!(reads.start_round(9), None);
        reads.give_up(10, 10);
        assert_eq!(reads.start_round(10), Some(1));
        assert!(answered(&mut reads, 0, Some(1)).is_empty());
        assert_eq!(answered(&mut reads, 1, Some(2)), [(7, 2)]);
    }

    #[test]
    fn nobody_answers() {
        let mut reads = Reads::default();
        reads.join(7, 40, 100);
        reads.join(8, 50, 300);
        let mut expired = Vec::new();
        reads.expire(110, |order, waited| expired.push((order, waited)));
        assert_eq!(expired, [(7, 70)]);
    }
}
