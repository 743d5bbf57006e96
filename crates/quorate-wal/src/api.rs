//! API skeleton (to be split into one file a story).

use quorate_consensus::{Entry, HardState, Index, LogPosition, MemberId, Term};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct WalOptions {
    pub dir: PathBuf,
    /// Size of a preallocated segment (default 64 MiB). A longer record gets a segment of its own size.
    pub segment_bytes: u64,
    /// Recent entries kept in memory for readers; entries not yet synced are always kept.
    pub cache_bytes: usize,
    /// Purge keeps at least this many bytes of log ...
    pub retain_bytes: u64,
    /// ... and, if set, everything younger than this.
    pub retain_age: Option<Duration>,
}

/// Who this log belongs to; drawn when the directory is created, in `identity` of the meta file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub member: MemberId,
    /// 0 until the member belongs to a group.
    pub group: u128,
    /// Counts the starts of this member; stepped (durably) at each open.
    pub incarnation: u32,
}

/// What recovery found.
pub struct Recovered {
    pub identity: Identity,
    pub hard_state: HardState,
    /// Position just before the first entry kept (what `reset` or purge left).
    pub base: LogPosition,
    pub last: LogPosition,
    pub term_runs: Vec<(Index, Term)>,
    /// All entries that are not `EntryKind::Data`, ascending.
    pub special: Vec<Entry>,
    /// A torn tail that was cut off, for the log line of the node.
    pub torn_bytes: u64,
}

/// Called on the writer thread after each sync (`Ok`: on disk up to here) and once on failure
/// (final: nothing is acknowledged afterwards).
pub type OnSync = Box<dyn Fn(Result<LogPosition, Arc<WalError>>) + Send>;

#[derive(Debug, thiserror::Error)]
pub enum WalError {
    // grouped: disk (I/O, full), corruption (a hole in the middle), config (foreign directory, in use)
    #[error("skeleton")]
    Skeleton,
}

/// Handle of an open log; clones share it. One writer thread; readers on any thread.
#[derive(Clone)]
pub struct Wal {}

impl Wal {
    /// Opens (creating it if `create` and empty) and locks the directory, repairs a torn tail,
    /// refuses a hole in the middle, and starts the writer thread.
    pub fn open(_options: WalOptions, _create: bool, _on_sync: OnSync) -> Result<(Wal, Recovered), WalError> {
        todo!()
    }

    /// Queues consecutive entries; returns at once. They are readable immediately. Before the
    /// caller queues an entry whose index is at or below the last one, it calls `truncate`.
    pub fn append(&self, _entries: &[Entry]) {
        todo!()
    }

    /// Queues the removal of everything from `from` on.
    pub fn truncate(&self, _from: Index) {
        todo!()
    }

    /// Queues: forget everything, the log continues after `base`. `OnSync` reports `base` when done.
    pub fn reset(&self, _base: LogPosition) {
        todo!()
    }

    /// Durable when it returns. Called rarely (elections), so it may block for a sync.
    pub fn save_hard_state(&self, _state: HardState) -> Result<(), WalError> {
        todo!()
    }

    pub fn save_group(&self, _group: u128) -> Result<(), WalError> {
        todo!()
    }

    /// Entries from `from` on: at least one if there is one, at most about `bytes_max` of data.
    /// From the cache where possible, else from disk with read-ahead.
    pub fn read(&self, _from: Index, _bytes_max: usize, _out: &mut Vec<Entry>) -> Result<(), ReadError> {
        todo!()
    }

    /// The term of the entry at `index` or of the base.
    pub fn term_at(&self, _index: Index) -> Option<Term> {
        todo!()
    }

    /// Entries up to here are covered by a snapshot: segments wholly below may be recycled, as
    /// far as retention allows. Returns the new base if anything was purged.
    pub fn release(&self, _upto: Index) -> Option<LogPosition> {
        todo!()
    }

    pub fn base(&self) -> LogPosition {
        todo!()
    }
    pub fn last(&self) -> LogPosition {
        todo!()
    }
    pub fn persisted(&self) -> LogPosition {
        todo!()
    }
    pub fn stats(&self) -> WalStats {
        todo!()
    }
    /// Syncs what is queued, stops the writer thread and joins it. Idempotent.
    pub fn close(&self) {
        todo!()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Below the base.
    #[error("log index {index} was purged (the log starts after {base})")]
    Purged { index: Index, base: Index },
    #[error(transparent)]
    Wal(#[from] Arc<WalError>),
}

#[derive(Clone, Debug, Default)]
pub struct WalStats {
    /// Bytes on disk in segments that hold entries.
    pub bytes: u64,
    pub segments: u64,
    pub syncs: u64,
    pub entries: u64,
    /// Sync times: count, sum, max in microseconds since start.
    pub sync_us_sum: u64,
    pub sync_us_max: u64,
}
