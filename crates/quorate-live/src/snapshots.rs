//! Snapshots of the state after a log index: taken by the feeder, written to files by a thread of its
//! own, sent to members whose next entry is purged, received from a leader. How much of the log they
//! make needless is the machine's to say.

use crate::live::Live;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use quorate_consensus::{Index, SnapshotMeta};
use quorate_group::{Input, LogLevel, Received, Stored};
use quorate_wal::{SnapshotFiles, WalError};
use std::path::Path;

pub(crate) struct Snapshots {
    files: SnapshotFiles,
    jobs: Mutex<Jobs>,
    work: Condvar,
}

#[derive(Default)]
struct Jobs {
    /// With the first index that the state machine still needs.
    save: Option<(SnapshotMeta, Bytes, Index)>,
    store: Option<(Received, Bytes)>,
    release: Option<Index>,
    stop: bool,
}

enum Job {
    Save(SnapshotMeta, Bytes, Index),
    Store(Received, Bytes),
    Release(Index),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error(transparent)]
    File(#[from] WalError),
    #[error("the snapshot of index {index} cannot be read: {reason}")]
    Meta { index: Index, reason: String },
}

impl Snapshots {
    pub fn new(dir: &Path) -> Self {
        Self { files: SnapshotFiles::new(dir), jobs: Mutex::default(), work: Condvar::new() }
    }

    /// Hands a new snapshot to the thread. One that still waits is superseded.
    pub fn save(&self, meta: SnapshotMeta, content: Bytes, needed: Index) {
        self.jobs.lock().save = Some((meta, content, needed));
        self.work.notify_one();
    }

    /// Hands one that came from a leader to the thread.
    pub fn store(&self, received: Received, content: Bytes) {
        self.jobs.lock().store = Some((received, content));
        self.work.notify_one();
    }

    /// Has the thread release the log up to the snapshot of this index.
    pub fn release(&self, index: Index) {
        self.jobs.lock().release = Some(index);
        self.work.notify_one();
    }

    pub fn stop(&self) {
        self.jobs.lock().stop = true;
        self.work.notify_all();
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

    /// The thread.
    pub fn run(&self, live: &Live) {
        while let Some(job) = self.next() {
            match job {
                Job::Save(meta, content, needed) => self.write(live, meta, &content, needed),
                Job::Store(received, content) => self.take_over(live, received, &content),
                Job::Release(index) => {
                    if let Err(error) = self.release_log(live, index) {
                        live.log(LogLevel::Warn, format!("the log was not purged: {error}"));
                    }
                }
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        loop {
            if jobs.stop {
                return None;
            }
            if let Some((meta, content, needed)) = jobs.save.take() {
                return Some(Job::Save(meta, content, needed));
            }
            if let Some((received, content)) = jobs.store.take() {
                return Some(Job::Store(received, content));
            }
            if let Some(index) = jobs.release.take() {
                return Some(Job::Release(index));
            }
            self.work.wait(&mut jobs);
        }
    }

    fn write(&self, live: &Live, meta: SnapshotMeta, content: &Bytes, needed: Index) {
        let index = meta.last.index;
        let stored = Stored { meta, received: false };
        match self.files.save(index, &stored.encode(), content) {
            Ok(()) => {
                let bytes = content.len();
                let line = format!("snapshot of index {index} saved, {bytes} bytes");
                live.log(LogLevel::Debug, line);
                // What it was made from was synced here: a log that ends before it is not to be opened.
                if let Err(error) = live.wal.save_synced() {
                    let line = format!("the end of the log was not noted: {error}");
                    live.log(LogLevel::Warn, line);
                }
            }
            Err(error) => {
                live.log(LogLevel::Warn, format!("no snapshot of index {index}: {error}"));
            }
        }
        // Also if there was no room for the new one: an older one serves as well.
        match self.files.list() {
            Ok(files) => live.step(Input::SnapshotTaken { needed, files }),
            Err(error) => live.log(LogLevel::Warn, format!("the log was not purged: {error}")),
        }
    }

    /// Lets the log go up to the snapshot of `index`, which must be readable, and then the snapshots
    /// that the log does not continue any more.
    fn release_log(&self, live: &Live, index: Index) -> Result<(), SnapshotError> {
        let (stored, _) = self.load(index)?;
        if let Some(base) = live.wal.release(index) {
            live.step(Input::Released { base, config: stored.meta.config });
        }
        self.files.prune(live.wal.base().index)?;
        Ok(())
    }

    /// Saves what the leader sent, then lets the machine replace the log by it.
    fn take_over(&self, live: &Live, received: Received, content: &Bytes) {
        let index = received.meta.last.index;
        let stored = Stored { meta: received.meta.clone(), received: true };
        if let Err(error) = self.files.save(index, &stored.encode(), content) {
            let line = format!("the leader's snapshot of index {index} was not taken: {error}");
            return live.log(LogLevel::Error, line);
        }
        let line = format!("received a snapshot of index {index}, {} bytes", content.len());
        live.log(LogLevel::Info, line);
        live.step(Input::SnapshotStored(received));
    }
}
