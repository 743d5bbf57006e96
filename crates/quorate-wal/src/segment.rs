//! A segment: one preallocated file of the log, and the block at its start that says which.
//!
//! ```text
//! 0 magic "QUORSEG1" | 8 u32 version, u32 zero | 16 u64 sequence | 24 u64 size | 32 u64 nonce
//! 40 u128 member | 56 u32 zero | 60 u32 crc32c of 0..60
//! ```
//!
//! A sealed segment has another version, and goes on with what its records are sealed with:
//!
//! ```text
//! 64 its data key, wrapped (80 bytes) | 144 u32 crc32c of 0..144
//! ```
//!
//! Records start at [`HEADER_BYTES`]. The nonce is drawn anew for each life of the file, so that
//! what a recycled file held before means nothing. A file gets its name (`log-<sequence>`) only
//! when its full size and its header are on disk: under that name a wrong header or size is
//! damage, never an interrupted start.

use crate::codec::Codec;
use crate::disk::{Disk, DiskFile};
use crate::error::{IoContext, WalError};
use crate::record::Layout;
use crate::seal::{DataKey, DiskKeyId, DiskKeys, Envelope, NotOpened, SEALED};
use crc32c::crc32c;
use quorate_consensus::level::NEWEST;
use quorate_consensus::MemberId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the first record stands: writes are whole pages, the header has its own.
pub(crate) const HEADER_BYTES: u64 = 4096;
pub(crate) const PAGE_BYTES: u64 = 4096;
/// `synced` of a record counts units of 8 bytes in 32 bits.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 32 << 30;
const MAGIC: &[u8; 8] = b"QUORSEG1";
pub(crate) const VERSION: u32 = 2;
const _: () = assert!(VERSION == NEWEST.segment);
const SEALED_VERSION: u32 = SEALED + VERSION;
const LEN: usize = 64;
const SEALED_LEN: usize = LEN + Envelope::BYTES + 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub(crate) sequence: u64,
    pub(crate) size: u64,
    pub(crate) nonce: u64,
    pub(crate) member: MemberId,
    /// Of a sealed segment.
    pub(crate) envelope: Option<Envelope>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderError {
    NotASegment,
    Version(u32),
}

impl SegmentHeader {
    /// Seals it: with a new data key, wrapped with the node's own.
    pub(crate) fn seal(&mut self, keys: &DiskKeys, disk: &dyn Disk) -> io::Result<Option<DataKey>> {
        let Some(own) = keys.own() else { return Ok(None) };
        let (envelope, key) = Envelope::seal(own, disk, &self.fields(SEALED_VERSION))?;
        self.envelope = Some(envelope);
        Ok(Some(key))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let Some(envelope) = &self.envelope else { return self.fields(VERSION).to_vec() };
        let mut bytes = self.fields(SEALED_VERSION).to_vec();
        bytes.extend_from_slice(envelope.bytes());
        let crc = crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn fields(&self, version: u32) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.size.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.nonce.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.member.0.to_le_bytes());
        let crc = crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Never panics, whatever the bytes are.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let fields: &[u8; LEN] =
            bytes.get(..LEN).and_then(|b| b.try_into().ok()).ok_or(HeaderError::NotASegment)?;
        let u64_at = |at: usize| u64::from_le_bytes(fields[at..at + 8].try_into().expect("eight"));
        let u32_at = |at: usize| u32::from_le_bytes(fields[at..at + 4].try_into().expect("four"));
        if &fields[0..8] != MAGIC || crc32c(&fields[..60]) != u32_at(60) {
            return Err(HeaderError::NotASegment);
        }
        let envelope = match u32_at(8) {
            VERSION => None,
            SEALED_VERSION => Some(envelope_of(bytes).ok_or(HeaderError::NotASegment)?),
            other => return Err(HeaderError::Version(other)),
        };
        Ok(SegmentHeader {
            sequence: u64_at(16),
            size: u64_at(24),
            nonce: u64_at(32),
            member: MemberId(u128::from_le_bytes(fields[40..56].try_into().expect("sixteen"))),
            envelope,
        })
    }

    /// What its records are read with.
    fn codec(&self, keys: &DiskKeys) -> Result<Codec, NotOpened> {
        if self.envelope.is_none() && keys.refuses_plain() {
            return Err(NotOpened::Plain);
        }
        let fields = self.fields(SEALED_VERSION);
        let key = self.envelope.map(|envelope| envelope.open(keys, &fields)).transpose()?;
        Ok(Codec::new(self.nonce, key))
    }
}

