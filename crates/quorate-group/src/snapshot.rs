//! Snapshots of the state after a log index: taken by the sequencer, written to files by a thread
//! of its own, sent to members whose next entry is purged, received from a leader.
//!
//! Invariant: the log is purged only up to the newest snapshot but one, so log and files together
//! reach from a whole state to the end of the log, even should the newest file be damaged.

use crate::machine::LogLevel;
use crate::member::Member;
use crate::view::View;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use quorate_consensus::{Config, Event, Index, LogPosition, MemberId, SnapshotMeta, Term};
use quorate_wal::{SnapshotFiles, WalError};
use quorate_wire::{BodyReader, BodyWriter, WireError};
use std::path::Path;

/// Longest snapshot accepted from a leader.
pub(crate) const SNAPSHOT_BYTES_MAX: u64 = 16 << 30;

const VERSION: u8 = 1;
/// Of the meta: since 2 it says where the snapshot came from.
const META_VERSION: u8 = 2;

/// What the file of a snapshot says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub meta: SnapshotMeta,
    /// From a leader; else this member took it itself, of entries that it had on disk. Files of
    /// version 1 do not say: they count as the latter, which forbids more.
    pub received: bool,
}

/// What a snapshot holds: the group's own part, and the state machine's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub view: View,
    pub machine: Bytes,
}

pub(crate) struct Snapshots {
    files: SnapshotFiles,
    jobs: Mutex<Jobs>,
    work: Condvar,
}

#[derive(Default)]
struct Jobs {
    /// With the first index that the state machine still needs.
    save: Option<(SnapshotMeta, Bytes, Index)>,
    install: Option<Received>,
    /// The disk is full.
    make_room: bool,
    stop: bool,
}

/// A snapshot that came in whole from the leader `from` of `term`.
pub(crate) struct Received {
    pub from: MemberId,
    pub term: Term,
    pub meta: SnapshotMeta,
    pub content: Bytes,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error(transparent)]
    File(#[from] WalError),
    #[error("the snapshot of index {index} cannot be read: {reason}")]
    Meta { index: Index, reason: String },
}

impl Jobs {
    fn is_empty(&self) -> bool {
        self.save.is_none() && self.install.is_none() && !self.make_room
    }
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

    pub fn install(&self, received: Received) {
        self.jobs.lock().install = Some(received);
        self.work.notify_one();
    }

