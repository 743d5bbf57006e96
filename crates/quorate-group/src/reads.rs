//! Linearizable read points, one round for all who wait.
//!
//! Invariant: a caller is answered only by a round that was asked for after it came. While a
//! round is under way, newcomers gather for the next.

use parking_lot::{Condvar, Mutex};
use quorate_consensus::Index;
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct Reads {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    /// The round new callers join.
    gathering: u64,
    /// A round that was asked for: its ctx, and when.
    asked: Option<(u64, Instant)>,
    /// Highest answered round, and its read point. A later round's point covers earlier callers.
    answer: Option<(u64, Index)>,
    closed: bool,
}

impl Reads {
    /// Joins a round; `ask` is called (without locks) whenever a ctx is to be asked for.
    /// `None`: nobody answered in time.
    pub fn wait(&self, timeout: Duration, ask: &dyn Fn(u64)) -> Option<Index> {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        let round = state.gathering;
        while !state.closed {
            if let Some((answered, index)) = state.answer {
                if answered >= round {
                    return Some(index);
                }
            }
            if let Some(ctx) = state.start_round() {
                drop(state);
                ask(ctx);
                state = self.state.lock();
                continue;
            }
            if self.answered.wait_until(&mut state, deadline).timed_out() {
                return None;
            }
        }
        None
    }

    /// Nobody is answered any more.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.answered.notify_all();
    }

    /// The core's word on `ctx`. `None`: no leader could confirm it; `retry` asks again.
    pub fn answer(&self, ctx: u64, index: Option<Index>) {
        let mut state = self.state.lock();
        if state.asked.is_some_and(|(asked, _)| asked == ctx) {
            if let Some(index) = index {
                state.answer = Some((ctx, index));
                state.asked = None;
                drop(state);
                self.answered.notify_all();
            }
        }
    }

    /// Gives up a round older than `patience` (lost with a message or a leader), so that its
    /// callers ask again.
    pub fn retry(&self, patience: Duration) {
        let mut state = self.state.lock();
        if state.asked.is_some_and(|(_, since)| since.elapsed() >= patience) {
            state.asked = None;
            drop(state);
            self.answered.notify_all();
        }
    }
}

impl State {
    /// Closes the gathering round and makes its ctx the asked one, unless one is under way.
    fn start_round(&mut self) -> Option<u64> {
        if self.asked.is_some() {
            return None;
        }
        let ctx = self.gathering;
        self.gathering += 1;
        self.asked = Some((ctx, Instant::now()));
        Some(ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn callers_gather_for_the_round_after_theirs() {
        let reads = Reads::default();
        let asked = AtomicU64::new(u64::MAX);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                reads.wait(Duration::from_secs(10), &|ctx| asked.store(ctx, Ordering::SeqCst))
            });
            while asked.load(Ordering::SeqCst) != 0 {
                std::thread::yield_now();
            }
            let second = scope.spawn(|| {
                reads.wait(Duration::from_secs(10), &|ctx| {
                    asked.store(ctx, Ordering::SeqCst);
                    reads.answer(ctx, Some(9));
                })
            });
            reads.answer(0, Some(5));
            // The later point covers the earlier caller, should it wake up late.
            assert!(matches!(first.join().unwrap(), Some(5 | 9)));
            assert_eq!(second.join().unwrap(), Some(9));
        });
    }

    #[test]
    fn a_lost_round_is_asked_again_and_its_late_answer_counts_for_nothing() {
        let reads = Reads::default();
        let rounds = Mutex::new(Vec::new());
        let index = std::thread::scope(|scope| {
            let caller =
                scope.spawn(|| reads.wait(Duration::from_secs(10), &|ctx| rounds.lock().push(ctx)));
            while rounds.lock().is_empty() {
                std::thread::yield_now();
            }
            reads.answer(0, None);
            reads.retry(Duration::ZERO);
            while rounds.lock().len() < 2 {
                std::thread::yield_now();
            }
            reads.answer(0, Some(1));
            reads.answer(1, Some(2));
            caller.join().unwrap()
        });
        assert_eq!(index, Some(2));
    }

    #[test]
    fn nobody_answers() {
        let reads = Reads::default();
        assert_eq!(reads.wait(Duration::from_millis(5), &|_| {}), None);
    }
}
