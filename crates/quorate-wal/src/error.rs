//! What can go wrong, grouped by where the remedy lies: the disk, damaged data, the configuration,
//! or the caller.

use crate::seal::{DiskKeyId, DiskKeys};
use quorate_consensus::{Index, LogPosition};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a log can not be opened, or failed for good.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    // The disk.
    #[error(
        "cannot {action} {path}: {source}. Check that it is there, that this user may write to it, \
         and what the kernel says of the disk",
        path = path.display()
    )]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "no space to {action} {path}: {source}. The log needs room for one more segment, and a file descriptor: free \
         some on the file system of {dir}, or, if too many files are open, raise the limit (LimitNOFILE)",
        path = path.display(), dir = dir.display()
    )]
    Full { action: &'static str, dir: PathBuf, path: PathBuf, source: io::Error },
    #[error(
        "the log in {dir} failed for good: {cause}. This node acknowledges nothing any more; what \
         it acknowledged before stands, and the other members are not affected. Restart it when \
         the cause is removed",
        dir = dir.display()
    )]
    Failed { dir: PathBuf, cause: Box<WalError> },

    #[error(
        "a bug ended a thread of the log in {dir}: {what}. What was acknowledged stands, but what is \
         in memory cannot be relied on: restart this node, and report it with its error log",
        dir = dir.display()
    )]
    Panicked { dir: PathBuf, what: String },

    // Damaged data.
    #[error(
        "{file} is damaged at byte {offset}: {what}. Entries that this node acknowledged may be \
         lost here; the other members hold them. Empty the directory {dir} (keep a copy) and start the \
         node again: it rejoins as a new member by state transfer",
        file = file.display(), dir = parent(file).display()
    )]
    Damaged { file: PathBuf, offset: u64, what: String },
    #[error(
        "{file} is missing: the log goes on after it, or says that it must be there. Entries that \
         this node acknowledged may be lost; the other members hold them. Put the file back, or \
         empty the directory {dir} (keep a copy) and start the node again: it rejoins as a new \
         member by state transfer",
        file = file.display(), dir = parent(file).display()
    )]
    Missing { file: PathBuf },

    #[error(
        "{file} is no intact snapshot: {what}. An older one serves as well if the log reaches back \
         to it; else empty the directory (keep a copy) and start the node again: it rejoins by state transfer",
        file = file.display()
    )]
    SnapshotDamaged { file: PathBuf, what: String },

    #[error(
        "log index {index}: the entry is not what was proposed (its checksum does not fit): the \
         memory of this host is at fault. The entry was not written, and nothing of it was \
         acknowledged here; the other members are not affected. Have the memory of this host \
         tested before the node is started again"
    )]
    EntryAltered { index: Index },

    // The configuration.
    #[error(
        "the log directory {dir} is in use by process {pid}: two nodes can not share one. Give \
         this node a directory of its own, or stop the other",
        dir = dir.display()
    )]
    InUse { dir: PathBuf, pid: String },
    #[error(
        "{dir} is no log directory ({what}) and was left untouched. Name an empty directory, or \
         one that does not exist yet",
        dir = dir.display()
    )]
    Foreign { dir: PathBuf, what: String },
    #[error(
        "{file} was written by another version of Quorate (format {found}, this one reads \
         {supported}). Nothing was changed: start the node with the version that wrote it",
        file = file.display()
    )]
    Version { file: PathBuf, found: u32, supported: u32 },
    #[error(
        "{file} is encrypted or sealed with the key {key}, which is not among those that this node was given \
         ({known}). Nothing was changed, the data is not affected: put the key's line back into the file \
         that quorate.encrypt_key_file (of a logger: --encrypt-key-file) names, behind the first one. If the \
         key is lost, so is what it encrypts; the other members hold it: empty the directory {dir} \
         (keep a copy) and start the node again: it rejoins as a new member by state transfer",
        file = file.display(), dir = parent(file).display()
    )]
    NoKey { file: PathBuf, key: String, known: String },
    #[error(
        "{file} is in the clear, and quorate.encrypt=only (of a logger: --encrypt-only) takes no such file: somebody \
         without a key may have put it there. Nothing was changed, the data is not affected. If this node's log \
         was in the clear before, start the node with quorate.encrypt=yes (a logger without --encrypt-only) until its \
         error log counts no such files at a start. Or empty the directory {dir} (keep a copy) and start the node again: \
         it rejoins as a new member by state transfer",
        file = file.display(), dir = parent(file).display()
    )]
    Plain { file: PathBuf },
    #[error("{dir} holds no log, and creating one was not asked for", dir = dir.display())]
    NoLog { dir: PathBuf },

    // The caller.
    #[error("the log in {dir} is closed", dir = dir.display())]
    Closed { dir: PathBuf },
    #[error("bug: entry {entry:?} was appended to a log that ends at {last:?}")]
    OutOfOrder { entry: LogPosition, last: LogPosition },
    #[error("log index {index}: an entry of {bytes} bytes is longer than a record can be")]
    EntryTooLong { index: Index, bytes: u64 },
}

impl WalError {
    /// There is no room on the disk. [`WalError::Full`] may also be for want of a file descriptor.
    pub(crate) fn is_full_disk(&self) -> bool {
        matches!(self, Self::Full { source, .. } if !lacks_descriptors(source))
    }

    pub(crate) fn no_key(file: PathBuf, key: DiskKeyId, keys: &DiskKeys) -> Self {
        Self::NoKey { file, key: key.to_string(), known: keys.to_string() }
    }
}

/// Why entries can not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Below the base.
    #[error("log index {index} was purged (the log starts after {base})")]
    Purged { index: Index, base: Index },
    #[error(transparent)]
    Wal(#[from] Arc<WalError>),
}

/// Turns an I/O error into one that says what was done to which file.
pub(crate) trait IoContext<T> {
    fn doing(self, action: &'static str, path: &Path) -> Result<T, WalError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn doing(self, action: &'static str, path: &Path) -> Result<T, WalError> {
        self.map_err(|source| match passes(&source) {
            true => WalError::Full {
                action,
                dir: parent(path).to_path_buf(),
                path: path.to_path_buf(),
                source,
            },
            false => WalError::Io { action, path: path.to_path_buf(), source },
        })
    }
}

/// Nothing was done, and what was missing may be there later: room on the disk, or, in this process or system, file
/// descriptors.
fn passes(error: &io::Error) -> bool {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    is_full || lacks_descriptors(error)
}

fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn parent(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_there_later_is_no_failure_for_good() {
        let is_final = |errno: Errno| {
            let failed: io::Result<()> = Err(errno.into());
            !matches!(failed.doing("create", Path::new("/log/a")), Err(WalError::Full { .. }))
        };
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE] {
            assert!(!is_final(errno), "{errno}");
        }
        assert!(is_final(Errno::IO) && is_final(Errno::ACCESS));
    }
}
