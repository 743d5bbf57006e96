//! The term of every entry, as runs.

use quorate_consensus::{Index, LogPosition, Term};
use std::collections::VecDeque;

/// `(first index, term)` of each run of entries with the same term, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TermRuns(VecDeque<(Index, Term)>);

impl TermRuns {
    /// The log was extended by the entry at `position`.
    pub(crate) fn push(&mut self, position: LogPosition) {
        if self.0.back().is_none_or(|&(_, term)| term != position.term) {
            self.0.push_back((position.index, position.term));
        }
    }

    /// Everything after `last` was cut off.
    pub(crate) fn truncate(&mut self, last: Index) {
        while self.0.back().is_some_and(|&(first, _)| first > last) {
            self.0.pop_back();
        }
    }

    /// Everything up to `base` was purged.
    pub(crate) fn release(&mut self, base: Index) {
        while self.0.get(1).is_some_and(|&(first, _)| first <= base + 1) {
            self.0.pop_front();
        }
        if let Some(front) = self.0.front_mut() {
            front.0 = front.0.max(base + 1);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The term at `index`, which must not be after the last entry; `None` before the first run.
    pub(crate) fn term_at(&self, index: Index) -> Option<Term> {
        let after = self.0.partition_point(|&(first, _)| first <= index);
        after.checked_sub(1).map(|run| self.0[run].1)
    }

    pub(crate) fn to_vec(&self) -> Vec<(Index, Term)> {
        self.0.iter().copied().collect()
    }
}
