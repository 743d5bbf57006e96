//! A segment: one preallocated file of the log, and the block at its start that says which.
//!
//! ```text
//! 0 magic "QUORSEG1" | 8 u32 version, u32 zero | 16 u64 sequence | 24 u64 size | 32 u64 nonce
//! 40 u128 member | 56 u32 zero | 60 u32 crc32c of 0..60
//! ```
//!
//! Records start at [`HEADER_BYTES`]. The nonce is drawn anew for each life of the file, so that
//! what a recycled file held before means nothing. A file gets its name (`log-<sequence>`) only
//! when its full size and its header are on disk: under that name a wrong header or size is
//! damage, never an interrupted start.

use crate::disk::{Disk, DiskFile};
use crate::error::{IoContext, WalError};
use crc32c::crc32c;
use quorate_consensus::level::NEWEST;
use quorate_consensus::MemberId;
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
const LEN: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub(crate) sequence: u64,
    pub(crate) size: u64,
    pub(crate) nonce: u64,
    pub(crate) member: MemberId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderError {
    NotASegment,
    Version(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.size.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.nonce.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.member.0.to_le_bytes());
        let crc = crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes: &[u8; LEN] =
            bytes.get(..LEN).and_then(|b| b.try_into().ok()).ok_or(HeaderError::NotASegment)?;
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        if &bytes[0..8] != MAGIC || crc32c(&bytes[..60]) != u32_at(60) {
            return Err(HeaderError::NotASegment);
        }
        match u32_at(8) {
            VERSION => Ok(SegmentHeader {
                sequence: u64_at(16),
                size: u64_at(24),
                nonce: u64_at(32),
                member: MemberId(u128::from_le_bytes(bytes[40..56].try_into().expect("sixteen"))),
            }),
            other => Err(HeaderError::Version(other)),
        }
    }
}

/// An open segment. Writers and readers share it; a reader's clone keeps the file from being
/// recycled under it.
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

impl Segment {
    pub(crate) fn new(disk: &dyn Disk, header: SegmentHeader, file: Arc<dyn DiskFile>) -> Self {
        Segment { header, path: disk.path(&file_name(header.sequence)), file }
    }

    /// Opens `log-<sequence>` and checks that it is what its name says.
    pub(crate) fn open(disk: &dyn Disk, sequence: u64, member: MemberId) -> Result<Self, WalError> {
        let name = file_name(sequence);
        let path = disk.path(&name);
        let damaged = |what: String| WalError::Damaged { file: path.clone(), offset: 0, what };
        let file = disk.open(&name).doing("open", &path)?;
        let len = file.len().doing("look at", &path)?;
        if len < HEADER_BYTES {
            let what = format!("the file is cut off after {len} bytes");
            return Err(WalError::Damaged { file: path.clone(), offset: len, what });
        }
        let mut bytes = [0; LEN];
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
        Ok(Segment { header, path, file })
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
        let failed = |source| WalError::Io { action: "sync", path: self.path.clone(), source };
        self.file.sync_data().map_err(failed)
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
