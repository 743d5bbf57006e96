//! What a member proposes to the group: the bytes, and a view of them.
//!
//! ```text
//! offset  bytes  field            all numbers little-endian
//!      0      1  version          1; 2 where a term follows; 3 where all of the tail follows
//!      1      1  kind             see Kind
//!      2      2  kin epoch        see Header::kin_epoch
//!      4      4  flags            wsrep flags
//!      8     16  origin           wsrep node uuid of the process that proposed it
//!     24      8  serial           unique within the origin
//!     32      8  trx id
//!     40      8  connection id
//!     48      8  last_seen        signed; last seqno committed at the origin when it was stamped
//!     56      8  timestamp        ns since 1970, of the origin; informative
//!     64      8  payload length n
//!     72      4  key count k
//!     76      4  pa_range         see Header::pa_range
//!     80      n  payload
//!   80+n     8k  keys             see Key
//!  80+n+8k    8  term             versions 2 and 3: see Header::term; 0 in version 3 only
//!  88+n+8k    8  stream           version 3 only: see Header::parts; 0: none
//!  96+n+8k    4  count of parts
//! 100+n+8k    8  bytes of parts
//! 108+n+8k    1  codec            version 3 only: see Header::packed; 0: none
//! 109+n+8k    8  bytes unpacked
//! ```
//!
//! A part ([`Kind::PART`]), and what gives a stream of them up ([`Kind::PARTS_END`]), names its stream as trx
//! id, and a part its number as connection id.
//!
//! The payload grows in place behind room kept for the header and the keys follow it, so a
//! transaction's data is never moved again after it was appended.

use crate::{Codec, Key, Packed, PartsOf, Seqno};
use bytes::{Buf, BufMut, Bytes};

/// The layout without a term, the one with it, and the one with all there is.
const VERSION: u8 = 1;
const VERSION_WITH_TERM: u8 = 2;
const VERSION_WITH_ALL: u8 = 3;

const TERM_LEN: usize = 8;
/// What may follow the keys.
pub(crate) const TAIL_LEN: usize = TERM_LEN + 20 + 9;

pub(crate) const HEADER_LEN: usize = 80;

/// wsrep flags, bit for bit as the server gives and expects them.
pub mod flags {
    pub const TRX_END: u32 = 1 << 0;
    pub const ROLLBACK: u32 = 1 << 1;
    pub const ISOLATION: u32 = 1 << 2;
    pub const PA_UNSAFE: u32 = 1 << 3;
    pub const COMMUTATIVE: u32 = 1 << 4;
    pub const NATIVE: u32 = 1 << 5;
    pub const TRX_START: u32 = 1 << 6;
    pub const TRX_PREPARE: u32 = 1 << 7;
    pub const SNAPSHOT: u32 = 1 << 8;
    pub const IMPLICIT_DEPS: u32 = 1 << 9;

    pub(crate) const KNOWN: u32 = (1 << 10) - 1;
}

/// What a proposal is. Only [`Kind::WRITE_SET`] is certified and consumes a seqno; other numbers
/// may be given to other messages that want the same header, and travel through here unread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Kind(pub u8);

impl Kind {
    pub const WRITE_SET: Kind = Kind(1);
    pub const STATE_REQUEST: Kind = Kind(2);
    pub const VOTE: Kind = Kind(3);
    pub const STATE_OUTCOME: Kind = Kind(16);
    /// A piece of the data of a large transaction, see [`OpenParts`](crate::OpenParts).
    pub const PART: Kind = Kind(17);
    /// The end of a stream of parts whose write set does not come.
    pub const PARTS_END: Kind = Kind(18);

    fn is_known(self) -> bool {
        let known = [
            Kind::WRITE_SET,
            Kind::STATE_REQUEST,
            Kind::VOTE,
            Kind::STATE_OUTCOME,
            Kind::PART,
            Kind::PARTS_END,
        ];
        known.contains(&self)
    }
}

/// Everything about a proposal but its keys and its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub kind: Kind,
    /// [`flags`].
    pub flags: u32,
    /// The wsrep node uuid of this start of the server: a restarted server is another origin.
    pub origin: u128,
    /// Unique within the origin. (origin, serial) identifies the proposal however often it is sent.
    pub serial: u64,
    pub trx_id: u64,
    pub conn_id: u64,
    /// Everything up to this seqno had been committed at the origin. −1 (undefined) never passes.
    pub last_seen: Seqno,
    /// The transaction depends on `last_seen - pa_range` at least. The origin of a streaming
    /// transaction sets it so that each fragment depends on the one before:
    /// `last_seen - seqno of the previous fragment`. [`Header::PA_RANGE_ANY`]: no such bound.
    pub pa_range: u32,
    /// In single-primary mode: the term in which the origin led when it proposed this. It counts
    /// only in an entry of that term, see [`Outcome::NotPrimary`]. 0: the origin did not lead, or
    /// every member takes writes.
    ///
    /// [`Outcome::NotPrimary`]: crate::Outcome::NotPrimary
    pub term: u64,
    /// Counts how often the origin has given proposals up. Write sets of one origin never conflict
    /// if they are of one epoch: the locks of its database keep them apart. Those of a proposal
    /// that was given up are gone while it may still be ordered, so what is proposed later is of a
    /// later epoch, and conflicts with it as if it came from elsewhere, whichever is ordered first.
    pub kin_epoch: u16,
    /// The parts that the data of this write set begins with.
    pub parts: Option<PartsOf>,
    /// How the data is packed; that of a whole transaction, fragment or part may be.
    pub packed: Option<Packed>,
    /// Nanoseconds since 1970 by the origin's clock; nothing is decided by it.
    pub timestamp: u64,
}

