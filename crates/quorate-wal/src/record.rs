//! The record: the unit the log is written in. Layout (little-endian), aligned to 8 bytes:
//!
//! ```text
//!  0 u32 head_crc     crc32c of bytes 4..48, seeded with the segment's nonce and this offset
//!  4 u32 data_crc     of kind and data, as `quorate_consensus::checksum` says: of an entry, the one
//!                     that its proposer made
//!  8 u32 prev         head_crc of the record before (also across segments; 0 before the first)
//! 12 u32 len          bytes of data, without padding
//! 16 u32 incarnation  start of the node that wrote it
//! 20 u32 synced       everything before this offset (in units of 8) was synced when this was written
//! 24 u8  kind, u8 entry kind, 6 bytes zero
//! 32 u64 term, u64 index
//! 48 data, zero padding to a multiple of 8
//! ```
//!
//! The seed binds a head to one life of one file and to one place in it: bytes of a recycled
//! segment, or a copy of a record inside somebody's data, never pass. `prev` and `incarnation`
//! bind it to its predecessor: the remains of a write that recovery cut off never pass either.

use crc32c::{crc32c, crc32c_append};
use quorate_consensus::{checksum, EntryKind, LogPosition};

pub(crate) const HEAD_BYTES: usize = 48;
const ALIGN: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// First in its segment. Position: the end of the log there.
    Start = 1,
    Entry = 2,
    /// Everything after the position is no longer part of the log.
    Truncate = 3,
    /// The log is empty and continues after the position.
    Reset = 4,
    /// Carries nothing but `synced`. Position: the end of the log there.
    Mark = 5,
    /// Last in its segment, written once the next segment exists. Data: when, in milliseconds
    /// since 1970.
    End = 6,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) kind: RecordKind,
    /// Of an `Entry`; `Noop` elsewhere.
    pub(crate) entry_kind: EntryKind,
    pub(crate) incarnation: u32,
    pub(crate) prev: u32,
    /// Bytes; a multiple of 8.
    pub(crate) synced: u64,
    pub(crate) position: LogPosition,
}

/// A head that was read and found genuine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decoded {
    pub(crate) head: Head,
    /// What the next record's `prev` must be.
    pub(crate) crc: u32,
    pub(crate) data_len: usize,
    pub(crate) data_crc: u32,
}

/// Bytes that a record with so much data takes.
pub(crate) fn record_bytes(data_len: usize) -> usize {
    HEAD_BYTES + data_len.next_multiple_of(ALIGN)
}

/// Appends a record that will stand at `offset` of the segment with this nonce; returns its crc.
/// The caller has checked that `data` is shorter than 4 GiB, and that it fits to `data_crc`.
pub(crate) fn encode(
    buf: &mut Vec<u8>,
    nonce: u64,
    offset: u64,
    head: &Head,
    data: &[u8],
    data_crc: u32,
) -> u32 {
    let (bytes, crc) = encode_head(nonce, offset, head, data.len(), data_crc);
    buf.extend_from_slice(&bytes);
    buf.extend_from_slice(data);
    buf.extend_from_slice(padding(data.len()));
    crc
}

/// What follows so many bytes of data.
pub(crate) fn padding(data_len: usize) -> &'static [u8] {
    const PADDING: [u8; ALIGN] = [0; ALIGN];
    &PADDING[..data_len.next_multiple_of(ALIGN) - data_len]
}

/// The head of that record alone, and its crc.
pub(crate) fn encode_head(
    nonce: u64,
    offset: u64,
    head: &Head,
    data_len: usize,
    data_crc: u32,
) -> ([u8; HEAD_BYTES], u32) {
    debug_assert_eq!(offset % ALIGN as u64, 0);
    debug_assert_eq!(head.synced % ALIGN as u64, 0);

    let mut bytes = [0; HEAD_BYTES];
    bytes[4..8].copy_from_slice(&data_crc.to_le_bytes());
    bytes[8..12].copy_from_slice(&head.prev.to_le_bytes());
    bytes[12..16].copy_from_slice(&(data_len as u32).to_le_bytes());
    bytes[16..20].copy_from_slice(&head.incarnation.to_le_bytes());
    bytes[20..24].copy_from_slice(&((head.synced / ALIGN as u64) as u32).to_le_bytes());
    bytes[24] = head.kind as u8;
    bytes[25] = head.entry_kind.code();
    bytes[32..40].copy_from_slice(&head.position.term.to_le_bytes());
    bytes[40..48].copy_from_slice(&head.position.index.to_le_bytes());
    let crc = head_crc(nonce, offset, &bytes);
    bytes[0..4].copy_from_slice(&crc.to_le_bytes());
    (bytes, crc)
}

/// Reads the head that starts `bytes` and stands at `offset` of the segment; `None` if it is not
/// a genuine one of this segment and place. Never panics, whatever the bytes are.
pub(crate) fn decode_head(bytes: &[u8], nonce: u64, offset: u64) -> Option<Decoded> {
    let bytes: &[u8; HEAD_BYTES] = bytes.get(..HEAD_BYTES)?.try_into().ok()?;
    // Cheap tests first: recovery tries this at every aligned offset behind a bad record.
    let kind = RecordKind::from_u8(bytes[24])?;
    let entry_kind = EntryKind::from_code(bytes[25]);
    let crc = u32_at(bytes, 0);
    if bytes[26..32] != [0; 6] || crc != head_crc(nonce, offset, bytes) {
        return None;
    }
    let head = Head {
        kind,
        entry_kind,
        incarnation: u32_at(bytes, 16),
        prev: u32_at(bytes, 8),
        synced: u64::from(u32_at(bytes, 20)) * ALIGN as u64,
        position: LogPosition { term: u64_at(bytes, 32), index: u64_at(bytes, 40) },
    };
    if head.synced > offset {
        return None;
    }
    let data_len = u32_at(bytes, 12) as usize;
    Some(Decoded { head, crc, data_len, data_crc: u32_at(bytes, 4) })
}

impl Decoded {
    pub(crate) fn record_bytes(&self) -> usize {
        record_bytes(self.data_len)
    }

    /// The data of the record that starts `bytes`, if all of it is there and intact.
    pub(crate) fn data<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let padded = bytes.get(HEAD_BYTES..self.record_bytes())?;
        let (data, padding) = padded.split_at(self.data_len);
        let intact = padding.iter().all(|byte| *byte == 0)
            && checksum(self.head.entry_kind, data) == self.data_crc;
        intact.then_some(data)
    }
}

impl RecordKind {
    fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Start,
            2 => Self::Entry,
            3 => Self::Truncate,
            4 => Self::Reset,
            5 => Self::Mark,
            6 => Self::End,
            _ => return None,
        })
    }
}

fn head_crc(nonce: u64, offset: u64, bytes: &[u8; HEAD_BYTES]) -> u32 {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&nonce.to_le_bytes());
    seed[8..].copy_from_slice(&offset.to_le_bytes());
    crc32c_append(crc32c(&seed), &bytes[4..])
}

fn u32_at(bytes: &[u8; HEAD_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8; HEAD_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
