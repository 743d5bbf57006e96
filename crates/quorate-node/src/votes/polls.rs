//! What this node knows of the polls on errors that concern it, and the wait for their results.

use crate::blocking::{Condvar, Mutex};
use crate::start::failed::Past;
use crate::withdraw::Waits;
use quorate_certify::votes::{Ballot, SUCCESS};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// A minute, with the time that is waited before each.
const CLOSES_IN_DOUBT: u32 = 6;

/// The polls that concern this node.
pub struct Polls {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    /// Errors met here, whose results are waited for.
    failed: BTreeMap<i64, Wait>,
    /// Polls that were opened before this node was past their seqno.
    ahead: BTreeSet<i64>,
    /// Results that `failed` or `ahead` are for.
    results: BTreeMap<i64, u64>,
    /// DDL that was not executed again after a restart: whatever its result, it stands here.
    excused: BTreeSet<i64>,
}

/// This node waits for the result of a poll.
#[derive(Default)]
struct Wait {
    /// It has tried to close the poll, and has not heard what came of it.
    closes: bool,
    /// How often it could not be closed, and was in doubt.
    in_doubt: u32,
    /// Who had said nothing yet when that was last tried.
    awaited: Vec<u128>,
}

/// What a node past a seqno owes the poll on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owed {
    Nothing,
    Ballot(Ballot),
    /// It succeeded here, and an error won.
    Leaving,
}

/// There is no result in time.
pub struct TimedOut;

/// What is to be done about a poll that concerns this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Nothing, or somebody waits for it already.
    Awaited,
    Owes(Owed),
    /// Once this node is past it. `again`: that was said before.
    Later {
        again: bool,
    },
}

impl Polls {
    pub fn new() -> Self {
        Self { inner: Mutex::default(), changed: Condvar::new() }
    }

    pub fn begin_connection(&self) {
        *self.inner.lock() = Inner::default();
    }

    /// The DDL of this seqno was not executed again after a restart.
    pub fn excuse(&self, seqno: i64) {
        self.inner.lock().excused.insert(seqno);
    }

    /// An error was met at `seqno`, whose result will be waited for.
    pub fn expect(&self, seqno: i64) {
        self.inner.lock().failed.insert(seqno, Wait::default());
    }

    /// This node is about to try to close the poll on `seqno`. Who was waited for when it last did.
    pub fn closes(&self, seqno: i64) -> Vec<u128> {
        let mut inner = self.inner.lock();
        let Some(wait) = inner.failed.get_mut(&seqno) else { return Vec::new() };
        wait.closes = true;
        wait.awaited.clone()
    }

    /// This node has tried in vain to close the poll on `seqno`, where `awaited` have said nothing yet. After some tries
    /// where that was in doubt, it takes its own error for wrong: that costs nobody else anything. Tries that come by
    /// all at once, after a time without a leader, are one.
    pub fn not_closed(&self, seqno: i64, in_doubt: bool, awaited: Vec<u128>) {
        let mut inner = self.inner.lock();
        let Some(wait) = inner.failed.get_mut(&seqno) else { return };
        wait.awaited = awaited;
        if std::mem::take(&mut wait.closes) && in_doubt {
            wait.in_doubt += 1;
        }
        if wait.in_doubt >= CLOSES_IN_DOUBT {
            inner.results.entry(seqno).or_insert(SUCCESS);
            self.changed.notify_all();
        }
    }

    pub fn has_result(&self, seqno: i64) -> bool {
        self.inner.lock().results.contains_key(&seqno)
    }

    /// Blocks until there is a result for `seqno`, or `give_up` says so: then that is taken (`None`: there
    /// is none).
    pub fn wait(
        &self,
        seqno: i64,
        until: Instant,
        give_up: impl Fn() -> bool,
    ) -> Result<Option<u64>, TimedOut> {
        let mut inner = self.inner.lock();
        while !inner.results.contains_key(&seqno)
            && !give_up()
            && !self.changed.wait_until(&mut inner, until).timed_out()
        {}
        if inner.results.contains_key(&seqno) || give_up() {
            inner.failed.remove(&seqno);
            inner.ahead.remove(&seqno);
            return Ok(inner.results.remove(&seqno));
        }
        Err(TimedOut)
    }

    /// The poll on `seqno` had ended before this node's ballot came.
    pub fn late(&self, seqno: i64, result: u64) {
        let mut inner = self.inner.lock();
        if inner.failed.contains_key(&seqno) {
            inner.results.insert(seqno, result);
            self.changed.notify_all();
        }
    }

    /// A poll was opened. `past`: how it went here, if this node is past it.
    pub fn opened(&self, seqno: i64, past: impl FnOnce() -> Option<Past>) -> Turn {
        let mut inner = self.inner.lock();
        if inner.failed.contains_key(&seqno) {
            return Turn::Awaited;
        }
        let again = !inner.ahead.insert(seqno);
        match past() {
            Some(past) => Turn::Owes(inner.passed(seqno, past)),
            None => Turn::Later { again },
        }
    }

