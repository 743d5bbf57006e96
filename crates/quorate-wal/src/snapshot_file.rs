//! Snapshots beside the log: `snap-<index>`, each one file that is either whole or not there.
//!
//! ```text
//! 0 magic "QUORSNAP" | 8 u32 version | 12 u32 crc32c of everything behind | 16 u64 index
//! 24 u64 bytes of meta | 32 u64 bytes of payload | 40 meta, payload
//! ```
//!
//! Where files are encrypted, its version is another, and meta and payload are sealed ([`crate::seal`]),
//! together with the head but for its checksum:
//!
//! ```text
//! 40 data key, wrapped (80 bytes) | 120 sealed: meta, payload
//! ```
//!
//! A file is written under another name, synced, and then renamed: what carries its name is on
//! disk, and if it does not match its checksum, it is damaged.

use crate::disk::{Disk, DiskFile, RealDisk};
use crate::error::{IoContext, WalError};
use crate::seal::{
    sealed_bytes, DataKey, DiskKeyId, DiskKeys, Envelope, NotOpened, Salt, CHUNK_BYTES, SEALED,
};
use bytes::Bytes;
use crc32c::crc32c_append;
use quorate_consensus::level::NEWEST;
use quorate_consensus::Index;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const MAGIC: &[u8; 8] = b"QUORSNAP";
const VERSION: u32 = 1;
const _: () = assert!(VERSION == NEWEST.snapshot_file);
const SEALED_VERSION: u32 = SEALED + VERSION;
const HEADER_BYTES: usize = 40;
const SEALED_HEADER_BYTES: usize = HEADER_BYTES + Envelope::BYTES;
/// Each file has a data key of its own, and is written once.
const SALT: Salt = [0; 16];
/// What an interrupted save leaves.
pub(crate) const TMP_NAME: &str = "snap.tmp";

/// The snapshots in a log directory. The caller holds the log open: nobody else writes there.
pub struct SnapshotFiles {
    disk: Arc<dyn Disk>,
    keys: DiskKeys,
    /// One `save` or `prune` at a time.
    changing: Mutex<()>,
}

/// What [`SnapshotFiles::save`] was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    pub index: Index,
    pub meta: Bytes,
    pub payload: Bytes,
}

impl SnapshotFiles {
    /// Those in the log directory `dir`, with the keys of that log.
    pub fn new(dir: impl Into<PathBuf>, keys: DiskKeys) -> Self {
        Self::on(Arc::new(RealDisk::new(&dir.into())), keys)
    }

    pub(crate) fn on(disk: Arc<dyn Disk>, keys: DiskKeys) -> Self {
        SnapshotFiles { disk, keys, changing: Mutex::new(()) }
    }

    /// Durable when it returns; replaces one with the same index. A failure leaves the snapshots
    /// there were.
    pub fn save(&self, index: Index, meta: &[u8], payload: &[u8]) -> Result<(), WalError> {
        let _one = self.changing.lock().expect("no panics under this lock");
        let known = self.list()?.contains(&index);
        let saved = self.write(index, meta, payload);
        if saved.is_err() {
            // On a full disk a part of a snapshot would only take room; the error is what counts.
            let _ = self.disk.remove(TMP_NAME);
            if !known {
                // It may have its name already, and nobody was told that it is here.
                let _ = self.disk.remove(&file_name(index));
            }
        }
        saved
    }

    fn write(&self, index: Index, meta: &[u8], payload: &[u8]) -> Result<(), WalError> {
        let path = self.disk.path(&file_name(index));
        let file = self.disk.create(TMP_NAME).doing("create", &path)?;
        let header = Header { index, meta: meta.len() as u64, payload: payload.len() as u64 };
        match self.keys.own() {
            None => header.write(&*file, meta, payload),
            Some(own) => Envelope::seal(own, &*self.disk, &header.fields(SEALED_VERSION))
                .and_then(|sealing| header.write_sealed(&*file, &sealing, meta, payload)),
        }
        .doing("write", &path)?;
        file.sync_data().doing("sync", &path)?;
        self.disk.rename(TMP_NAME, &file_name(index)).doing("create", &path)?;
        self.disk.sync_dir().doing("sync", self.disk.dir())
    }

    /// The indexes of all snapshots, newest first.
    pub fn list(&self) -> Result<Vec<Index>, WalError> {
        let names = self.disk.list().doing("list", self.disk.dir())?;
        let mut indexes: Vec<Index> = names.iter().filter_map(|n| parse_file_name(n)).collect();
        indexes.sort_unstable_by(|a, b| b.cmp(a));
        Ok(indexes)
    }

