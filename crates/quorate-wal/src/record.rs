//! The record: the unit the log is written in. Layout (little-endian), aligned to 8 bytes:
//!
//! ```text
//!  0 u32 head_crc     crc32c of what follows in the head, seeded with the segment's nonce and this offset
//!  4 u32 data_crc     of kind and data, as `quorate_consensus::checksum` says: of an entry, the one
//!                     that its proposer made. In a sealed segment 0
//!  8 u32 prev         head_crc of the record before (also across segments; 0 before the first)
//! 12 u32 len          bytes of data, without padding
//! 16 u32 incarnation  start of the node that wrote it
//! 20 u32 synced       everything before this offset (in units of 8) was synced when this was written
//! 24 u8  kind, u8 entry kind, 6 bytes zero
//! 32 u64 term, u64 index
//! 48 data, zero padding to a multiple of 8
//! ```
//!
//! In a sealed segment the head goes on with the salt of what follows it, and that is sealed
//! ([`crate::seal`]) together with the head:
//!
//! ```text
//! 48 16 bytes of salt
//! 64 sealed: u32 data_crc, data; zero padding to a multiple of 8
//! ```
//!
//! The seed binds a head to one life of one file and to one place in it: bytes of a recycled
//! segment, or a copy of a record inside somebody's data, never pass. `prev` and `incarnation`
//! bind it to its predecessor: the remains of a write that recovery cut off never pass either.
//! That a head of a sealed segment was made by whoever has the key, and not only by somebody who can
//! compute checksums, is known once its record is opened.

use crate::seal::sealed_bytes;
use quorate_consensus::{EntryKind, LogPosition};

pub(crate) const PLAIN_HEAD_BYTES: usize = 48;
pub(crate) const SEALED_HEAD_BYTES: usize = 64;
/// Of a sealed record, before its data.
pub(crate) const SUM_BYTES: usize = 4;
pub(crate) const ALIGN: usize = 8;

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

/// How much room the records of a segment take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    Plain,
    Sealed,
}

impl Layout {
    pub(crate) const fn head_bytes(self) -> usize {
        match self {
            Layout::Plain => PLAIN_HEAD_BYTES,
            Layout::Sealed => SEALED_HEAD_BYTES,
        }
    }

    /// Bytes that a record with so much data takes.
    pub(crate) const fn record_bytes(self, data_len: usize) -> usize {
        let body = match self {
            Layout::Plain => data_len,
            Layout::Sealed => sealed_bytes(SUM_BYTES + data_len),
        };
        self.head_bytes() + body.next_multiple_of(ALIGN)
    }

    /// How much data (of less than a page or two) makes a record of so many bytes; they are enough for one
    /// without data, and a multiple of 8.
    pub(crate) fn data_len_of(self, record_bytes: u64) -> u64 {
        let overhead = match self {
            Layout::Plain => PLAIN_HEAD_BYTES,
            Layout::Sealed => SEALED_HEAD_BYTES + sealed_bytes(SUM_BYTES),
        };
        record_bytes.saturating_sub(overhead as u64)
    }
}

impl RecordKind {
    pub(crate) fn from_u8(value: u8) -> Option<Self> {
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