impl Header {
    pub const PA_RANGE_ANY: u32 = u32::MAX;

    /// The header of an ordinary transaction that fits one write set. The rest is zero.
    pub fn transaction(origin: u128, serial: u64, last_seen: Seqno) -> Header {
        Header {
            kind: Kind::WRITE_SET,
            flags: flags::TRX_START | flags::TRX_END,
            origin,
            serial,
            trx_id: 0,
            conn_id: 0,
            last_seen,
            pa_range: Header::PA_RANGE_ANY,
            term: 0,
            kin_epoch: 0,
            parts: None,
            packed: None,
            timestamp: 0,
        }
    }

    /// Of part `number` of a stream.
    pub fn part(origin: u128, serial: u64, stream: u64, number: u32) -> Header {
        let kind = Kind::PART;
        let (trx_id, conn_id) = (stream, number.into());
        Header { kind, flags: 0, trx_id, conn_id, ..Header::transaction(origin, serial, 0) }
    }

    /// Gives a stream up.
    pub fn parts_end(origin: u128, serial: u64, stream: u64) -> Header {
        Header { kind: Kind::PARTS_END, ..Header::part(origin, serial, stream, 0) }
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Runs in total-order isolation.
    pub fn is_toi(&self) -> bool {
        self.has(flags::ISOLATION)
    }

    pub(crate) fn encode(&self, data_len: u64, key_count: u32) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[0] = self.version();
        out[1] = self.kind.0;
        out[2..4].copy_from_slice(&self.kin_epoch.to_le_bytes());
        out[4..8].copy_from_slice(&self.flags.to_le_bytes());
        out[8..24].copy_from_slice(&self.origin.to_le_bytes());
        out[24..32].copy_from_slice(&self.serial.to_le_bytes());
        out[32..40].copy_from_slice(&self.trx_id.to_le_bytes());
        out[40..48].copy_from_slice(&self.conn_id.to_le_bytes());
        out[48..56].copy_from_slice(&self.last_seen.to_le_bytes());
        out[56..64].copy_from_slice(&self.timestamp.to_le_bytes());
        out[64..72].copy_from_slice(&data_len.to_le_bytes());
        out[72..76].copy_from_slice(&key_count.to_le_bytes());
        out[76..80].copy_from_slice(&self.pa_range.to_le_bytes());
        out
    }

    fn version(&self) -> u8 {
        match (self.parts, self.packed, self.term) {
            (None, None, 0) => VERSION,
            (None, None, _) => VERSION_WITH_TERM,
            _ => VERSION_WITH_ALL,
        }
    }

    /// Appends what follows the keys.
    pub(crate) fn encode_tail(&self, out: &mut Vec<u8>) {
        let version = self.version();
        if version != VERSION {
            out.put_u64_le(self.term);
        }
        if version == VERSION_WITH_ALL {
            let none = PartsOf { stream: 0, count: 0, bytes: 0 };
            let parts = self.parts.unwrap_or(none);
            out.put_u64_le(parts.stream);
            out.put_u32_le(parts.count);
            out.put_u64_le(parts.bytes);
            out.put_u8(self.packed.map_or(0, |packed| packed.codec as u8));
            out.put_u64_le(self.packed.map_or(0, |packed| packed.bytes));
        }
    }

    /// What stands there. False: it could be written otherwise.
    fn decode_tail(&mut self, version: u8, mut tail: &[u8]) -> bool {
        if version == VERSION {
            return true;
        }
        self.term = tail.get_u64_le();
        if version == VERSION_WITH_ALL {
            let (stream, count, bytes) = (tail.get_u64_le(), tail.get_u32_le(), tail.get_u64_le());
            self.parts = (stream != 0).then_some(PartsOf { stream, count, bytes });
            if stream == 0 && (count, bytes) != (0, 0) {
                return false;
            }
            let (codec, bytes) = (tail.get_u8(), tail.get_u64_le());
            self.packed = Codec::of(codec).map(|codec| Packed { codec, bytes });
            if self.packed.is_none() && (codec, bytes) != (0, 0) {
                return false;
            }
        }
        self.version() == version && (self.packed.is_none() || self.may_be_packed())
    }

    /// What members say to each other is short, and read in place.
    fn may_be_packed(&self) -> bool {
        self.kind == Kind::PART || self.kind == Kind::WRITE_SET && !self.is_toi()
    }
}