    /// Lets go of the log what nobody needs: on a full disk, retention counts for nothing.
    pub fn make_room(&self) {
        self.jobs.lock().make_room = true;
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
    pub fn run(&self, member: &Member) {
        // As the state machine last said.
        let mut needed = 0;
        loop {
            let mut jobs = self.jobs.lock();
            while jobs.is_empty() && !jobs.stop {
                self.work.wait(&mut jobs);
            }
            if jobs.stop {
                return;
            }
            let Jobs { save, install, make_room, .. } = std::mem::take(&mut *jobs);
            drop(jobs);
            let release = save.is_some() || make_room;
            if let Some((meta, content, first_needed)) = save {
                needed = first_needed;
                self.write(member, meta, &content);
            }
            // Also if there was no room for the new one: an older one serves as well.
            let released = if release { self.release_log(member, needed) } else { Ok(()) };
            if let Err(error) = released {
                member.log(LogLevel::Warn, format!("the log was not purged: {error}"));
            }
            if let Some(received) = install {
                self.take_over(member, received);
            }
        }
    }

    fn write(&self, member: &Member, meta: SnapshotMeta, content: &Bytes) {
        let index = meta.last.index;
        let stored = Stored { meta, received: false };
        if let Err(error) = self.files.save(index, &stored.encode(), content) {
            return member.log(LogLevel::Warn, format!("no snapshot of index {index}: {error}"));
        }
        member.log(
            LogLevel::Debug,
            format!("snapshot of index {index} saved, {} bytes", content.len()),
        );
        // What it was made from was synced here: a log that ends before it is not to be opened.
        if let Err(error) = member.wal.save_synced() {
            member.log(LogLevel::Warn, format!("the end of the log was not noted: {error}"));
        }
    }

    /// Lets the log go up to the newest snapshot but one, as far as retention and the state
    /// machine allow, and then the snapshots that the log does not continue any more.
    fn release_log(&self, member: &Member, needed: Index) -> Result<(), SnapshotError> {
        let mut older = self.files.list()?.into_iter().skip(1);
        let Some(index) = older.find(|index| *index < needed) else { return Ok(()) };
        let (Stored { meta, .. }, _) = self.load(index)?;
        if let Some(base) = member.wal.release(index) {
            member.with_core(|driver| {
                driver.ignore_refusal(member, Event::Compacted(base, meta.config));
            });
            member.log(LogLevel::Debug, format!("the log now starts after {}", base.index));
        }
        self.files.prune(member.wal.base().index)?;
        Ok(())
    }

    /// Saves what the leader sent, then lets the core replace the log by it.
    fn take_over(&self, member: &Member, received: Received) {
        let Received { from, term, meta, content } = received;
        let index = meta.last.index;
        let stored = Stored { meta, received: true };
        if let Err(error) = self.files.save(index, &stored.encode(), &content) {
            let line = format!("the leader's snapshot of index {index} was not taken: {error}");
            return member.log(LogLevel::Error, line);
        }
        member.log(
            LogLevel::Info,
            format!("received a snapshot of index {index}, {} bytes", content.len()),
        );
        let meta = stored.meta;
        member.with_core(|driver| {
            driver.ignore_refusal(member, Event::InstallSnapshot { from, term, meta });
        });
    }
}

impl Content {
    pub fn encode(&self) -> Bytes {
        let mut out = BodyWriter::default();
        out.u8(VERSION);
        out.data(&self.view.encode());
        out.rest(&self.machine);
        out.finish().to_bytes()
    }

    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut body = BodyReader::new(bytes, "snapshot");
        check_version(&mut body)?;
        Ok(Self { view: View::decode(body.data()?)?, machine: body.rest() })
    }
}

impl Stored {
    pub fn encode(&self) -> Bytes {
        let mut out = BodyWriter::default();
        out.u8(META_VERSION);
        out.u64(self.meta.last.term);
        out.u64(self.meta.last.index);
        out.u8(self.received.into());
        out.rest(&self.meta.config.encode());
        out.finish().to_bytes()
    }

    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut body = BodyReader::new(bytes, "snapshot meta");
        let version = body.u8()?;
        if ![VERSION, META_VERSION].contains(&version) {
            return Err(unknown_version(version));
        }
        let last = LogPosition { term: body.u64()?, index: body.u64()? };
        let received = version == META_VERSION && body.u8()? != 0;
        let config = Config::decode(&body.rest());
        let config = config.map_err(|error| WireError::BadConfig(error.to_string()))?;
        Ok(Self { meta: SnapshotMeta { last, config }, received })
    }
}

fn check_version(body: &mut BodyReader) -> Result<(), WireError> {
    match body.u8()? {
        VERSION => Ok(()),
        other => Err(unknown_version(other)),
    }
}

fn unknown_version(version: u8) -> WireError {
    WireError::BadValue { what: "snapshot version", value: version.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_where_its_snapshot_came_from_and_an_old_one_counts_as_own() {
        let meta =
            SnapshotMeta { last: LogPosition { term: 3, index: 70 }, config: Config::default() };
        for received in [false, true] {
            let stored = Stored { meta: meta.clone(), received };
            assert_eq!(Stored::decode(stored.encode()), Ok(stored));
        }
        let mut old = BodyWriter::default();
        old.u8(1);
        old.u64(3);
        old.u64(70);
        old.rest(&meta.config.encode());
        let read = Stored::decode(old.finish().to_bytes());
        assert_eq!(read, Ok(Stored { meta, received: false }));
    }
}