    /// A poll has ended. `past`: how it went here, if this node is past it.
    pub fn decided(&self, seqno: i64, result: u64, past: impl FnOnce() -> Option<Past>) -> Turn {
        let mut inner = self.inner.lock();
        inner.results.insert(seqno, result);
        if inner.failed.contains_key(&seqno) || inner.ahead.contains(&seqno) {
            self.changed.notify_all();
            return Turn::Awaited;
        }
        inner.ahead.insert(seqno);
        match past() {
            Some(past) => Turn::Owes(inner.passed(seqno, past)),
            // It was opened and closed with one ballot, before this node came to it.
            None => Turn::Later { again: false },
        }
    }

    /// This node is past `seqno`, where it went like that.
    pub fn passed(&self, seqno: i64, past: Past) -> Owed {
        self.inner.lock().passed(seqno, past)
    }

    /// The first poll below `seqno` that this node has not answered, and what it owes it.
    pub fn first_below(&self, seqno: i64, past: impl FnOnce(i64) -> Past) -> Option<(i64, Owed)> {
        let mut inner = self.inner.lock();
        let first = inner.ahead.first().copied().filter(|s| *s < seqno)?;
        Some((first, inner.passed(first, past(first))))
    }
}

impl Waits for Polls {
    fn wake(&self) {
        let _inner = self.inner.lock();
        self.changed.notify_all();
    }
}

impl Inner {
    /// This node is past `seqno`, and did not fail there unless it says so in `failed`.
    fn passed(&mut self, seqno: i64, past: Past) -> Owed {
        if !self.ahead.remove(&seqno) || self.failed.contains_key(&seqno) {
            return Owed::Nothing;
        }
        let excused = self.excused.contains(&seqno);
        match (self.results.remove(&seqno), past) {
            (None, Past::Error(ballot)) => Owed::Ballot(ballot),
            (None, _) if excused => Owed::Ballot(Ballot::Abstain),
            (None, Past::Success | Past::Settled) => Owed::Ballot(Ballot::Success),
            (Some(result), Past::Error(mine)) if Some(result) != mine.digest() => Owed::Leaving,
            (Some(SUCCESS), _) | (Some(_), Past::Error(_) | Past::Settled) => Owed::Nothing,
            (Some(_), Past::Success) if excused => Owed::Nothing,
            (Some(_), Past::Success) => Owed::Leaving,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_past_owes_success_once_and_leaves_where_an_error_won() {
        let mut polls = Inner::default();
        assert_eq!(polls.passed(5, Past::Success), Owed::Nothing, "nobody asked");
        polls.ahead.insert(5);
        assert_eq!(polls.passed(5, Past::Success), Owed::Ballot(Ballot::Success));
        assert_eq!(polls.passed(5, Past::Success), Owed::Nothing);
        polls.ahead.insert(6);
        polls.results.insert(6, 9);
        assert_eq!(polls.passed(6, Past::Success), Owed::Leaving);
        polls.ahead.insert(7);
        polls.results.insert(7, SUCCESS);
        assert_eq!(polls.passed(7, Past::Success), Owed::Nothing);
        assert!(polls.results.is_empty());
        for (past, owed) in [
            (Past::Settled, Owed::Nothing),
            (Past::Error(Ballot::Error(9)), Owed::Nothing),
            (Past::Error(Ballot::Dissent(8)), Owed::Leaving),
        ] {
            polls.ahead.insert(8);
            polls.results.insert(8, 9);
            assert_eq!(polls.passed(8, past), owed, "known from before a restart: {past:?}");
        }
    }

    #[test]
    fn a_ddl_that_was_not_repeated_goes_with_any_result() {
        let mut polls = Inner::default();
        polls.excused.insert(5);
        polls.ahead.insert(5);
        assert_eq!(polls.passed(5, Past::Success), Owed::Ballot(Ballot::Abstain));
        polls.ahead.insert(5);
        polls.results.insert(5, 9);
        assert_eq!(polls.passed(5, Past::Success), Owed::Nothing);
    }

    #[test]
    fn who_cannot_close_a_poll_in_doubt_takes_its_own_error_for_wrong() {
        let polls = Polls::new();
        polls.expect(5);
        for tried in 1..CLOSES_IN_DOUBT {
            assert_eq!(polls.closes(5), vec![7; usize::from(tried > 1)]);
            // It may come by more than once.
            (0..9).for_each(|_| polls.not_closed(5, true, vec![7]));
            polls.closes(5);
            polls.not_closed(5, false, vec![7]);
            assert!(!polls.has_result(5));
        }
        polls.closes(5);
        polls.not_closed(5, true, Vec::new());
        assert!(matches!(polls.wait(5, Instant::now(), || false), Ok(Some(SUCCESS))));
        // Of others it knows nothing.
        (0..=CLOSES_IN_DOUBT).for_each(|_| polls.not_closed(6, true, Vec::new()));
        assert!(!polls.has_result(6));
    }
}
