//! Records of one segment, to bytes and back. How they are laid out: [`crate::record`].

use crate::record::{
    Head, Layout, RecordKind, ALIGN, PLAIN_HEAD_BYTES, SEALED_HEAD_BYTES, SUM_BYTES,
};
use crate::seal::{sealed_bytes, DataKey, Salt, WriteKey, CHUNK_BYTES};
use bytes::Bytes;
use crc32c::{crc32c, crc32c_append};
use quorate_consensus::{checksum, EntryKind, LogPosition};
use std::ops::Range;
use std::sync::Arc;

/// What the records of one life of a file are written and read with.
#[derive(Clone)]
pub(crate) struct Codec {
    nonce: u64,
    key: Option<DataKey>,
}

impl Codec {
    /// With a key, the segment is sealed.
    pub(crate) fn new(nonce: u64, key: Option<DataKey>) -> Self {
        Codec { nonce, key }
    }

    /// In a sealed segment, what one write is sealed with. Nothing was, or will be, written to this life of the
    /// file with this salt but what this write puts to different places.
    pub(crate) fn of_write(&self, salt: &Salt) -> Option<Arc<WriteKey>> {
        self.key.as_ref().map(|key| Arc::new(key.of_write(salt)))
    }

    pub(crate) fn layout(&self) -> Layout {
        match self.key {
            None => Layout::Plain,
            Some(_) => Layout::Sealed,
        }
    }

    /// Appends a record that will stand at `offset`; returns its crc. The caller has checked that `data` is
    /// shorter than 4 GiB, and that it fits to `data_crc`. In a sealed segment, `write_key` is of this write.
    pub(crate) fn encode(
        &self,
        buf: &mut Vec<u8>,
        offset: u64,
        head: &Head,
        data: &[u8],
        data_crc: u32,
        write_key: Option<&Arc<WriteKey>>,
    ) -> u32 {
        let begun = buf.len();
        let (mut body, crc) = self.encode_head(buf, offset, head, data.len(), data_crc, write_key);
        let mut rest = data;
        loop {
            let part = body.next_part(rest.len(), rest.len());
            let place = offset + (buf.len() - begun) as u64;
            body.put(buf, &rest[..part], place);
            rest = &rest[part..];
            if rest.is_empty() {
                break;
            }
        }
        pad(buf, offset + (buf.len() - begun) as u64);
        crc
    }

    /// The same for data that is put part by part: the head alone.
    pub(crate) fn encode_long(
        &self,
        buf: &mut Vec<u8>,
        offset: u64,
        head: &Head,
        data: Bytes,
        data_crc: u32,
        write_key: Option<&Arc<WriteKey>>,
    ) -> (LongData, u32) {
        let (body, crc) = self.encode_head(buf, offset, head, data.len(), data_crc, write_key);
        (LongData { rest: data, body }, crc)
    }

    fn encode_head(
        &self,
        buf: &mut Vec<u8>,
        offset: u64,
        head: &Head,
        data_len: usize,
        data_crc: u32,
        write_key: Option<&Arc<WriteKey>>,
    ) -> (Body, u32) {
        debug_assert_eq!(offset % ALIGN as u64, 0);
        debug_assert_eq!(head.synced % ALIGN as u64, 0);
        debug_assert_eq!(write_key.is_some(), self.key.is_some());

        let layout = self.layout();
        let mut bytes = [0; SEALED_HEAD_BYTES];
        if layout == Layout::Plain {
            bytes[4..8].copy_from_slice(&data_crc.to_le_bytes());
        }
        bytes[8..12].copy_from_slice(&head.prev.to_le_bytes());
        bytes[12..16].copy_from_slice(&(data_len as u32).to_le_bytes());
        bytes[16..20].copy_from_slice(&head.incarnation.to_le_bytes());
        bytes[20..24].copy_from_slice(&((head.synced / ALIGN as u64) as u32).to_le_bytes());
        bytes[24] = head.kind as u8;
        bytes[25] = head.entry_kind.code();
        bytes[32..40].copy_from_slice(&head.position.term.to_le_bytes());
        bytes[40..48].copy_from_slice(&head.position.index.to_le_bytes());
        if let Some(key) = write_key {
            bytes[PLAIN_HEAD_BYTES..].copy_from_slice(&key.salt);
        }
        let crc = self.head_crc(offset, &bytes[..layout.head_bytes()]);
        bytes[0..4].copy_from_slice(&crc.to_le_bytes());
        buf.extend_from_slice(&bytes[..layout.head_bytes()]);
        let body = match write_key {
            None => Body::Plain,
            Some(key) => {
                let (key, sum) = (key.clone(), Some(data_crc.to_le_bytes()));
                Body::Sealed { key, head: bytes, sum }
            }
        };
        (body, crc)
    }

