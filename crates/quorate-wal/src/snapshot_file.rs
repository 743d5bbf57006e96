//! Snapshots beside the log: `snap-<index>`, each one file that is either whole or not there.
//!
//! ```text
//! 0 magic "QUORSNAP" | 8 u32 version | 12 u32 crc32c of everything behind | 16 u64 index
//! 24 u64 bytes of meta | 32 u64 bytes of payload | 40 meta, payload
//! ```
//!
//! A file is written under another name, synced, and then renamed: what carries its name is on
//! disk, and if it does not match its checksum, it is damaged.

use crate::disk::{Disk, RealDisk};
use crate::error::{IoContext, WalError};
use bytes::Bytes;
use crc32c::crc32c_append;
use quorate_consensus::level::NEWEST;
use quorate_consensus::Index;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const MAGIC: &[u8; 8] = b"QUORSNAP";
const VERSION: u32 = 1;
const _: () = assert!(VERSION == NEWEST.snapshot_file);
const HEADER_BYTES: usize = 40;
const TMP_NAME: &str = "snap.tmp";

/// The snapshots in a log directory. The caller holds the log open: nobody else writes there.
pub struct SnapshotFiles {
    disk: Arc<dyn Disk>,
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
    /// Those in the log directory `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self::on(Arc::new(RealDisk::new(&dir.into())))
    }

    pub(crate) fn on(disk: Arc<dyn Disk>) -> Self {
        SnapshotFiles { disk, changing: Mutex::new(()) }
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
        let header = encode_header(index, meta, payload);
        let mut offset = 0;
        for part in [&header, meta, payload] {
            file.write_all_at(part, offset).doing("write", &path)?;
            offset += part.len() as u64;
        }
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
        let mut bytes = vec![0; file.len().doing("look at", &path)? as usize];
        file.read_exact_at(&mut bytes, 0).doing("read", &path)?;
        match decode(Bytes::from(bytes)) {
            Ok(snapshot) if snapshot.index == index => Ok(snapshot),
            Ok(other) => {
                let what = format!("it is the snapshot of index {}", other.index);
                Err(WalError::SnapshotDamaged { file: path, what })
            }
            Err(what) => Err(WalError::SnapshotDamaged { file: path, what: what.into() }),
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

fn encode_header(index: Index, meta: &[u8], payload: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&index.to_le_bytes());
    header[24..32].copy_from_slice(&(meta.len() as u64).to_le_bytes());
    header[32..40].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    let crc = crc32c_append(crc32c_append(checksum_of_header(&header), meta), payload);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Never panics, whatever the bytes are. `Err` says what is wrong.
pub(crate) fn decode(bytes: Bytes) -> Result<SnapshotFile, &'static str> {
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
    if u32_at(8) != VERSION {
        return Err("another release with another format wrote it");
    }
    let (meta_len, payload_len) = (u64_at(24), u64_at(32));
    let body = (bytes.len() - HEADER_BYTES) as u64;
    if meta_len.checked_add(payload_len) != Some(body) {
        return Err("its parts do not add up to its length");
    }
    let payload_at = HEADER_BYTES + meta_len as usize;
    let meta = bytes.slice(HEADER_BYTES..payload_at);
    Ok(SnapshotFile { index: u64_at(16), meta, payload: bytes.slice(payload_at..) })
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
