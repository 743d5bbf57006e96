//! Recent entries in memory: everything not yet on disk, and as much before it as fits.

use quorate_consensus::{Entry, Index};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Consecutive entries, the newest always included.
pub(crate) struct Cache {
    entries: VecDeque<Entry>,
    bytes: usize,
    bytes_max: usize,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Cache { entries: VecDeque::new(), bytes: 0, bytes_max }
    }

    pub(crate) fn first_index(&self) -> Option<Index> {
        self.entries.front().map(|e| e.index)
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        debug_assert!(self.entries.back().is_none_or(|e| e.index + 1 == entry.index));
        self.bytes += weight(&entry);
        self.entries.push_back(entry);
    }

    /// Everything after `last` was cut off.
    pub(crate) fn truncate(&mut self, last: Index) {
        while self.entries.back().is_some_and(|e| e.index > last) {
            let entry = self.entries.pop_back().expect("looked at it");
            self.bytes -= weight(&entry);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Drops the oldest entries beyond the limit, none after `persisted`.
    pub(crate) fn evict(&mut self, persisted: Index) {
        while self.bytes > self.bytes_max
            && self.entries.front().is_some_and(|e| e.index <= persisted)
        {
            let entry = self.entries.pop_front().expect("looked at it");
            self.bytes -= weight(&entry);
        }
    }

    /// Clones entries from `from` on (which the cache must hold) until `bytes_max` of data.
    pub(crate) fn read(&self, from: Index, bytes_max: usize, out: &mut Vec<Entry>) {
        self.read_range(from..=Index::MAX, bytes_max, out);
    }

    /// Clones those of `range`, if the cache holds the first one, until `bytes_max` of data.
    pub(crate) fn read_range(
        &self,
        range: RangeInclusive<Index>,
        bytes_max: usize,
        out: &mut Vec<Entry>,
    ) {
        let (from, to) = range.into_inner();
        let Some(first) = self.first_index().filter(|first| *first <= from) else { return };
        let mut bytes = 0;
        let held = self.entries.iter().skip((from - first) as usize);
        for entry in held.take_while(|entry| entry.index <= to) {
            if bytes > 0 && bytes + entry.data.len() > bytes_max {
                break;
            }
            bytes += entry.data.len().max(1);
            out.push(entry.clone());
        }
    }
}

/// What an entry costs in memory.
fn weight(entry: &Entry) -> usize {
    std::mem::size_of::<Entry>() + entry.data.len()
}
