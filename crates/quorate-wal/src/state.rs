//! The log as its users see it: what they queued counts at once, what the disk holds follows.
//!
//! Invariants: `base <= last`; `persisted` never covers an entry that a queued truncation or reset
//! takes back or that was appended after one; the cache holds every entry after `persisted`; the
//! index holds every entry that the cache does not.
//!
//! Until a reset is on disk, a start may find the log before it, which does not reach to the base of the
//! new one. The index is still of that log, `base` is not: so nothing is released meanwhile.

use crate::cache::Cache;
use crate::error::WalError;
use crate::index::{Placement, SparseIndex};
use crate::meta::Place;
use crate::options::{WalOptions, WalStats};
use crate::segment::Segment;
use crate::term_runs::TermRuns;
use quorate_consensus::{Entry, Index, LogPosition, Term};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Work for the writer, in order.
pub(crate) enum Op {
    Append(Entry),
    /// Nothing after this position counts any more.
    Truncate(LogPosition),
    Reset(LogPosition),
    /// Everything before is synced; put by the writer itself when it is idle.
    Mark,
}

pub(crate) struct State {
    pub(crate) base: LogPosition,
    pub(crate) last: LogPosition,
    pub(crate) persisted: LogPosition,
    /// How far the files are synced.
    pub(crate) synced: Place,
    pub(crate) runs: TermRuns,
    pub(crate) cache: Cache,
    pub(crate) index: SparseIndex,
    pub(crate) stats: WalStats,
    pub(crate) failed: Option<Arc<WalError>>,
    pub(crate) closing: bool,
    /// The writer waits to be woken.
    pub(crate) idle: bool,
    queue: VecDeque<Op>,
    /// The lowest index that a queued truncation leaves.
    queued_cut: Option<Index>,
    queued_reset: bool,
    /// The batch that the writer took begins with a reset, and is not on disk yet.
    taken_reset: bool,
    /// Segments were recycled since the writer found no room.
    pub(crate) room_made: bool,
}

/// Segments that are no longer part of the log.
pub(crate) struct Released {
    pub(crate) base: LogPosition,
    pub(crate) first_segment: u64,
    pub(crate) segments: Vec<Arc<Segment>>,
}

impl State {
    pub(crate) fn new(
        base: LogPosition,
        last: LogPosition,
        runs: TermRuns,
        index: SparseIndex,
        synced: Place,
        cache_bytes: usize,
    ) -> Self {
        State {
            base,
            last,
            persisted: last,
            synced,
            runs,
            cache: Cache::new(cache_bytes),
            index,
            stats: WalStats::default(),
            failed: None,
            closing: false,
            idle: false,
            queue: VecDeque::new(),
            queued_cut: None,
            queued_reset: false,
            taken_reset: false,
            room_made: false,
        }
    }

    pub(crate) fn is_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn append(&mut self, entries: &[Entry]) -> Result<(), WalError> {
        for entry in entries {
            if entry.index != self.last.index + 1 || entry.term < self.last.term {
                return Err(WalError::OutOfOrder { entry: entry.position(), last: self.last });
            }
            self.last = entry.position();
            self.runs.push(self.last);
            self.cache.push(entry.clone());
            self.queue.push_back(Op::Append(entry.clone()));
        }
        Ok(())
    }

    /// Cuts off `from` and everything behind it, never the base.
    pub(crate) fn truncate(&mut self, from: Index) {
        let index = from.saturating_sub(1).max(self.base.index);
        if index >= self.last.index {
            return;
        }
        let term = self.term_at(index).expect("between base and last");
        self.last = LogPosition { term, index };
        self.runs.truncate(index);
        self.cache.truncate(index);
        if self.persisted.index > index {
            self.persisted = self.last;
        }
        self.queued_cut = Some(self.queued_cut.map_or(index, |cut| cut.min(index)));
        self.queue.push_back(Op::Truncate(self.last));
    }

