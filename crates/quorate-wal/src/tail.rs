//! The end of the log, where records are written.
//!
//! Records are put (encoded), flushed (handed to the file) and synced; a segment that is full is
//! ended, synced, and left for the next. All of it is done by [`crate::writer`], step by step: a step
//! that finds no room on the disk has changed nothing that the next try would not do again.
//!
//! Invariant: `synced <= written <= offset`, all in the current segment. Every segment before the
//! current one is synced as a whole and ends with `End`, and that is written only once the next
//! segment exists. Nothing before `offset` is ever written again, except that the last page is
//! filled up with zeros behind it.

use crate::codec::LongData;
use crate::disk::Disk;
use crate::error::{IoContext, WalError};
use crate::index::Placement;
use crate::meta::Place;
use crate::record::{Head, Layout, RecordKind};
use crate::seal::{random_bytes, WriteKey};
use crate::segment::{Segment, HEADER_BYTES, PAGE_BYTES};
use crate::state::Op;
use crate::supply::Supply;
use quorate_consensus::{checksum, Entry, EntryKind, LogPosition};
use std::sync::Arc;

/// Records are handed to the file when so much has been gathered.
const WRITE_BYTES: usize = 1 << 20;
/// Longer data is synced in pieces of this: a disk that gets on is to be seen to.
pub(crate) const PIECE_BYTES: u64 = 16 << 20;

/// Room that is kept for the `End` record.
fn end_bytes(layout: Layout) -> u64 {
    layout.record_bytes(8) as u64
}

/// What every segment holds besides entries.
fn overhead(layout: Layout) -> u64 {
    HEADER_BYTES + layout.record_bytes(0) as u64 + end_bytes(layout)
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
    disk: Arc<dyn Disk>,
    segment: Arc<Segment>,
    /// Where the next record will stand.
    offset: u64,
    /// Before this everything is with the file.
    written: u64,
    synced: u64,
    /// What follows `written`.
    buf: Vec<u8>,
    /// Data that follows `buf` and was too long for it, up to `offset`.
    long: Option<LongData>,
    /// Of the records in `buf`, if the segment is sealed: nothing that was written is sealed with it.
    write_key: Option<Arc<WriteKey>>,
    /// Written since the last sync of whatever kind.
    unsynced: u64,
    /// The current segment is ended, this one is next.
    next: Option<Arc<Segment>>,
    crc: u32,
    incarnation: u32,
    /// The end of the log after the records so far.
    last: LogPosition,
    /// Where the records since the last call of `placements` went.
    placements: Vec<Placement>,
}

/// What a sync has put on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Synced {
    /// Everything that was put.
    All,
    /// A part of something long.
    Piece,
    /// A segment, which is left now.
    Segment,
}

impl Tail {
    /// Continues at `end`, everything before which is synced. Nothing counts before the records
    /// of this incarnation: the caller has the first one, a mark, written and synced at once.
    pub(crate) fn resume(
        disk: Arc<dyn Disk>,
        end: End,
        incarnation: u32,
    ) -> Result<Self, WalError> {
        let mut tail = Tail {
            disk,
            segment: end.segment,
            offset: end.offset,
            written: end.offset,
            synced: end.offset,
            buf: Vec::new(),
            long: None,
            write_key: None,
            unsynced: 0,
            next: None,
            crc: end.crc,
            incarnation,
            last: end.last,
            placements: Vec::new(),
        };
        if tail.offset == HEADER_BYTES {
            tail.put(RecordKind::Start, &[])?;
        }
        Ok(tail)
    }

    /// Puts the record of `op`; false if the segment ends here and is to be synced first.
    pub(crate) fn put_op(&mut self, op: &Op, supply: &Supply) -> Result<bool, WalError> {
        if self.next.is_some() {
            return Ok(false); // its end is put, and found no room yet
        }
        if !self.has_room(op, supply)? {
            return Ok(false);
        }
        match op {
            Op::Append(entry) if !entry.is_intact() => {
                return Err(WalError::EntryAltered { index: entry.index });
            }
            Op::Append(entry) => self.append(entry)?,
            Op::Truncate(last) => {
                self.placements.push(Placement::Truncate { last: last.index });
                self.last = *last;
                self.put(RecordKind::Truncate, &[])?;
            }
            Op::Reset(base) => {
                self.placements.push(Placement::Reset);
                self.last = *base;
                self.put(RecordKind::Reset, &[])?;
            }
            Op::Mark => self.mark()?,
        }
        Ok(true)
    }