    /// Reads the head that starts `bytes` and stands at `offset` of the segment; `None` if it is not
    /// a genuine one of this segment and place. Never panics, whatever the bytes are.
    pub(crate) fn decode_head(&self, bytes: &[u8], offset: u64) -> Option<Decoded> {
        let layout = self.layout();
        let bytes = bytes.get(..layout.head_bytes())?;
        // Cheap tests first: recovery tries this at every aligned offset behind a bad record.
        let kind = RecordKind::from_u8(bytes[24])?;
        let entry_kind = EntryKind::from_code(bytes[25]);
        let crc = u32_at(bytes, 0);
        if bytes[26..32] != [0; 6] || crc != self.head_crc(offset, bytes) {
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
        let bytes_of_it = layout.record_bytes(data_len);
        Some(Decoded { head, crc, bytes: bytes_of_it, data_len, data_crc: u32_at(bytes, 4) })
    }

    /// The data of the record that starts `bytes` and stands at `offset`, if all of it is there and intact:
    /// where in `bytes` it is, and its checksum. What is sealed is opened in place.
    pub(crate) fn open(
        &self,
        found: &Decoded,
        bytes: &mut [u8],
        offset: u64,
    ) -> Option<(Range<usize>, u32)> {
        let (head, body) = bytes.get_mut(..found.bytes)?.split_at_mut(self.layout().head_bytes());
        let (at, len, sum) = match &self.key {
            None => (head.len(), found.data_len, found.data_crc),
            Some(key) => {
                let sealed = sealed_bytes(SUM_BYTES + found.data_len);
                let place = offset + head.len() as u64;
                let opened = key.open(salt_of(head), place, head, body.get_mut(..sealed)?)?;
                debug_assert_eq!(opened, SUM_BYTES + found.data_len);
                (head.len() + SUM_BYTES, sealed, u32_at(body, 0))
            }
        };
        let data = at..at + found.data_len;
        let intact = body[len..].iter().all(|byte| *byte == 0)
            && checksum(found.head.entry_kind, &bytes[data.clone()]) == sum;
        intact.then_some((data, sum))
    }

    fn head_crc(&self, offset: u64, head: &[u8]) -> u32 {
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.nonce.to_le_bytes());
        seed[8..].copy_from_slice(&offset.to_le_bytes());
        crc32c_append(crc32c(&seed), &head[4..])
    }
}

/// A head that was read and found genuine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decoded {
    pub(crate) head: Head,
    /// What the next record's `prev` must be.
    pub(crate) crc: u32,
    /// Of the whole record, in bytes.
    pub(crate) bytes: usize,
    pub(crate) data_len: usize,
    /// Not of a sealed one.
    data_crc: u32,
}

/// Data that is too long to be put at once: what of it is left.
pub(crate) struct LongData {
    rest: Bytes,
    body: Body,
}

impl LongData {
    /// Appends the next part, of about `room` bytes, which will stand at `place`. False when nothing is left.
    pub(crate) fn put_next(&mut self, buf: &mut Vec<u8>, room: usize, place: u64) -> bool {
        let begun = buf.len();
        let part = self.rest.split_to(self.body.next_part(self.rest.len(), room));
        self.body.put(buf, &part, place);
        if self.rest.is_empty() {
            pad(buf, place + (buf.len() - begun) as u64);
        }
        !self.rest.is_empty()
    }
}

/// What the parts of a record's data are put with.
enum Body {
    Plain,
    /// `sum` stands before the first part.
    Sealed {
        key: Arc<WriteKey>,
        head: [u8; SEALED_HEAD_BYTES],
        sum: Option<[u8; SUM_BYTES]>,
    },
}

impl Body {
    /// Appends a part, which will stand at `place`.
    fn put(&mut self, buf: &mut Vec<u8>, part: &[u8], place: u64) {
        let from = buf.len();
        match self {
            Body::Plain => buf.extend_from_slice(part),
            Body::Sealed { key, head, sum } => {
                buf.extend_from_slice(sum.take().as_ref().map_or(&[], |sum| &sum[..]));
                buf.extend_from_slice(part);
                key.seal(place, head, buf, from);
            }
        }
    }

    /// How much of the `rest` is next; `room` says how much is wanted.
    fn next_part(&self, rest: usize, room: usize) -> usize {
        match self {
            Body::Plain => rest.min(room),
            Body::Sealed { sum: Some(_), .. } => rest.min(CHUNK_BYTES - SUM_BYTES),
            Body::Sealed { sum: None, .. } => rest.min(CHUNK_BYTES),
        }
    }
}

/// Fills the record that ends at `place` up.
fn pad(buf: &mut Vec<u8>, place: u64) {
    const PADDING: [u8; ALIGN] = [0; ALIGN];
    let missing = place.next_multiple_of(ALIGN as u64) - place;
    buf.extend_from_slice(&PADDING[..missing as usize]);
}

fn salt_of(head: &[u8]) -> &Salt {
    head[PLAIN_HEAD_BYTES..SEALED_HEAD_BYTES].try_into().expect("16 bytes")
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
