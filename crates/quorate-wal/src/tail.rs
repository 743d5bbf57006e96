//! The end of the log, where records are written.
//!
//! Invariant: `synced <= written <= offset`, all in the current segment. Every segment before the
//! current one is synced as a whole and ends with `End`, and that is written only once the next
//! segment exists. Nothing before `offset` is ever written again, except that the last page is
//! filled up with zeros behind it.

use crate::error::WalError;
use crate::index::Placement;
use crate::meta::Place;
use crate::record::{encode, record_bytes, Head, RecordKind};
use crate::segment::{Segment, HEADER_BYTES, PAGE_BYTES};
use crate::supply::Supply;
use quorate_consensus::{Entry, EntryKind, LogPosition};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Room that is kept for the `End` record.
const END_BYTES: u64 = record_bytes_const(8);
/// What every segment holds besides entries.
pub(crate) const SEGMENT_OVERHEAD: u64 = HEADER_BYTES + record_bytes_const(0) + END_BYTES;
/// Records are handed to the file when so much has been gathered.
const WRITE_BYTES: usize = 1 << 20;

const fn record_bytes_const(data_len: u64) -> u64 {
    crate::record::HEAD_BYTES as u64 + data_len.next_multiple_of(8)
}

/// Where recovery found the end.
pub(crate) struct End {
    pub(crate) segment: Arc<Segment>,
    pub(crate) offset: u64,
    /// Of the last good record.
    pub(crate) crc: u32,
    pub(crate) last: LogPosition,
}

impl End {
    pub(crate) fn place(&self) -> Place {
        Place { segment: self.segment.sequence(), offset: self.offset }
    }
}

pub(crate) struct Tail {
    segment: Arc<Segment>,
    /// Where the next record will stand.
    offset: u64,
    synced: u64,
    /// Records that end at `offset` and are not written yet.
    buf: Vec<u8>,
    crc: u32,
    incarnation: u32,
    /// The end of the log after the records so far.
    last: LogPosition,
    /// Where the records since the last call of `placements` went.
    placements: Vec<Placement>,
}

impl Tail {
    /// Continues at `end`, everything before which is synced. Nothing counts before the records
    /// of this incarnation: so the first one is written and synced at once.
    pub(crate) fn resume(end: End, incarnation: u32, supply: &Supply) -> Result<Self, WalError> {
        let mut tail = Tail {
            segment: end.segment,
            offset: end.offset,
            synced: end.offset,
            buf: Vec::with_capacity(WRITE_BYTES / 4),
            crc: end.crc,
            incarnation,
            last: end.last,
            placements: Vec::new(),
        };
        if tail.offset == HEADER_BYTES {
            tail.put(RecordKind::Start, EntryKind::Noop, tail.last, &[])?;
        }
        tail.mark(supply)?;
        Ok(tail)
    }

    pub(crate) fn append(&mut self, entry: &Entry, supply: &Supply) -> Result<(), WalError> {
        let len = entry.data.len();
        if u32::try_from(record_bytes(len)).is_err() {
            return Err(WalError::EntryTooLong { index: entry.index, bytes: len as u64 });
        }
        self.make_room(len, supply)?;
        let (index, bytes) = (entry.index, record_bytes(len) as u64);
        self.placements.push(Placement::Entry { index, offset: self.offset, bytes });
        self.last = entry.position();
        self.put(RecordKind::Entry, entry.kind, entry.position(), &entry.data)
    }

    pub(crate) fn truncate(&mut self, to: LogPosition, supply: &Supply) -> Result<(), WalError> {
        self.make_room(0, supply)?;
        self.placements.push(Placement::Truncate { last: to.index });
        self.last = to;
        self.put(RecordKind::Truncate, EntryKind::Noop, to, &[])
    }

    pub(crate) fn reset(&mut self, base: LogPosition, supply: &Supply) -> Result<(), WalError> {
        self.make_room(0, supply)?;
        self.placements.push(Placement::Reset);
        self.last = base;
        self.put(RecordKind::Reset, EntryKind::Noop, base, &[])
    }

    /// Writes and syncs a record that says how far the log is synced. It begins a page: should the
    /// page before be lost, with the end of the last entry, the mark still tells.
    pub(crate) fn mark(&mut self, supply: &Supply) -> Result<(), WalError> {
        self.sync()?;
        self.make_room(2 * PAGE_BYTES as usize, supply)?;
        let gap = self.offset.next_multiple_of(PAGE_BYTES) - self.offset;
        if gap > 0 {
            let head = record_bytes(0) as u64;
            let fill = if gap < head { gap + PAGE_BYTES - head } else { gap - head };
            let zeros = [0; PAGE_BYTES as usize];
            self.put(RecordKind::Mark, EntryKind::Noop, self.last, &zeros[..fill as usize])?;
        }
        self.put(RecordKind::Mark, EntryKind::Noop, self.last, &[])?;
        self.sync()
    }

    /// Everything put so far is on disk when this returns.
    pub(crate) fn sync(&mut self) -> Result<(), WalError> {
        if self.synced == self.offset {
            return Ok(());
        }
        self.write()?;
        self.segment.sync()?;
        self.synced = self.offset;
        Ok(())
    }

    pub(crate) fn synced(&self) -> Place {
        Place { segment: self.segment.sequence(), offset: self.synced }
    }

    pub(crate) fn last(&self) -> LogPosition {
        self.last
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(crate) fn placements(&mut self) -> std::vec::Drain<'_, Placement> {
        self.placements.drain(..)
    }

    /// Goes on to the next segment if a record with so much data does not fit into this one.
    fn make_room(&mut self, data_len: usize, supply: &Supply) -> Result<(), WalError> {
        let need = record_bytes(data_len) as u64;
        if self.offset + need + END_BYTES <= self.segment.size() {
            return Ok(());
        }
        let next = supply.take(self.segment.sequence() + 1, need + SEGMENT_OVERHEAD)?;
        let now = since_1970();
        let millis = (now.as_millis() as u64).to_le_bytes();
        self.put(RecordKind::End, EntryKind::Noop, self.last, &millis)?;
        self.sync()?;
        self.placements.push(Placement::Sealed { used: self.offset, at: now });
        self.placements.push(Placement::Segment(next.clone()));
        self.segment = next;
        self.offset = HEADER_BYTES;
        self.synced = HEADER_BYTES;
        self.put(RecordKind::Start, EntryKind::Noop, self.last, &[])
    }

    fn put(
        &mut self,
        kind: RecordKind,
        entry_kind: EntryKind,
        position: LogPosition,
        data: &[u8],
    ) -> Result<(), WalError> {
        let (prev, synced) = (self.crc, self.synced);
        let head = Head { kind, entry_kind, incarnation: self.incarnation, prev, synced, position };
        self.crc = encode(&mut self.buf, self.segment.header.nonce, self.offset, &head, data);
        self.offset += record_bytes(data.len()) as u64;
        if self.buf.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(())
    }

    /// Whole pages are written, so that the kernel never has to read one first.
    fn write(&mut self) -> Result<(), WalError> {
        let start = self.offset - self.buf.len() as u64;
        let padded = self.offset.next_multiple_of(PAGE_BYTES) - start;
        self.buf.resize(padded as usize, 0);
        self.segment.write(&self.buf, start)?;
        self.buf.clear();
        self.buf.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }
}

pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