    fn append(&mut self, entry: &Entry) -> Result<(), WalError> {
        let (index, bytes) = (entry.index, self.record_bytes(entry.data.len()));
        self.placements.push(Placement::Entry { index, offset: self.offset, bytes });
        self.last = entry.position();
        if entry.data.len() > WRITE_BYTES {
            self.put_long(entry)
        } else {
            self.put_with(RecordKind::Entry, entry.kind, &entry.data, entry.sum)
        }
    }

    /// Says how far the log is synced, at the begin of a page: should the page before be lost, with
    /// the end of the last entry, the mark still tells.
    fn mark(&mut self) -> Result<(), WalError> {
        let gap = self.offset.next_multiple_of(PAGE_BYTES) - self.offset;
        if gap > 0 {
            let fits = gap >= self.record_bytes(0);
            let bytes = if fits { gap } else { gap + PAGE_BYTES };
            let fill = self.segment.layout().data_len_of(bytes);
            let zeros = [0; PAGE_BYTES as usize];
            self.put(RecordKind::Mark, &zeros[..fill as usize])?;
        }
        self.put(RecordKind::Mark, &[])
    }

    /// Whether the records of `op` fit, and may be written here at all: not if the segment is encrypted
    /// with another key than new ones are. If not, it is ended here, as soon as there is a next one.
    fn has_room(&mut self, op: &Op, supply: &Supply) -> Result<bool, WalError> {
        let layout = self.segment.layout();
        let need = op_bytes(op, layout)?;
        let fits = self.offset + need + end_bytes(layout) <= self.segment.size();
        if fits && self.segment.key() == supply.key() {
            return Ok(true);
        }
        let need = op_bytes(op, supply.layout())? + overhead(supply.layout());
        let next = supply.take(self.segment.sequence() + 1, need)?;
        let now = supply.now();
        self.put(RecordKind::End, &(now.as_millis() as u64).to_le_bytes())?;
        self.placements.push(Placement::Sealed { used: self.offset, at: now });
        self.placements.push(Placement::Segment(next.clone()));
        self.next = Some(next);
        Ok(false)
    }

    fn head(&self, kind: RecordKind, entry_kind: EntryKind) -> Head {
        let (prev, synced) = (self.crc, self.synced);
        Head { kind, entry_kind, incarnation: self.incarnation, prev, synced, position: self.last }
    }

    /// One of the log's own records.
    fn put(&mut self, kind: RecordKind, data: &[u8]) -> Result<(), WalError> {
        self.put_with(kind, EntryKind::Noop, data, checksum(EntryKind::Noop, data))
    }

    fn put_with(
        &mut self,
        kind: RecordKind,
        entry_kind: EntryKind,
        data: &[u8],
        sum: u32,
    ) -> Result<(), WalError> {
        debug_assert!(self.long.is_none() && self.next.is_none());
        let (head, key) = (self.head(kind, entry_kind), self.write_key()?);
        let codec = &self.segment.codec;
        self.crc = codec.encode(&mut self.buf, self.offset, &head, data, sum, key.as_ref());
        self.offset += self.record_bytes(data.len());
        Ok(())
    }

    /// The same, but for data that is handed to the file part by part, from where it is.
    fn put_long(&mut self, entry: &Entry) -> Result<(), WalError> {
        let (head, key) = (self.head(RecordKind::Entry, entry.kind), self.write_key()?);
        let (codec, data) = (&self.segment.codec, entry.data.clone());
        let (long, crc) =
            codec.encode_long(&mut self.buf, self.offset, &head, data, entry.sum, key.as_ref());
        self.crc = crc;
        self.long = Some(long);
        self.offset += self.record_bytes(entry.data.len());
        Ok(())
    }