    pub(crate) fn reset(&mut self, base: LogPosition) {
        self.base = base;
        self.last = base;
        self.persisted = LogPosition::default();
        self.runs.clear();
        self.cache.clear();
        self.queue.clear();
        self.queue.push_back(Op::Reset(base));
        self.queued_cut = None;
        self.queued_reset = true;
    }

    /// Moves what is queued into `batch` (which is empty: the one before is on disk).
    pub(crate) fn take_queue(&mut self, batch: &mut VecDeque<Op>) {
        debug_assert!(batch.is_empty());
        std::mem::swap(&mut self.queue, batch);
        self.queued_cut = None;
        self.taken_reset = std::mem::take(&mut self.queued_reset);
    }

    /// A batch is on disk, up to `written`. Returns how much of it still counts.
    pub(crate) fn batch_synced(
        &mut self,
        written: LogPosition,
        synced: Place,
        placements: impl Iterator<Item = Placement>,
    ) -> Option<LogPosition> {
        for placement in placements {
            self.stats.entries += u64::from(matches!(placement, Placement::Entry { .. }));
            self.index.apply(placement);
        }
        self.synced = synced;
        self.taken_reset = false;
        if self.queued_reset {
            return None;
        }
        self.persisted = match self.queued_cut {
            Some(index) if index < written.index => {
                let term = self.term_at(index)?;
                LogPosition { term, index }
            }
            _ => written,
        };
        self.cache.evict(self.persisted.index);
        Some(self.persisted)
    }

    /// What `OnSync` may be told meanwhile.
    pub(crate) fn reportable(&self) -> Option<LogPosition> {
        (!self.queued_reset && self.persisted.index > 0).then_some(self.persisted)
    }

    pub(crate) fn term_at(&self, index: Index) -> Option<Term> {
        if index == self.base.index {
            return Some(self.base.term);
        }
        if index < self.base.index || index > self.last.index {
            return None;
        }
        self.runs.term_at(index)
    }

    /// Takes out the oldest segments as far as `upto`, `sent` (see [`crate::Wal::release`]) and the retention of
    /// `options` allow. `now` is since 1970.
    pub(crate) fn release(
        &mut self,
        upto: Index,
        sent: Index,
        options: &WalOptions,
        now: Duration,
    ) -> Option<Released> {
        if self.queued_reset || self.taken_reset {
            return None;
        }
        let segments = self.index.segments();
        let mut kept_bytes: u64 = segments.iter().map(|s| s.used).sum();
        let max = options.retain_max.unwrap_or(u64::MAX);
        let mut found = None;
        for (number, segment) in segments.iter().enumerate() {
            let (too_much, is_long) = (kept_bytes > max, kept_bytes > max / 2);
            kept_bytes -= segment.used;
            let Some(sealed_at) = segment.sealed_at else { break };
            let young = options.retain_age.is_some_and(|age| now < sealed_at.saturating_add(age));
            if !too_much && (young || kept_bytes < options.retain_bytes) {
                break;
            }
            match self.index.first_index_without(number + 1) {
                Some(first) if first > upto.saturating_add(1) => break,
                Some(first) if first > sent.saturating_add(1) && !is_long => break,
                Some(first) => found = Some((number + 1, first)),
                None => break,
            }
        }
        let (count, first) = found?;
        let index = (first - 1).max(self.base.index);
        let term = self.term_at(index)?;
        self.base = LogPosition { term, index };
        self.runs.release(index);
        Some(self.take_out(count))
    }

    /// After a reset is on disk: takes out every segment before the first that holds an entry. If another one is
    /// queued, that is left to it.
    pub(crate) fn release_unused(&mut self) -> Option<Released> {
        if self.queued_reset {
            return None;
        }
        Some(self.take_out(self.index.unused_segments()))
    }

    fn take_out(&mut self, count: usize) -> Released {
        let segments = self.index.release(count);
        let first_segment = self.index.segments()[0].segment.sequence();
        Released { base: self.base, first_segment, segments }
    }
}

#[cfg(test)]
mod tests;
