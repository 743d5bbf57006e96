//! What the core knows of the log: terms of all entries, bodies of the recent ones.
//!
//! Invariants:
//! - `base.index <= persisted <= last.index`; entries start right after `base`.
//! - `runs` covers `base.index + 1 ..= last.index`, terms ascending from run to run.
//! - `recent` ends at `last.index` without a hole and holds every entry that is not persisted.
//! - `persisted` is what is on disk of *this* log: reports count truncations (see
//!   [`crate::Event::Persisted`]), and a truncation takes back what lies behind it.

use crate::types::{Entry, Index, LogPosition, Term};
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Log {
    base: LogPosition,
    last: LogPosition,
    runs: VecDeque<Run>,
    persisted: Index,
    recent: VecDeque<Entry>,
    recent_bytes: usize,
    recent_bytes_max: usize,
    /// Of entries that are not persisted.
    unsynced_bytes: usize,
}

/// Entries from `first` on, up to the next run, have this term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: Index,
    term: Term,
}

/// What an entry costs besides its payload, in every window and buffer.
const ENTRY_OVERHEAD_BYTES: usize = 32;

pub(crate) fn cost(entry: &Entry) -> usize {
    entry.data.len() + ENTRY_OVERHEAD_BYTES
}

impl Log {
    /// A log as recovered: everything in it is persisted, no bodies are in memory.
    pub fn new(
        base: LogPosition,
        last: LogPosition,
        term_runs: &[(Index, Term)],
        recent_bytes_max: usize,
    ) -> Self {
        let mut log = Self {
            base,
            last: base,
            runs: VecDeque::new(),
            persisted: base.index,
            recent: VecDeque::new(),
            recent_bytes: 0,
            recent_bytes_max,
            unsynced_bytes: 0,
        };
        if last.index > base.index {
            let runs = term_runs.iter().filter(|(first, _)| *first <= last.index);
            log.runs = runs.map(|&(first, term)| Run { first, term }).collect();
            log.last = last;
            log.persisted = last.index;
            debug_assert_eq!(log.runs.front().map(|r| r.first), Some(base.index + 1));
            debug_assert_eq!(log.runs.back().map(|r| r.term), Some(last.term));
        }
        log
    }

    pub fn base(&self) -> LogPosition {
        self.base
    }

    pub fn last(&self) -> LogPosition {
        self.last
    }

    pub fn persisted(&self) -> Index {
        self.persisted
    }

    /// The term at `index`, known from the base to the end of the log.
    pub fn term_at(&self, index: Index) -> Option<Term> {
        if index == self.base.index {
            return Some(self.base.term);
        }
        if index < self.base.index || index > self.last.index {
            return None;
        }
        let after = self.runs.partition_point(|run| run.first <= index);
        self.runs.get(after.checked_sub(1)?).map(|run| run.term)
    }

    pub fn position(&self, index: Index) -> Option<LogPosition> {
        self.term_at(index).map(|term| LogPosition { term, index })
    }

    pub fn contains(&self, position: LogPosition) -> bool {
        self.term_at(position.index) == Some(position.term)
    }

    /// The last position at or below `limit.index` whose term is not above `limit.term`: where two
    /// logs may still agree, skipping whole terms. The base if there is none above it.
    pub fn last_at_or_below(&self, limit: LogPosition) -> LogPosition {
        let mut index = limit.index.min(self.last.index);
        for run in self.runs.iter().rev() {
            if run.first > index {
                continue;
            }
            if run.term <= limit.term {
                return LogPosition { term: run.term, index };
            }
            index = run.first - 1;
        }
        self.base
    }

    /// Adds the entry after the last one.
    pub fn append(&mut self, entry: Entry) {
        debug_assert_eq!(entry.index, self.last.index + 1);
        debug_assert!(entry.term >= self.last.term);
        if self.runs.back().is_none_or(|run| run.term != entry.term) {
            self.runs.push_back(Run { first: entry.index, term: entry.term });
        }
        self.last = entry.position();
        self.recent_bytes += cost(&entry);
        self.unsynced_bytes += cost(&entry);
        self.recent.push_back(entry);
        self.evict();
    }

