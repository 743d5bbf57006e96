//! The meta file: term, vote, identity, and where the log begins.
//!
//! Two slots, each on a page of its own, at 0 and 4096:
//!
//! ```text
//! 0 magic "QUORMETA" | 8 u32 version | 12 u32 crc32c of 16..512 seeded with 0..12
//! 16 u64 sequence | 24 u64 term | 32 u128 vote | 48 u64 has vote | 56 u128 member | 72 u128 group
//! 88 u64 incarnation | 96 u64 first segment | 104 u64 base term | 112 u64 base index
//! 120 five u64 charter | 160 u64, u64: segment and offset up to which the log was synced
//! 176 u64 closed | 184 u64 ceiling | 192 seal (`seal.rs`), zeros to 512
//! ```
//!
//! Format 1 ended at 160, and its checksum too. A slot of another format that is intact by its own
//! checksum was written by another version; any other is damaged.
//!
//! [`MetaFile::save`] writes and syncs the slot that does *not* hold the content in force, so a torn
//! write leaves the old or the new content whole; then the other one. A vote, and a term that was
//! heard of, are written to the first only: somebody waits for one sync then, not for two.
//!
//! Invariants, outside of `save`:
//!
//! * Both slots hold the same, and the same ceiling, but for term, vote, and how far the log was
//!   synced, and those differ only if the terms of both are below the ceiling.
//! * So one slot that is damaged, or cannot be read, never costs a vote that was answered: it was
//!   in a term below the ceiling, if the other slot does not have it. An open that finds only one
//!   goes on in the term of the ceiling, in which this member has neither voted nor stood.
//!
//! * With a key, every slot is sealed with it: what somebody without the key changed is damaged. A slot without a seal
//!   is read, as other files in the clear are, unless that is refused ([`DiskKeys::refusing_plain`]).
//!
//! An open saves both before it lets anything be answered. Releases that know of no ceiling write
//! 0, and both slots at each vote; and they read the newer slot.

mod seal;

use crate::disk::{Disk, DiskFile};
use crate::error::{IoContext, WalError};
use crate::options::Identity;
use crate::seal::{DiskKeyId, DiskKeys, KeyOfKeys};
use crate::segment::parse_file_name;
use crc32c::{crc32c, crc32c_append};
use quorate_consensus::level::NEWEST;
use quorate_consensus::{Charter, HardState, LogPosition, MemberId, Term};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const META_NAME: &str = "meta";
/// Under this name the file is created; an interrupted creation leaves it behind.
pub(crate) const META_TMP_NAME: &str = "meta.tmp";
const MAGIC: &[u8; 8] = b"QUORMETA";
const VERSION: u32 = 2;
const _: () = assert!(VERSION == NEWEST.term_file);
const SLOT_STRIDE: u64 = 4096;
const SLOT_BYTES: usize = 512;
const CHARTER_AT: usize = 120;
/// The ceiling is put so far above the term. Every so many elections a vote takes two syncs; and a member
/// that lost a slot begins so many terms ahead at most.
const TERMS_AHEAD: Term = 256;
/// Where format 1 ended.
const FORMAT_1_BYTES: usize = 160;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    pub(crate) identity: Identity,
    pub(crate) hard_state: HardState,
    /// Sequence number of the segment the log begins in; segments before it are garbage. 0: the
    /// directory is still being created.
    pub(crate) first_segment: u64,
    /// The position before the first entry kept, when `first_segment` was last moved.
    pub(crate) base: LogPosition,
    /// The log was synced up to here when this was written: a log that ends before is damaged.
    pub(crate) synced: Place,
    /// Nothing was written to the log after that.
    pub(crate) closed: bool,
}

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub(crate) sequence: u64,
    /// 0: the other slot holds the same, or what was not answered yet.
    pub(crate) ceiling: Term,
    pub(crate) meta: Meta,
}

/// A place in the log as it lies on disk. The log is written strictly forward, whatever is
/// truncated: so places only grow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    /// In bytes.
    pub(crate) offset: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotError {
    /// Not even the magic.
    Foreign,
    Version(u32),
    Damaged,
    /// Sealed with a key that is not known.
    NoKey(DiskKeyId),
    /// Not sealed, where that is demanded.
    Plain,
}