/// What stands behind the fields of a sealed segment, if it is intact.
fn envelope_of(bytes: &[u8]) -> Option<Envelope> {
    let bytes: &[u8; SEALED_LEN] = bytes.get(..SEALED_LEN)?.try_into().ok()?;
    let (covered, crc) = bytes.split_at(SEALED_LEN - 4);
    let intact = crc32c(covered).to_le_bytes() == crc;
    intact.then(|| Envelope::of(covered[LEN..].try_into().expect("its length")))
}

/// Whether the life of a file that begins like this left nothing in the clear: it is sealed, or was never
/// begun.
pub(crate) fn shows_nothing(head: &[u8]) -> bool {
    match SegmentHeader::decode(head) {
        Ok(header) => header.envelope.is_some(),
        Err(_) => head.iter().all(|byte| *byte == 0),
    }
}

/// An open segment. Writers and readers share it; a reader's clone keeps the file from being
/// recycled under it.
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) codec: Codec,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

impl Segment {
    /// `key` is the one in the header's envelope.
    pub(crate) fn new(
        disk: &dyn Disk,
        header: SegmentHeader,
        key: Option<DataKey>,
        file: Arc<dyn DiskFile>,
    ) -> Self {
        let codec = Codec::new(header.nonce, key);
        Segment { header, codec, path: disk.path(&file_name(header.sequence)), file }
    }

    /// Opens `log-<sequence>` and checks that it is what its name says.
    pub(crate) fn open(
        disk: &dyn Disk,
        sequence: u64,
        member: MemberId,
        keys: &DiskKeys,
    ) -> Result<Self, WalError> {
        let name = file_name(sequence);
        let path = disk.path(&name);
        let damaged = |what: String| WalError::Damaged { file: path.clone(), offset: 0, what };
        let file = disk.open(&name).doing("open", &path)?;
        let len = file.len().doing("look at", &path)?;
        if len < HEADER_BYTES {
            let what = format!("the file is cut off after {len} bytes");
            return Err(WalError::Damaged { file: path.clone(), offset: len, what });
        }
        let mut bytes = [0; SEALED_LEN];
        file.read_exact_at(&mut bytes, 0).doing("read", &path)?;
        let header = SegmentHeader::decode(&bytes).map_err(|e| match e {
            HeaderError::NotASegment => damaged("the segment header is not intact".into()),
            HeaderError::Version(found) => {
                WalError::Version { file: path.clone(), found, supported: VERSION }
            }
        })?;
        if header.member != member {
            return Err(damaged(format!("it belongs to the log of member {}", header.member)));
        }
        if header.sequence != sequence {
            return Err(damaged(format!("it is segment {} by its header", header.sequence)));
        }
        if header.size != len {
            let offset = len.min(header.size);
            let what = format!("the file has {len} bytes, its header says {}", header.size);
            return Err(WalError::Damaged { file: path, offset, what });
        }
        let codec = header.codec(keys).map_err(|e| match e {
            NotOpened::NoKey(key) => WalError::no_key(path.clone(), key, keys),
            NotOpened::Forged => damaged("the key in its header is not intact".into()),
            NotOpened::Plain => WalError::Plain { file: path.clone() },
        })?;
        Ok(Segment { header, codec, path, file })
    }

    /// With which of the node's keys it is encrypted; `None`: it is in the clear.
    pub(crate) fn key(&self) -> Option<DiskKeyId> {
        self.header.envelope.map(|envelope| envelope.key())
    }

    pub(crate) fn layout(&self) -> Layout {
        self.codec.layout()
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.header.sequence
    }

    pub(crate) fn size(&self) -> u64 {
        self.header.size
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), WalError> {
        self.file.write_all_at(bytes, offset).doing("write", &self.path)
    }

    /// A failure is never one to be tried again, not even for want of room: what was written is in
    /// doubt then.
    pub(crate) fn sync(&self) -> Result<(), WalError> {
        self.synced(self.file.sync_data())
    }

    pub(crate) fn synced(&self, result: io::Result<()>) -> Result<(), WalError> {
        let failed = |source| WalError::Io { action: "sync", path: self.path.clone(), source };
        result.map_err(failed)
    }

    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> Result<(), WalError> {
        self.file.read_exact_at(buf, offset).doing("read", &self.path)
    }

    pub(crate) fn will_need(&self, offset: u64, bytes: u64) {
        self.file.will_need(offset, bytes);
    }

    pub(crate) fn damaged(&self, offset: u64, what: impl Into<String>) -> WalError {
        WalError::Damaged { file: self.path.clone(), offset, what: what.into() }
    }
}

pub(crate) fn file_name(sequence: u64) -> String {
    format!("log-{sequence:016x}")
}

/// The sequence number in a segment's file name.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?;
    let sequence = u64::from_str_radix(digits, 16).ok()?;
    (file_name(sequence) == name).then_some(sequence)
}