    /// Cuts off everything from `from` on.
    pub fn truncate(&mut self, from: Index) {
        debug_assert!(from > self.base.index);
        if from > self.last.index {
            return;
        }
        while self.recent.back().is_some_and(|entry| entry.index >= from) {
            if let Some(entry) = self.recent.pop_back() {
                self.recent_bytes -= cost(&entry);
                if entry.index > self.persisted {
                    self.unsynced_bytes -= cost(&entry);
                }
            }
        }
        while self.runs.back().is_some_and(|run| run.first >= from) {
            self.runs.pop_back();
        }
        let index = from - 1;
        let term = self.runs.back().map_or(self.base.term, |run| run.term);
        self.last = LogPosition { term, index };
        self.persisted = self.persisted.min(index);
    }

    /// Forgets everything: the log continues after `base`, which is durable.
    pub fn reset(&mut self, base: LogPosition) {
        self.recent.clear();
        self.recent_bytes = 0;
        self.unsynced_bytes = 0;
        self.runs.clear();
        self.base = base;
        self.last = base;
        self.persisted = base.index;
    }

    /// Everything up to `base`, an entry of this log, is gone from the disk.
    pub fn compact(&mut self, base: LogPosition) {
        debug_assert!(self.contains(base) && base.index <= self.persisted);
        while self.recent.front().is_some_and(|entry| entry.index <= base.index) {
            if let Some(entry) = self.recent.pop_front() {
                self.recent_bytes -= cost(&entry);
            }
        }
        while self.runs.get(1).is_some_and(|run| run.first <= base.index + 1) {
            self.runs.pop_front();
        }
        if base.index == self.last.index {
            self.runs.clear();
        } else if let Some(run) = self.runs.front_mut() {
            run.first = run.first.max(base.index + 1);
        }
        self.base = base;
    }

    /// The disk holds this log up to `position`; true if `persisted` moved. A position that is not
    /// in this log is not believed.
    pub fn mark_persisted(&mut self, position: LogPosition) -> bool {
        if position.index <= self.persisted || !self.contains(position) {
            return false;
        }
        let synced = self.unsynced().take_while(|entry| entry.index <= position.index);
        let synced: usize = synced.map(cost).sum();
        self.unsynced_bytes -= synced;
        self.persisted = position.index;
        self.evict();
        true
    }

    /// Cost of the entries that are not persisted.
    pub fn unsynced_bytes(&self) -> usize {
        self.unsynced_bytes
    }

    /// The end of the first `entries_max` entries that are not persisted, and of `bytes_max` bytes of them, but at
    /// least of one.
    pub fn unsynced_end(&self, entries_max: Index, bytes_max: usize) -> Index {
        let end = self.last.index.min(self.persisted.saturating_add(entries_max));
        if self.unsynced_bytes <= bytes_max {
            return end;
        }
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            bytes += cost(entry);
            bytes <= bytes_max || entry.index == self.persisted + 1
        };
        let count = self.unsynced().take_while(fits).count();
        end.min(self.persisted + count as Index)
    }

    fn unsynced(&self) -> impl Iterator<Item = &Entry> {
        let unsynced = (self.last.index - self.persisted) as usize;
        self.recent.range(self.recent.len() - unsynced..)
    }

    /// Index of the first entry whose body is in memory (one past the last if none is).
    pub fn recent_first(&self) -> Index {
        self.last.index + 1 - self.recent.len() as Index
    }

    /// Entries from `from` on that are in memory, at most `bytes_max` but at least one if there is
    /// one; with their cost in bytes. Payloads are shared, not copied.
    pub fn recent_from(&self, from: Index, bytes_max: usize) -> (Vec<Entry>, usize) {
        let Some(skip) = from.checked_sub(self.recent_first()) else {
            return (Vec::new(), 0);
        };
        let skip = (skip as usize).min(self.recent.len());
        let (mut count, mut bytes) = (0, 0);
        for entry in self.recent.range(skip..) {
            let with = bytes + cost(entry);
            if count > 0 && with > bytes_max {
                break;
            }
            (count, bytes) = (count + 1, with);
        }
        (self.recent.range(skip..skip + count).cloned().collect(), bytes)
    }

    fn evict(&mut self) {
        while self.recent_bytes > self.recent_bytes_max
            && self.recent.front().is_some_and(|entry| entry.index <= self.persisted)
        {
            if let Some(entry) = self.recent.pop_front() {
                self.recent_bytes -= cost(&entry);
            }
        }
    }
}

#[cfg(test)]
mod tests;