    /// A new one for each write: should the machine be set back, what is written to this place then is sealed
    /// with another.
    fn write_key(&mut self) -> Result<Option<Arc<WriteKey>>, WalError> {
        if self.write_key.is_none() && self.segment.layout() == Layout::Sealed {
            let drawn = random_bytes(&*self.disk);
            let salt = drawn.doing("draw random numbers for", self.segment.path())?;
            self.write_key = self.segment.codec.of_write(&salt);
        }
        Ok(self.write_key.clone())
    }

    fn record_bytes(&self, data_len: usize) -> u64 {
        self.segment.layout().record_bytes(data_len) as u64
    }

    /// So much was put that it should be flushed.
    pub(crate) fn is_long(&self) -> bool {
        self.long.is_some() || self.buf.len() >= WRITE_BYTES
    }

    /// Everything that was put is with the file, and the segment is not ended.
    pub(crate) fn is_flushed(&self) -> bool {
        self.written == self.offset && self.next.is_none()
    }

    /// Hands what was put to the file. False: this was so much that a sync is due first.
    pub(crate) fn flush(&mut self) -> Result<bool, WalError> {
        while self.written < self.offset {
            if self.unsynced >= PIECE_BYTES && self.long.is_some() {
                return Ok(false);
            }
            self.fill_up();
            self.write()?;
        }
        Ok(true)
    }

    /// Moves a part of what is too long for `buf` there.
    fn fill_up(&mut self) {
        let Some(long) = &mut self.long else { return };
        // After a write that found no room, there is nothing to move.
        let room = WRITE_BYTES.saturating_sub(self.buf.len());
        if room == 0 {
            return;
        }
        let place = self.written + self.buf.len() as u64;
        if !long.put_next(&mut self.buf, room, place) {
            self.long = None;
        }
    }

    /// Whole pages are written, so that the kernel never has to read one first.
    fn write(&mut self) -> Result<(), WalError> {
        let len = self.buf.len();
        let end = self.written + len as u64;
        self.buf.resize(len + (end.next_multiple_of(PAGE_BYTES) - end) as usize, 0);
        let done = self.segment.write(&self.buf, self.written);
        self.buf.truncate(len);
        done?;
        self.written = end;
        self.unsynced += len as u64;
        self.write_key = None;
        self.buf.clear();
        self.buf.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// What was flushed is on disk when this returns. Goes on to the next segment if this one is
    /// ended.
    pub(crate) fn sync(&mut self) -> Result<Synced, WalError> {
        self.segment.sync()?;
        self.unsynced = 0;
        if self.written < self.offset {
            return Ok(Synced::Piece);
        }
        self.synced = self.offset;
        if let Some(next) = self.next.take() {
            debug_assert!(self.write_key.is_none());
            self.segment = next;
            (self.offset, self.written, self.synced) = (HEADER_BYTES, HEADER_BYTES, HEADER_BYTES);
            self.put(RecordKind::Start, &[])?;
            return Ok(Synced::Segment);
        }
        Ok(Synced::All)
    }

    /// As far as the files are synced.
    pub(crate) fn synced(&self) -> Place {
        Place { segment: self.segment.sequence(), offset: self.synced }
    }

    pub(crate) fn last(&self) -> LogPosition {
        self.last
    }

    pub(crate) fn placements(&mut self) -> std::vec::Drain<'_, Placement> {
        self.placements.drain(..)
    }
}

/// What the records of `op` take at most.
fn op_bytes(op: &Op, layout: Layout) -> Result<u64, WalError> {
    let bare = layout.record_bytes(0) as u64;
    Ok(match op {
        Op::Append(entry) => entry_bytes(entry, layout)?,
        Op::Truncate(_) | Op::Reset(_) => bare,
        // Two records, the second at the begin of a page.
        Op::Mark => 2 * bare + PAGE_BYTES,
    })
}

fn entry_bytes(entry: &Entry, layout: Layout) -> Result<u64, WalError> {
    let len = entry.data.len();
    match u32::try_from(layout.record_bytes(len)) {
        Ok(bytes) => Ok(bytes.into()),
        Err(_) => Err(WalError::EntryTooLong { index: entry.index, bytes: len as u64 }),
    }
}
