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
//!
//! # Beside ext4
//!
//! `tests/real_disk` holds ext4, shut down like at a power cut, to the same rules. There this disk
//! keeps less: ext4 writes out by itself what has waited for half a minute. In two things it keeps
//! more: an `fdatasync` that changes no size and allocates nothing (of a log that is written over,
//! say) leaves names alone on ext4, for it commits no journal; and on a full ext4 a punch or
//! ZERO_RANGE that fails may take back what was written before and not synced.
//!
//! Content and names are in this process's memory: a disk needs no space of the machine's, costs
//! no time beyond what [`Options::sync_time`] says, and is gone with the process.

mod attributes;
mod content;
mod filesystem;
mod gate;
mod names;
mod store;

#[cfg(test)]
mod tests;

use crate::leftovers::{self, Folder};
use anyhow::{bail, Context, Result};
use filesystem::Mounted;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use gate::Gate;
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use store::Store;

/// Requests are answered by as many threads: a sync of one file must not wait for another's read.
const THREADS: usize = 3;

/// A mounted disk. The last clone to be dropped unmounts it; its content is gone then.
#[derive(Clone)]
pub struct Disk {
    inner: Arc<Inner>,
}

struct Inner {
    gate: Arc<Gate>,
    capacity: u64,
    session: Mutex<Option<BackgroundSession>>,
    later: Option<JoinHandle<()>>,
    folder: Folder,
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
        let folder = Folder::new()?;
        let gate = Arc::new(Gate::new(Store::new(options.capacity), options.sync_time));
        let for_later = gate.clone();
        let later =
            thread::Builder::new().name("lab-sync".into()).spawn(move || for_later.run())?;
        let inner = Inner {
            gate,
            capacity: options.capacity,
            session: Mutex::new(None),
            later: Some(later),
            folder,
        };
        inner.mount()?;
        Ok(Disk { inner: Arc::new(inner) })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.inner.folder.path()
    }

    pub fn faults(&self) -> Faults {
        self.inner.gate.state().faults
    }

    /// Sets all faults at once, for operations to come and those that wait.
    pub fn set_faults(&self, faults: Faults) {
        self.inner.gate.set_faults(faults);
    }

    /// Waits until the frozen disk holds an operation; `false` if `limit` passed first.
    pub fn wait_held(&self, limit: Duration) -> bool {
        self.inner.gate.wait_held(limit)
    }

    /// Cuts the power: at once every operation fails and changes nothing. Kill the processes that
    /// use the disk, then call [`Disk::power_on`].
    pub fn power_off(&self) {
        self.inner.gate.power_off();
    }

    /// Mounts the disk again, with what was durable when the power was cut and what `loss` leaves
    /// of the rest. Files that are still open are of no use any more. Faults are mended.
    pub fn power_on(&self, loss: Loss) -> Result<Lost> {
        self.inner.remount(|store| store.cut(loss))
    }

    /// Makes everything durable, as sync(1) does.
    pub fn sync_all(&self) {
        self.inner.gate.state().store.sync_all();
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.inner.gate.state().store.used_pages() * content::PAGE as u64
    }

    /// Puts an empty disk in the place of this one. Faults are mended.
    pub fn wipe(&self) -> Result<()> {
        self.inner.remount(|store| *store = Store::new(self.inner.capacity))
    }
}

impl Inner {
    fn mount(&self) -> Result<()> {
        let mounted = Mounted::new(self.gate.clone(), self.gate.power_on());
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("quorate-lab".into()), MountOption::DefaultPermissions];
        config.acl = SessionACL::All;
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let path = self.folder.path();
        let session = Session::new(mounted, path, &config)
            .and_then(Session::spawn)
            .with_context(|| format!("mounting {} (is /dev/fuse there?)", path.display()))?;
        *self.session.lock() = Some(session);
        Ok(())
    }

    fn remount<T>(&self, change: impl FnOnce(&mut Store) -> T) -> Result<T> {
        self.gate.power_off();
        self.unmount()?;
        self.gate.set_faults(Faults::default());
        let changed = change(&mut self.gate.state().store);
        self.mount()?;
        Ok(changed)
    }

    fn unmount(&self) -> Result<()> {
        let Some(session) = self.session.lock().take() else { return Ok(()) };
        leftovers::force_unmount(self.folder.path())?;
        // Its own way of ending would unmount once more.
        let BackgroundSession { guard, .. } = session;
        match guard.join() {
            // How a thread that read while the mount was aborted learns of it.
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionAborted => Ok(()),
            Ok(ended) => ended.context("ending a FUSE session"),
            Err(_) => bail!("a FUSE session panicked"),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gate.power_off();
        self.gate.end();
        if let Err(error) = self.unmount() {
            eprintln!("{error:#}");
        }
        if self.later.take().is_some_and(|later| later.join().is_err()) {
            eprintln!("the thread of a disk's syncs panicked");
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options { capacity: 8 << 30, sync_time: Duration::ZERO }
    }
}