/// A proposal as it came out of the log: the header decoded, the rest read where it lies.
#[derive(Clone, PartialEq, Eq)]
pub struct WriteSet {
    header: Header,
    bytes: Bytes,
    keys_at: usize,
    keys_end: usize,
}

impl WriteSet {
    /// Checks everything that later reads rely on. Allocates nothing, takes constant time.
    pub fn parse(bytes: Bytes) -> Result<WriteSet, ParseError> {
        let Some((head, body)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(ParseError::Truncated { bytes: bytes.len() });
        };
        let after_keys = match head[0] {
            VERSION => 0,
            VERSION_WITH_TERM => TERM_LEN,
            VERSION_WITH_ALL => TAIL_LEN,
            version => return Err(ParseError::Version(version)),
        };
        let mut header = Header {
            kind: Kind(head[1]),
            kin_epoch: u16::from_le_bytes(field(head, 2)),
            flags: u32::from_le_bytes(field(head, 4)),
            origin: u128::from_le_bytes(field(head, 8)),
            serial: u64::from_le_bytes(field(head, 24)),
            trx_id: u64::from_le_bytes(field(head, 32)),
            conn_id: u64::from_le_bytes(field(head, 40)),
            last_seen: i64::from_le_bytes(field(head, 48)),
            timestamp: u64::from_le_bytes(field(head, 56)),
            pa_range: u32::from_le_bytes(field(head, 76)),
            term: 0,
            parts: None,
            packed: None,
        };
        if header.kind == Kind(0) || header.flags & !flags::KNOWN != 0 {
            return Err(ParseError::Header);
        }
        let data_len = u64::from_le_bytes(field(head, 64));
        let key_count = u32::from_le_bytes(field(head, 72));
        let keys_len = u64::from(key_count) * Key::ENCODED_LEN as u64;
        let tail_len = keys_len + after_keys as u64;
        if data_len.checked_add(tail_len) != Some(body.len() as u64) {
            return Err(ParseError::Length { bytes: bytes.len(), data_len, key_count });
        }
        let keys_at = bytes.len() - tail_len as usize;
        let keys_end = bytes.len() - after_keys;
        if !header.decode_tail(head[0], &bytes[keys_end..]) {
            return Err(ParseError::Header);
        }
        if !header.kind.is_known() {
            return Err(ParseError::Kind(header.kind.0));
        }
        Ok(WriteSet { header, bytes, keys_at, keys_end })
    }

    /// The kind of a proposal, before (or without) parsing it.
    pub fn peek_kind(bytes: &[u8]) -> Option<Kind> {
        bytes.get(1).copied().map(Kind)
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn keys(&self) -> Keys<'_> {
        Keys(self.bytes[self.keys_at..self.keys_end].chunks_exact(Key::ENCODED_LEN))
    }

    /// The transaction's data as it is packed, if it is: a slice of the same buffer, not a copy.
    pub fn payload(&self) -> Bytes {
        self.bytes.slice(HEADER_LEN..self.keys_at)
    }

    /// The whole proposal as it was parsed.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl std::fmt::Debug for WriteSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteSet")
            .field("header", &self.header)
            .field("keys", &self.keys().len())
            .field("payload_bytes", &(self.keys_at - HEADER_LEN))
            .finish()
    }
}

/// The keys of a write set, in the order in which they were first appended.
#[derive(Clone)]
pub struct Keys<'a>(std::slice::ChunksExact<'a, u8>);

impl Iterator for Keys<'_> {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        let raw = self.0.next()?.try_into().expect("chunks have the length of a key");
        Some(Key::from_raw(u64::from_le_bytes(raw)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Keys<'_> {}

/// The bytes are no write set. They were in the group's log, so a member proposed them: this is a
/// bug or a newer version there, and every member must treat the entry in the same way.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    #[error("proposal of {bytes} bytes is shorter than its {HEADER_LEN}-byte header")]
    Truncated { bytes: usize },
    #[error("proposal has layout version {0}, this member reads up to {VERSION_WITH_ALL}: it was proposed by a newer member; upgrade this one")]
    Version(u8),
    #[error("proposal is a message of kind {0}, which this release does not know: a newer member proposed it; upgrade this one")]
    Kind(u8),
    #[error("proposal header has no kind, unknown flags or a term of 0")]
    Header,
    #[error("proposal is {bytes} bytes long but announces {data_len} payload bytes and {key_count} keys")]
    Length { bytes: usize, data_len: u64, key_count: u32 },
}

impl ParseError {
    /// Whether a newer release may read what this one cannot.
    pub fn is_newer(&self) -> bool {
        matches!(self, ParseError::Version(_) | ParseError::Kind(_))
    }
}

fn field<const N: usize>(head: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    head[at..at + N].try_into().expect("fields lie within the header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_version_is_that_of_the_newest_level() {
        assert_eq!(VERSION_WITH_ALL, quorate_consensus::level::NEWEST.write_set);
    }
}
