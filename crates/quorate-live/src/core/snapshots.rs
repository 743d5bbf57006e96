//! Snapshots of the state after a log index: their files, and what the thread that writes them has to
//! do. How much of the log they make needless is the machine's to say.

use crate::host::Frozen;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use quorate_consensus::Index;
use quorate_group::{Outline, Received, Release, Stored};
use quorate_wal::{DiskKeys, SnapshotFiles, WalError};
use std::path::{Path, PathBuf};

pub(crate) struct Snapshots {
    dir: PathBuf,
    files: SnapshotFiles,
    jobs: Mutex<Jobs>,
    work: Condvar,
}

#[derive(Default)]
struct Jobs {
    /// With the first index that the state machine still needs.
    save: Option<(Outline, Frozen, Index)>,
    store: Option<(Received, Bytes)>,
    release: Option<Release>,
    /// The first index that the state machine needs now.
    look: Option<Index>,
    stop: bool,
}

pub(crate) enum Job {
    Save(Outline, Frozen, Index),
    Store(Received, Bytes),
    Release(Release),
    /// No snapshot is due, or can be saved, and yet more of the log may have become needless.
    Look(Index),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error(transparent)]
    File(#[from] WalError),
    #[error("the snapshot of index {index} cannot be read: {reason}")]
    Meta { index: Index, reason: String },
}

impl Snapshots {
    /// Those beside the log in `dir`, with the keys of that.
    pub fn new(dir: &Path, keys: DiskKeys) -> Self {
        Self {
            dir: dir.to_owned(),
            files: SnapshotFiles::new(dir, keys),
            jobs: Mutex::default(),
            work: Condvar::new(),
        }
    }

    /// More of the log is on disk.
    pub fn synced(&self) {
        if self.jobs.lock().save.is_some() {
            self.work.notify_one();
        }
    }

    /// Hands a new snapshot to the thread, for a log that is `on_disk` up to there. One waits at most, besides the one
    /// that is being written: where the disk lags it is the older one, or none would ever be due.
    pub fn save(&self, outline: Outline, machine: Frozen, needed: Index, on_disk: Index) {
        let mut jobs = self.jobs.lock();
        if jobs.save.as_ref().is_none_or(|(waiting, ..)| waiting.index() <= on_disk) {
            jobs.save = Some((outline, machine, needed));
        }
        self.work.notify_one();
    }

    /// Hands one that came from a leader to the thread. Gives back one that still waited: it is
    /// superseded.
    pub fn store(&self, received: Received, content: Bytes) -> Option<Received> {
        let superseded = self.jobs.lock().store.replace((received, content));
        self.work.notify_one();
        superseded.map(|(received, _)| received)
    }

    /// Has the thread release the log.
    pub fn release(&self, release: Release) {
        self.jobs.lock().release = Some(release);
        self.work.notify_one();
    }

    /// Has the thread look what of the log is needless, with what the state machine `needs` now.
    pub fn look(&self, needs: Index) {
        self.jobs.lock().look = Some(needs);
        self.work.notify_one();
    }

    pub fn stop(&self) {
        self.jobs.lock().stop = true;
        self.work.notify_all();
    }

    /// Bytes that are free on its disk, if that can be said.
    pub fn room(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.dir).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Durable when it returns.
    pub fn write(&self, stored: &Stored, content: &Bytes) -> Result<(), WalError> {
        self.files.save(stored.meta.last.index, &stored.encode(), content)
    }

    /// Deletes this one, durably.
    pub fn remove(&self, index: Index) -> Result<(), WalError> {
        self.files.remove(index)
    }

    /// Deletes those that a log which starts after `base` does not continue.
    pub fn prune(&self, base: Index) -> Result<(), WalError> {
        self.files.prune(base).map(|_| ())
    }

    /// Indexes of the files, newest first.
    pub fn list(&self) -> Result<Vec<Index>, WalError> {
        self.files.list()
    }

    pub fn load(&self, index: Index) -> Result<(Stored, Bytes), SnapshotError> {
        let file = self.files.load(index)?;
        let stored = Stored::decode(file.meta)
            .map_err(|error| SnapshotError::Meta { index, reason: error.to_string() })?;
        Ok((stored, file.payload))
    }

    /// The newest that can be read; `skipped` is told why a newer one cannot.
    pub fn newest(&self, skipped: &dyn Fn(String)) -> Result<Option<(Stored, Bytes)>, WalError> {
        for index in self.files.list()? {
            match self.load(index) {
                Ok(found) => return Ok(Some(found)),
                Err(error) => skipped(error.to_string()),
            }
        }
        Ok(None)
    }

    /// Waits for the next job; `None` when there will be no more. A snapshot is saved when the log is on disk as far
    /// as it goes (`on_disk`): a start refuses a log that ends before a snapshot of its own.
    pub fn next(&self, on_disk: impl Fn() -> Index) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        loop {
            if jobs.stop {
                return None;
            }
            let due = jobs.save.take_if(|(outline, ..)| outline.index() <= on_disk());
            if let Some((outline, machine, needed)) = due {
                return Some(Job::Save(outline, machine, needed));
            }
            if let Some((received, content)) = jobs.store.take() {
                return Some(Job::Store(received, content));
            }
            if let Some(release) = jobs.release.take() {
                return Some(Job::Release(release));
            }
            if let Some(needs) = jobs.look.take() {
                return Some(Job::Look(needs));
            }
            self.work.wait(&mut jobs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::{Config, LogPosition, SnapshotMeta};

    #[test]
    fn the_oldest_snapshot_waits_for_the_disk_and_the_newest_for_the_thread() {
        let snapshots = Snapshots::new(Path::new("/nonexistent"), DiskKeys::default());
        let save = |index, on_disk| {
            let last = LogPosition { term: 1, index };
            let meta = SnapshotMeta { last, config: Config::default() };
            let outline = Outline { meta, view: Default::default(), notes: Default::default() };
            snapshots.save(outline, Box::new(Bytes::new), index, on_disk);
        };
        let due = |on_disk| match snapshots.next(|| on_disk) {
            Some(Job::Save(outline, ..)) => outline.index(),
            _ => panic!("no snapshot is due"),
        };
        save(10, 5);
        save(20, 7);
        assert_eq!(due(15), 10, "with the second in its place, none would be due");
        save(30, 40);
        save(40, 40);
        assert_eq!(due(40), 40);
    }

    /// A full disk can keep every snapshot from being saved.
    #[test]
    fn the_thread_looks_for_what_is_needless_though_no_snapshot_can_be_saved() {
        let snapshots = Snapshots::new(Path::new("/nonexistent"), DiskKeys::default());
        let last = LogPosition { term: 1, index: 10 };
        let meta = SnapshotMeta { last, config: Config::default() };
        let outline = Outline { meta, view: Default::default(), notes: Default::default() };
        snapshots.save(outline, Box::new(Bytes::new), 3, 5);
        snapshots.look(4);
        snapshots.look(7);
        assert!(matches!(snapshots.next(|| 5), Some(Job::Look(7))));
        assert!(matches!(snapshots.next(|| 10), Some(Job::Save(_, _, 3))));
    }
}