/// Never panics, whatever the bytes are.
pub(crate) fn decode_slot(bytes: &[u8]) -> Result<Slot, SlotError> {
    let bytes: &[u8; SLOT_BYTES] =
        bytes.get(..SLOT_BYTES).and_then(|b| b.try_into().ok()).ok_or(SlotError::Foreign)?;
    if &bytes[0..8] != MAGIC {
        return Err(SlotError::Foreign);
    }
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    let u128_at = |at: usize| u128::from_le_bytes(bytes[at..at + 16].try_into().expect("16"));
    let (version, sum) = (u32_at(8), u32_at(12));
    // Later formats keep the checksum where it is, over all of the slot.
    let covered = if version == 1 { FORMAT_1_BYTES } else { SLOT_BYTES };
    if sum != checksum(&bytes[..covered]) {
        return Err(SlotError::Damaged);
    }
    if version != VERSION {
        return Err(SlotError::Version(version));
    }
    let identity = Identity {
        member: MemberId(u128_at(56)),
        group: u128_at(72),
        charter: Charter([0, 1, 2, 3, 4].map(|field| u64_at(CHARTER_AT + 8 * field))),
        incarnation: u64_at(88) as u32,
    };
    let voted_for = (u64_at(48) != 0).then(|| MemberId(u128_at(32)));
    let hard_state = HardState { term: u64_at(24), voted_for };
    let base = LogPosition { term: u64_at(104), index: u64_at(112) };
    let synced = Place { segment: u64_at(160), offset: u64_at(168) };
    let (first_segment, closed) = (u64_at(96), u64_at(176) != 0);
    let meta = Meta { identity, hard_state, first_segment, base, synced, closed };
    Ok(Slot { sequence: u64_at(16), ceiling: u64_at(184), meta })
}

/// Whether the bytes of a slot that was decoded may be believed by a node with these keys.
pub(crate) fn check_seal(bytes: &[u8], keys: &DiskKeys) -> Result<(), SlotError> {
    let bytes = bytes.first_chunk().ok_or(SlotError::Foreign)?;
    seal::check(bytes, keys)
}

