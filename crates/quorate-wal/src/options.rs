//! What a log is opened with, and what it says about itself.

use crate::seal::{DiskKeyId, DiskKeys};
use quorate_consensus::{Charter, Entry, HardState, Index, LogPosition, MemberId, Term};
use quorate_latency::Latency;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a log directory is kept.
#[derive(Clone, Debug)]
pub struct WalOptions {
    pub dir: PathBuf,
    /// Size of a preallocated segment in bytes (default 64 MiB), rounded up to whole 4 KiB pages.
    /// A record that does not fit gets a segment of its own size.
    pub segment_bytes: u64,
    /// Bytes of recent entries kept in memory for readers (default 12 MiB); entries not yet
    /// synced are kept whatever they add up to.
    pub cache_bytes: usize,
    /// [`crate::Wal::release`] keeps at least this many bytes of log (default 1 GiB) ...
    pub retain_bytes: u64,
    /// ... and, if set, everything younger than this (default: unset) ...
    pub retain_age: Option<Duration>,
    /// ... but no more than this, if set (default: unset): past it, only what is asked for is kept.
    pub retain_max: Option<u64>,
    /// Segments of room kept for a full disk (default 2).
    pub reserve_segments: usize,
    /// What files are encrypted with (default: nothing, they are in the clear).
    pub keys: DiskKeys,
}

impl WalOptions {
    /// The defaults, for the log in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        WalOptions {
            dir: dir.into(),
            segment_bytes: 64 << 20,
            cache_bytes: 12 << 20,
            retain_bytes: 1 << 30,
            retain_age: None,
            retain_max: None,
            reserve_segments: 2,
            keys: DiskKeys::default(),
        }
    }
}

/// Who this log belongs to; drawn when the directory is created, kept in its `meta` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub member: MemberId,
    /// 0 until the member belongs to a group.
    pub group: u128,
    /// That group's.
    pub charter: Charter,
    /// Counts the starts of this member; stepped (durably) at each open.
    pub incarnation: u32,
}

/// What recovery found.
#[derive(Clone, Debug)]
pub struct Recovered {
    pub identity: Identity,
    pub hard_state: HardState,
    /// Position just before the first entry kept (what `reset` or `release` left).
    pub base: LogPosition,
    /// End of the log; all of it is on disk.
    pub last: LogPosition,
    /// `(first index, term)` of each run of entries with the same term, ascending, covering
    /// everything after `base`.
    pub term_runs: Vec<(Index, Term)>,
    /// All entries that are neither `EntryKind::Data` nor `EntryKind::Note`, ascending.
    pub special: Vec<Entry>,
    /// Bytes of a last write that were cut off because the records before them are not intact. An
    /// interrupted write, as a rule, of which nothing was acknowledged; but damage to the very last
    /// batch that was synced looks the same, and then the node acknowledged what is lost.
    pub torn_bytes: u64,
    /// The log was closed in order before: `last` is certainly all that was ever on disk. Otherwise
    /// the last batch before the end of the process is in doubt, as with `torn_bytes`.
    pub closed: bool,
    /// How many files (segments, prepared ones too, and snapshots) are encrypted with which key, and how
    /// many are in the clear. As long as there is one of a key, that is needed.
    pub encryption: BTreeMap<Option<DiskKeyId>, u64>,
}

/// How the disk stands with room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Enough,
    /// None for a new segment: the log goes on with those in reserve. [`crate::Wal::release`] helps.
    Reserve {
        segments: usize,
    },
    /// None at all: nothing is written or acknowledged until there is.
    Blocked,
}

/// Counters since the log was opened, and its size now.
#[derive(Clone, Debug, Default)]
pub struct WalStats {
    /// Bytes on disk in segments that hold entries.
    pub bytes: u64,
    pub segments: u64,
    /// Synced batches. The times are of the whole batch: write and sync.
    pub syncs: u64,
    pub sync_us_sum: u64,
    /// Of their squares.
    pub sync_us_squares: f64,
    pub sync_us_min: u64,
    pub sync_us_max: u64,
    /// Of the same batches.
    pub latency: Arc<Latency>,
    /// Entries on disk since the log was opened.
    pub entries: u64,
    /// What is wrong but not (yet) in the way, e.g. that the next segment could not be prepared
    /// because the disk is full.
    pub warning: Option<String>,
}

impl WalStats {
    pub(crate) fn batch_took(&mut self, took: Duration) {
        let us = took.as_micros() as u64;
        self.sync_us_min = if self.syncs == 0 { us } else { self.sync_us_min.min(us) };
        self.syncs += 1;
        self.sync_us_sum += us;
        self.sync_us_squares += (us as f64).powi(2);
        self.sync_us_max = self.sync_us_max.max(us);
        self.latency.took(took);
    }

    /// Mean of a batch's time, in microseconds; 0 without one.
    pub fn sync_us_avg(&self) -> f64 {
        self.sync_us_sum as f64 / self.syncs.max(1) as f64
    }

    /// Standard deviation of a batch's time, in microseconds; 0 without one.
    pub fn sync_us_deviation(&self) -> f64 {
        let mean_of_squares = self.sync_us_squares / self.syncs.max(1) as f64;
        // Of equal times what is left may be a little below 0.
        (mean_of_squares - self.sync_us_avg().powi(2)).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_batches_are_told_from_the_shortest_to_the_longest() {
        let mut stats = WalStats::default();
        assert_eq!((stats.sync_us_avg(), stats.sync_us_deviation()), (0.0, 0.0));
        for ms in [2, 4, 4, 4, 5, 5, 7, 9] {
            stats.batch_took(Duration::from_millis(ms));
        }
        assert_eq!((stats.sync_us_min, stats.sync_us_max, stats.syncs), (2000, 9000, 8));
        assert_eq!((stats.sync_us_avg(), stats.sync_us_deviation()), (5000.0, 2000.0));
        assert_eq!(stats.latency.report().count(), 8);
    }
}