    /// Reads one back. A damaged one is refused; an older one may serve instead.
    pub fn load(&self, index: Index) -> Result<SnapshotFile, WalError> {
        let name = file_name(index);
        let path = self.disk.path(&name);
        let file = self.disk.open(&name).doing("open", &path)?;
        let bytes = read_all(&*file).doing("read", &path)?;
        match decode(bytes, &self.keys) {
            Ok(snapshot) if snapshot.index == index => Ok(snapshot),
            Ok(other) => {
                let what = format!("it is the snapshot of index {}", other.index);
                Err(WalError::SnapshotDamaged { file: path, what })
            }
            Err(Unreadable::Damaged(what)) => {
                Err(WalError::SnapshotDamaged { file: path, what: what.into() })
            }
            Err(Unreadable::NoKey(key)) => Err(WalError::no_key(path, key, &self.keys)),
            Err(Unreadable::Plain) => Err(WalError::Plain { file: path }),
        }
    }

    /// Deletes this one, durably when it returns.
    pub fn remove(&self, index: Index) -> Result<(), WalError> {
        let _one = self.changing.lock().expect("no panics under this lock");
        let name = file_name(index);
        self.disk.remove(&name).doing("delete", &self.disk.path(&name))?;
        self.disk.sync_dir().doing("sync", self.disk.dir())
    }

    /// Deletes old snapshots. Stay: the newest two, and all that the log, which starts after
    /// `base`, continues: a state that lags behind can start from any of them. Returns the indexes
    /// of those deleted.
    pub fn prune(&self, base: Index) -> Result<Vec<Index>, WalError> {
        let _one = self.changing.lock().expect("no panics under this lock");
        let all = self.list()?;
        let mut deleted = Vec::new();
        for index in all.into_iter().skip(2).filter(|index| *index < base) {
            let name = file_name(index);
            self.disk.remove(&name).doing("delete", &self.disk.path(&name))?;
            deleted.push(index);
        }
        Ok(deleted)
    }
}

/// Refuses snapshots that are encrypted with a key that is not there, or not at all where that is demanded; those
/// that are damaged are not looked at any further. Returns with what each of the others is encrypted.
pub(crate) fn check_keys(
    disk: &dyn Disk,
    keys: &DiskKeys,
) -> Result<Vec<Option<DiskKeyId>>, WalError> {
    let mut found = Vec::new();
    let names = disk.list().doing("list", disk.dir())?;
    for name in names.iter().filter(|name| parse_file_name(name).is_some()) {
        let path = disk.path(name);
        // One that cannot be read is passed over when it is needed, too.
        let Ok(file) = disk.open(name) else { continue };
        let Ok(len) = file.len() else { continue };
        let mut head = vec![0; len.min(SEALED_HEADER_BYTES as u64) as usize];
        if file.read_exact_at(&mut head, 0).is_err() {
            continue;
        }
        let key = envelope_of(&head).map(|envelope| envelope.key());
        let refusal = match key {
            Some(key) if keys.find(key).is_none() => Some(WalError::no_key(path, key, keys)),
            None if keys.refuses_plain() => Some(WalError::Plain { file: path }),
            _ => None,
        };
        // Or its head is damaged.
        let is_whole = || read_all(&*file).is_ok_and(|bytes| check(&bytes).is_ok());
        if let Some(refusal) = refusal.filter(|_| is_whole()) {
            return Err(refusal);
        }
        found.push(key);
    }
    Ok(found)
}

fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.len()? as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// The fields at the beginning of a file.
#[derive(Clone, Copy)]
struct Header {
    index: Index,
    /// Of these so many bytes.
    meta: u64,
    payload: u64,
}

