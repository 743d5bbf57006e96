//! Where on disk the entries are: one line for every 64 KiB.
//!
//! The log is written strictly forward; a truncation is a record of its own and nothing is
//! overwritten. So the bytes behind a place may hold entries that a later record took back. The
//! index knows better: sections ascend both by entry index and by place, a section's entries stand
//! consecutively from its offset on, and only those before the next section's first index count.

use crate::segment::Segment;
use quorate_consensus::Index;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A new section begins when one has grown to this.
pub(crate) const SECTION_BYTES: u64 = 64 << 10;

/// What the writer (or recovery) placed in the log, in order.
pub(crate) enum Placement {
    /// Records now go here.
    Segment(Arc<Segment>),
    /// The current segment is full.
    Sealed { used: u64, at: Duration },
    /// A record of so many bytes that is an entry.
    Entry { index: Index, offset: u64, bytes: u64 },
    /// Everything after `last` is no longer part of the log.
    Truncate { last: Index },
    /// Nothing before is part of the log any more.
    Reset,
}

#[derive(Clone)]
pub(crate) struct Section {
    /// Of the first entry.
    pub(crate) index: Index,
    pub(crate) segment: Arc<Segment>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What to read from disk.
#[derive(Default)]
pub(crate) struct Plan {
    /// Each with the first index that it does not hold.
    pub(crate) sections: Vec<(Section, Index)>,
    /// Where a reader that goes on will go on.
    pub(crate) ahead: Option<(Arc<Segment>, u64)>,
}

/// A segment that holds records.
pub(crate) struct SegmentUse {
    pub(crate) segment: Arc<Segment>,
    /// Bytes up to the end of the last record, once sealed.
    pub(crate) used: u64,
    /// When it was sealed, since 1970.
    pub(crate) sealed_at: Option<Duration>,
}

#[derive(Default)]
pub(crate) struct SparseIndex {
    sections: VecDeque<Section>,
    segments: VecDeque<SegmentUse>,
    /// The next entry does not follow the last section's.
    broken: bool,
}

impl SparseIndex {
    pub(crate) fn apply(&mut self, placement: Placement) {
        match placement {
            Placement::Segment(segment) => {
                self.segments.push_back(SegmentUse { segment, used: 0, sealed_at: None });
                self.broken = true;
            }
            Placement::Sealed { used, at } => {
                let current = self.segments.back_mut().expect("a segment came before its records");
                current.used = used;
                current.sealed_at = Some(at);
            }
            Placement::Entry { index, offset, bytes } => self.add(index, offset, bytes),
            Placement::Truncate { last } => {
                while self.sections.back().is_some_and(|s| s.index > last) {
                    self.sections.pop_back();
                }
                self.broken = true;
            }
            Placement::Reset => {
                self.sections.clear();
                self.broken = true;
            }
        }
    }

    fn add(&mut self, index: Index, offset: u64, bytes: u64) {
        match self.sections.back_mut() {
            Some(section) if !self.broken && section.bytes < SECTION_BYTES => {
                section.bytes = offset + bytes - section.offset;
            }
            _ => {
                let segment = self.segments.back().expect("a segment came before its records");
                let segment = segment.segment.clone();
                self.sections.push_back(Section { index, segment, offset, bytes });
                self.broken = false;
            }
        }
    }

    /// Where to read `from` and what follows, up to about `bytes_max`. `end` is the first index
    /// not to be read from disk.
    pub(crate) fn plan(&self, from: Index, end: Index, bytes_max: usize) -> Plan {
        let mut plan = Plan::default();
        let mut bytes = 0;
        let after = self.sections.partition_point(|s| s.index <= from);
        for number in after.saturating_sub(1)..self.sections.len() {
            let section = &self.sections[number];
            if section.index >= end {
                break;
            }
            if bytes > bytes_max as u64 {
                plan.ahead = Some((section.segment.clone(), section.offset));
                break;
            }
            let next = self.sections.get(number + 1).map_or(end, |s| s.index.min(end));
            bytes += section.bytes;
            plan.sections.push((section.clone(), next));
        }
        plan
    }

    pub(crate) fn segments(&self) -> &VecDeque<SegmentUse> {
        &self.segments
    }

    /// The first index that is kept if the oldest `count` segments go; `None` if nothing is.
    pub(crate) fn first_index_without(&self, count: usize) -> Option<Index> {
        let first_kept = self.segments.get(count)?.segment.sequence();
        let at = self.sections.partition_point(|s| s.segment.sequence() < first_kept);
        self.sections.get(at).map(|s| s.index)
    }

    /// Bytes of the segments that hold what is from `from` on.
    pub(crate) fn bytes_from(&self, from: Index) -> u64 {
        let after = self.sections.partition_point(|s| s.index <= from);
        let first = self.sections.get(after.saturating_sub(1)).map(|s| s.segment.sequence());
        let needed = self.segments.iter().filter(|s| Some(s.segment.sequence()) >= first);
        needed.map(|s| s.segment.size()).sum()
    }

    /// How many of the oldest segments hold no entry; never the current one.
    pub(crate) fn unused_segments(&self) -> usize {
        match self.sections.front() {
            Some(first) => {
                let sequence = first.segment.sequence();
                self.segments.partition_point(|s| s.segment.sequence() < sequence)
            }
            None => self.segments.len().saturating_sub(1),
        }
    }

    /// Drops the oldest `count` segments and their sections.
    pub(crate) fn release(&mut self, count: usize) -> Vec<Arc<Segment>> {
        let released: Vec<_> = self.segments.drain(..count).map(|s| s.segment).collect();
        if let Some(last) = released.last() {
            let sequence = last.sequence();
            let gone = self.sections.partition_point(|s| s.segment.sequence() <= sequence);
            self.sections.drain(..gone);
        }
        released
    }
}
