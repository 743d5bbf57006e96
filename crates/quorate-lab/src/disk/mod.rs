//! A disk whose power can be cut: a FUSE file system held in memory.
//!
//! # What is durable
//!
//! * A file's content (with its size) as of its last `fsync`, `fdatasync` or `O_SYNC` write.
//!   Nothing is written out early.
//! * Names, owners and modes go through one ordered journal, as with ext4: any sync, of any file
//!   or directory, makes all earlier creations, renames and removals durable, in order. Data is
//!   not part of it: a file that was renamed into place without having been synced is there after
//!   the cut with the content of its last sync (none: empty).
//! * A sync that failed loses what it should have made durable: as on Linux, the pages count as
//!   clean afterwards, and a later sync that succeeds does not write them.

use anyhow::Result;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A mounted disk. The last clone to be dropped unmounts it; its content is gone then.
#[derive(Clone)]
pub struct Disk {
    shared: Arc<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes; a write past it gets ENOSPC.
    pub capacity: u64,
    /// What every sync takes.
    pub sync_time: Duration,
}

/// What is wrong with the disk at the moment. The default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Every operation waits until this is taken back.
    pub frozen: bool,
    /// Whatever needs space gets ENOSPC.
    pub full: bool,
    /// Syncs fail with EIO.
    pub sync_fails: bool,
    /// Syncs take this much longer.
    pub sync_delay: Duration,
    /// Reads that reach the disk fail with EIO.
    pub reads_fail: bool,
    /// Writes fail with EIO.
    pub writes_fail: bool,
}

/// What a power cut leaves of the writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    All,
    /// Of each file's last write, a random number of its first sectors.
    TornLast { seed: u64 },
    /// Any of their sectors, each with probability one half; names: all changes or none.
    Scattered { seed: u64 },
}

/// What a power cut took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Files with unsynced content.
    pub files: usize,
    /// Bytes of theirs.
    pub bytes: u64,
    /// True if names were lost.
    pub names: bool,
}

impl Disk {
    /// Makes an empty disk and mounts it in a folder of its own.
    pub fn new(options: Options) -> Result<Disk> {
        let _ = options;
        anyhow::bail!("the disk is not built yet")
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        let _ = &self.shared;
        Path::new("/")
    }

    pub fn faults(&self) -> Faults {
        Faults::default()
    }

    /// Sets all faults at once, for operations to come and those that wait.
    pub fn set_faults(&self, faults: Faults) {
        let _ = faults;
    }

    /// Cuts the power: at once every operation fails and changes nothing. Kill the processes that
    /// use the disk, then call [`Disk::power_on`].
    pub fn power_off(&self) {}

    /// Mounts the disk again, with what was durable when the power was cut and what `loss` leaves
    /// of the rest. No process may have files of it open. Faults are mended.
    pub fn power_on(&self, loss: Loss) -> Result<Lost> {
        let _ = loss;
        Ok(Lost::default())
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        0
    }

    /// Deletes everything on it, durably.
    pub fn wipe(&self) -> Result<()> {
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Options {
        Options { capacity: 8 << 30, sync_time: Duration::ZERO }
    }
}