impl Header {
    /// Without the checksum.
    fn fields(&self, version: u32) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.index.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.meta.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.payload.to_le_bytes());
        bytes
    }

    fn write(&self, file: &dyn DiskFile, meta: &[u8], payload: &[u8]) -> io::Result<()> {
        let mut header = self.fields(VERSION);
        let crc = crc32c_append(crc32c_append(checksum_of_header(&header), meta), payload);
        header[12..16].copy_from_slice(&crc.to_le_bytes());
        let mut offset = 0;
        for part in [&header, meta, payload] {
            file.write_all_at(part, offset)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Chunk by chunk, so that nothing is in memory twice; the head, with the checksum, comes last.
    fn write_sealed(
        &self,
        file: &dyn DiskFile,
        (envelope, key): &(Envelope, DataKey),
        meta: &[u8],
        payload: &[u8],
    ) -> io::Result<()> {
        let (fields, write_key) = (self.fields(SEALED_VERSION), key.of_write(&SALT));
        let mut crc = crc32c_append(checksum_of_header(&fields), envelope.bytes());
        let (mut place, mut from) = (SEALED_HEADER_BYTES as u64, 0);
        let total = meta.len() + payload.len();
        let mut chunk = Vec::with_capacity(sealed_bytes(total.min(CHUNK_BYTES)));
        loop {
            let to = total.min(from + CHUNK_BYTES);
            chunk.clear();
            chunk.extend_from_slice(&meta[from.min(meta.len())..to.min(meta.len())]);
            let behind = |at: usize| at.saturating_sub(meta.len());
            chunk.extend_from_slice(&payload[behind(from)..behind(to)]);
            write_key.seal(place, &fields, &mut chunk, 0);
            crc = crc32c_append(crc, &chunk);
            file.write_all_at(&chunk, place)?;
            place += chunk.len() as u64;
            from = to;
            if from == total {
                break;
            }
        }
        let mut header = [&fields[..], envelope.bytes()].concat();
        header[12..16].copy_from_slice(&crc.to_le_bytes());
        file.write_all_at(&header, 0)
    }
}

/// Why the bytes are no snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unreadable {
    Damaged(&'static str),
    NoKey(DiskKeyId),
    /// In the clear, where such ones are refused.
    Plain,
}

/// Never panics, whatever the bytes are.
pub(crate) fn decode(mut bytes: Vec<u8>, keys: &DiskKeys) -> Result<SnapshotFile, Unreadable> {
    let (version, header) = check(&bytes).map_err(Unreadable::Damaged)?;
    let body = header.meta.checked_add(header.payload);
    let body = body.and_then(|len| usize::try_from(len).ok());
    let at = match version {
        VERSION if keys.refuses_plain() => return Err(Unreadable::Plain),
        VERSION => HEADER_BYTES,
        SEALED_VERSION => SEALED_HEADER_BYTES,
        _ => return Err(Unreadable::Damaged("another release with another format wrote it")),
    };
    let sealed = |len: usize| if version == VERSION { len } else { sealed_bytes(len) };
    let fits =
        |len: &usize| *len <= bytes.len() && bytes.len().checked_sub(at) == Some(sealed(*len));
    let Some(body) = body.filter(fits) else {
        return Err(Unreadable::Damaged("its parts do not add up to its length"));
    };
    if let Some(envelope) = envelope_of(&bytes) {
        let fields = header.fields(version);
        let forged = Unreadable::Damaged("its seal is broken");
        let key = envelope.open(keys, &fields).map_err(|error| match error {
            NotOpened::NoKey(key) => Unreadable::NoKey(key),
            NotOpened::Forged | NotOpened::Plain => forged,
        })?;
        key.open(&SALT, at as u64, &fields, &mut bytes[at..]).ok_or(forged)?;
    }
    let bytes = Bytes::from(bytes);
    let payload_at = at + header.meta as usize;
    let meta = bytes.slice(at..payload_at);
    Ok(SnapshotFile { index: header.index, meta, payload: bytes.slice(payload_at..at + body) })
}

/// The bytes as a sealed file that is genuine by its checksum alone.
pub(crate) fn sealed_with_checksum(fields: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; fields.len().max(HEADER_BYTES)];
    bytes[..fields.len()].copy_from_slice(fields);
    bytes[0..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&SEALED_VERSION.to_le_bytes());
    let crc = crc32c_append(crc32c_append(0, &bytes[..12]), &bytes[16..]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The version and the fields of a file whose checksum fits. `Err` says what is wrong.
fn check(bytes: &[u8]) -> Result<(u32, Header), &'static str> {
    let header: [u8; HEADER_BYTES] =
        bytes.get(..HEADER_BYTES).and_then(|h| h.try_into().ok()).ok_or("it is too short")?;
    let u64_at = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight"));
    let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four"));
    if &header[0..8] != MAGIC {
        return Err("it does not begin like a snapshot");
    }
    if u32_at(12) != crc32c_append(checksum_of_header(&header), &bytes[HEADER_BYTES..]) {
        return Err("its checksum does not match");
    }
    Ok((u32_at(8), Header { index: u64_at(16), meta: u64_at(24), payload: u64_at(32) }))
}

/// Of a sealed file that begins like this.
fn envelope_of(bytes: &[u8]) -> Option<Envelope> {
    let sealed = bytes.starts_with(MAGIC) && bytes.get(8..12)? == SEALED_VERSION.to_le_bytes();
    let envelope = bytes.get(HEADER_BYTES..SEALED_HEADER_BYTES)?.try_into().ok()?;
    sealed.then_some(Envelope::of(envelope))
}

fn checksum_of_header(header: &[u8; HEADER_BYTES]) -> u32 {
    crc32c_append(crc32c_append(0, &header[..12]), &header[16..])
}

fn file_name(index: Index) -> String {
    format!("snap-{index:016x}")
}

fn parse_file_name(name: &str) -> Option<Index> {
    let index = Index::from_str_radix(name.strip_prefix("snap-")?, 16).ok()?;
    (file_name(index) == name).then_some(index)
}

#[cfg(test)]
mod tests;
