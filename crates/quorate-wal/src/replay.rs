//! What the records of a log add up to.

use crate::index::Placement;
use crate::record::{Head, RecordKind};
use crate::scan::Record;
use crate::segment::HEADER_BYTES;
use crate::term_runs::TermRuns;
use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind, LogPosition};
use std::time::Duration;

/// The state of a log after some of its records.
#[derive(Default)]
pub(crate) struct Replay {
    pub(crate) base: LogPosition,
    pub(crate) last: LogPosition,
    pub(crate) runs: TermRuns,
    pub(crate) special: Vec<Entry>,
    /// There was a `Reset` among the records.
    pub(crate) was_reset: bool,
    started: bool,
}

impl Replay {
    /// Takes the next record. `Err` says why a record that is intact can not stand here.
    pub(crate) fn apply(&mut self, record: &Record<'_>) -> Result<Option<Placement>, String> {
        let Record { offset, bytes, head, data } = *record;
        let position = head.position;
        if (offset == HEADER_BYTES) != (head.kind == RecordKind::Start) {
            return Err(format!("a record of kind {:?} can not stand here", head.kind));
        }
        if head.kind == RecordKind::Start && !self.started {
            self.started = true;
            self.base = position;
            self.last = position;
        }
        match head.kind {
            RecordKind::Start | RecordKind::Mark | RecordKind::End => self.at_end(position)?,
            RecordKind::Entry => self.entry(head, data)?,
            RecordKind::Truncate => self.cut(position)?,
            RecordKind::Reset => {
                self.runs.clear();
                self.special.clear();
                self.was_reset = true;
                self.base = position;
                self.last = position;
            }
        }
        Ok(match head.kind {
            RecordKind::Start | RecordKind::Mark => None,
            RecordKind::Entry => Some(Placement::Entry { index: position.index, offset, bytes }),
            RecordKind::Truncate => Some(Placement::Truncate { last: position.index }),
            RecordKind::Reset => Some(Placement::Reset),
            RecordKind::End => {
                let at = data.try_into().map(u64::from_le_bytes).unwrap_or_default();
                Some(Placement::Sealed { used: offset + bytes, at: Duration::from_millis(at) })
            }
        })
    }

    fn at_end(&self, position: LogPosition) -> Result<(), String> {
        if position == self.last {
            return Ok(());
        }
        Err(format!("the log ends at {:?} here, the record says {position:?}", self.last))
    }

    fn entry(&mut self, head: &Head, data: &[u8]) -> Result<(), String> {
        let position = head.position;
        if Some(position.index) != self.last.index.checked_add(1) || position.term < self.last.term
        {
            return Err(format!("entry {position:?} can not follow {:?}", self.last));
        }
        self.runs.push(position);
        self.last = position;
        // A start needs neither what the layer above has of the log, nor notes of orders, which may be many.
        if !matches!(head.entry_kind, EntryKind::Data | EntryKind::Note) {
            let (index, term, kind) = (position.index, position.term, head.entry_kind);
            self.special.push(Entry::new(index, term, kind, Bytes::copy_from_slice(data)));
        }
        Ok(())
    }

    /// A cut may reach below the first entry still there: those it left were purged since.
    fn cut(&mut self, to: LogPosition) -> Result<(), String> {
        let known = match to.index {
            index if index < self.base.index => Some(to.term),
            index if index == self.base.index => Some(self.base.term),
            index if index <= self.last.index => self.runs.term_at(index),
            _ => None,
        };
        if known != Some(to.term) {
            return Err(format!("a truncation to {to:?} of a log that ends at {:?}", self.last));
        }
        self.runs.truncate(to.index);
        while self.special.last().is_some_and(|e| e.index > to.index) {
            self.special.pop();
        }
        self.last = to;
        if to.index < self.base.index {
            self.base = to;
        }
        Ok(())
    }
}