/// Sealed with `key`, if there is one.
pub(crate) fn encode_slot(slot: &Slot, key: Option<&KeyOfKeys>) -> [u8; SLOT_BYTES] {
    let Slot { sequence, ceiling, meta } = slot;
    let mut bytes = [0; SLOT_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, MAGIC);
    put(8, &VERSION.to_le_bytes());
    put(16, &sequence.to_le_bytes());
    put(24, &meta.hard_state.term.to_le_bytes());
    put(32, &meta.hard_state.voted_for.unwrap_or_default().0.to_le_bytes());
    put(48, &u64::from(meta.hard_state.voted_for.is_some()).to_le_bytes());
    put(56, &meta.identity.member.0.to_le_bytes());
    put(72, &meta.identity.group.to_le_bytes());
    put(88, &u64::from(meta.identity.incarnation).to_le_bytes());
    put(96, &meta.first_segment.to_le_bytes());
    put(104, &meta.base.term.to_le_bytes());
    put(112, &meta.base.index.to_le_bytes());
    put(160, &meta.synced.segment.to_le_bytes());
    put(168, &meta.synced.offset.to_le_bytes());
    put(176, &u64::from(meta.closed).to_le_bytes());
    put(184, &ceiling.to_le_bytes());
    for (field, value) in meta.identity.charter.0.iter().enumerate() {
        put(CHARTER_AT + 8 * field, &value.to_le_bytes());
    }
    if let Some(key) = key {
        seal::put(&mut bytes, key);
    }
    let crc = checksum(&bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// These bytes as a slot that is genuine but for its fields.
pub(crate) fn with_checksum(fields: &[u8]) -> Vec<u8> {
    let mut bytes = [0; SLOT_BYTES];
    let len = fields.len().min(SLOT_BYTES);
    bytes[..len].copy_from_slice(&fields[..len]);
    bytes[..8].copy_from_slice(MAGIC);
    let crc = checksum(&bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes.to_vec()
}

/// Of these bytes from a slot's beginning, but for the field that holds it.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c_append(crc32c(&bytes[..12]), &bytes[16..])
}

/// The open file and what it holds.
pub(crate) struct MetaFile {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    keys: DiskKeys,
    /// The slot that certainly holds `content`.
    in_force: u64,
    sequence: u64,
    ceiling: Term,
    content: Meta,
}

impl MetaFile {
    /// Creates the file whole: it gets its name when both slots are on disk.
    pub(crate) fn create(disk: &dyn Disk, keys: DiskKeys, content: Meta) -> Result<Self, WalError> {
        let path = disk.path(META_NAME);
        let file = disk.create(META_TMP_NAME).doing("create", &path)?;
        let (in_force, sequence, ceiling) = (0, 0, 0);
        let mut meta = MetaFile { path, file, keys, in_force, sequence, ceiling, content };
        meta.save_twice(content)?;
        disk.rename(META_TMP_NAME, META_NAME).doing("create", &meta.path)?;
        disk.sync_dir().doing("sync", disk.dir())?;
        Ok(meta)
    }

    pub(crate) fn open(disk: &dyn Disk, keys: DiskKeys) -> Result<Self, WalError> {
        let path = disk.path(META_NAME);
        let file = disk.open(META_NAME).doing("open", &path)?;
        let len = file.len().doing("look at", &path)?;
        let mut slots = [Err(SlotError::Foreign); 2];
        let mut unreadable = None;
        for (number, slot) in slots.iter_mut().enumerate() {
            let offset = number as u64 * SLOT_STRIDE;
            let mut bytes = [0; SLOT_BYTES];
            if len < offset + SLOT_BYTES as u64 {
                continue;
            }
            match file.read_exact_at(&mut bytes, offset) {
                Ok(()) => {
                    *slot = decode_slot(&bytes)
                        .and_then(|slot| check_seal(&bytes, &keys).map(|()| slot));
                }
                Err(error) => unreadable = Some(error),
            }
        }
        let (in_force, Slot { sequence, ceiling, meta: mut content }) = match slots {
            [Ok(a), Ok(b)] if b.sequence > a.sequence => (1, b),
            [Ok(a), _] => (0, a),
            [_, Ok(b)] => (1, b),
            [Err(a), Err(b)] => {
                unreadable.map_or(Ok(()), Err).doing("read", &path)?;
                return Err(refusal(disk, path, &keys, a, b));
            }
        };
        let one_is_lost = slots.iter().any(Result::is_err);
        if one_is_lost && content.hard_state.term < ceiling {
            content.hard_state = HardState { term: ceiling, voted_for: None };
        }
        Ok(MetaFile { path, file, keys, in_force, sequence, ceiling, content })
    }

    /// Before the first save after an open. If only the process died, one slot, and nobody knows which, may
    /// exist in the kernel's memory alone: writing the same bytes again settles it, and harms nothing
    /// that is on disk.
    pub(crate) fn settle(&self) -> Result<(), WalError> {
        for slot in 0..2 {
            let mut bytes = [0; SLOT_BYTES];
            let read = self.file.read_exact_at(&mut bytes, slot * SLOT_STRIDE);
            if read.is_ok() && decode_slot(&bytes).is_ok() {
                self.write(slot, &bytes)?;
            }
        }
        Ok(())
    }

    pub(crate) fn content(&self) -> Meta {
        self.content
    }

    /// Durable when it returns. An error leaves open which content the disk holds: it is final.
    pub(crate) fn save(&mut self, content: Meta) -> Result<(), WalError> {
        let (hard_state, synced) = (content.hard_state, content.synced);
        let is_vote = content == Meta { hard_state, synced, ..self.content };
        // A term goes back only by force, and then nothing is to bring it back.
        if !is_vote || !(self.content.hard_state.term..self.ceiling).contains(&hard_state.term) {
            return self.save_twice(content);
        }
        self.put(content, self.ceiling, [1 - self.in_force])?;
        self.in_force = 1 - self.in_force;
        Ok(())
    }

    fn save_twice(&mut self, content: Meta) -> Result<(), WalError> {
        // Who knows of no term yet has nothing to lose, and is not to look as if it did.
        let term = content.hard_state.term;
        let ceiling = if term == 0 { 0 } else { term.saturating_add(TERMS_AHEAD) };
        self.put(content, ceiling, [1 - self.in_force, self.in_force])
    }

    fn put<const N: usize>(
        &mut self,
        content: Meta,
        ceiling: Term,
        slots: [u64; N],
    ) -> Result<(), WalError> {
        let sequence = self.sequence + 1;
        let slot = Slot { sequence, ceiling, meta: content };
        let bytes = encode_slot(&slot, self.keys.own());
        slots.into_iter().try_for_each(|slot| self.write(slot, &bytes))?;
        (self.sequence, self.ceiling, self.content) = (sequence, ceiling, content);
        Ok(())
    }

    /// On disk when it returns.
    fn write(&self, slot: u64, bytes: &[u8; SLOT_BYTES]) -> Result<(), WalError> {
        self.file.write_all_at(bytes, slot * SLOT_STRIDE).doing("write", &self.path)?;
        self.file.sync_data().doing("sync", &self.path)
    }
}

fn refusal(
    disk: &dyn Disk,
    path: PathBuf,
    keys: &DiskKeys,
    a: SlotError,
    b: SlotError,
) -> WalError {
    match (a, b) {
        (SlotError::NoKey(key), _) | (_, SlotError::NoKey(key)) => {
            WalError::no_key(path, key, keys)
        }
        (SlotError::Plain, _) | (_, SlotError::Plain) => WalError::Plain { file: path },
        (SlotError::Version(found), _) | (_, SlotError::Version(found)) => {
            WalError::Version { file: path, found, supported: VERSION }
        }
        (SlotError::Foreign, SlotError::Foreign) if !holds_segments(disk) => WalError::Foreign {
            dir: disk.dir().to_path_buf(),
            what: format!("its file `{META_NAME}` is not one of a log"),
        },
        _ => WalError::Damaged {
            file: path,
            offset: 0,
            what: "both copies of term, vote and identity are unreadable".into(),
        },
    }
}

/// Then a directory was ours, whatever its meta file looks like now.
fn holds_segments(disk: &dyn Disk) -> bool {
    disk.list().is_ok_and(|names| names.iter().any(|name| parse_file_name(name).is_some()))
}

#[cfg(test)]
mod tests;
