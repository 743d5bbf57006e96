//! The log on a simulated disk, without a thread of its own: whoever runs the simulation takes the
//! steps of the writer and of the recycler, one by one. All of it is the code of the product; the
//! disk, and when a step is taken, are not.
//!
//! ```
//! # use quorate_wal::sim::{self, Crash, Next, SimDisk};
//! # use quorate_wal::WalOptions;
//! # use quorate_consensus::{Entry, EntryKind};
//! let disk = SimDisk::new(1);
//! let options = WalOptions { segment_bytes: 16 << 10, ..WalOptions::new("/sim") };
//! let (wal, mut steps, _) = sim::open(&disk, options.clone(), true)?;
//! wal.append(&[Entry::new(1, 1, EntryKind::Noop, Default::default())]);
//! assert_eq!(steps.next(), Next::Write);
//! steps.step()?;
//! assert_eq!(steps.next(), Next::Sync);
//! assert_eq!(wal.persisted().index, 0);
//! assert_eq!(steps.step()?.map(|synced| synced.index), Some(1));
//!
//! let disk = disk.crash(Crash::Power);
//! let (_, _, recovered) = sim::open(&disk, options, false)?;
//! assert_eq!(recovered.last.index, 1);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub use crate::disk::sim::{Crash, Faults, Image, SimDisk};
pub use crate::writer::Next;

use crate::error::WalError;
use crate::options::{Recovered, WalOptions};
use crate::recycler;
use crate::seal::DiskKeys;
use crate::shared::Shared;
use crate::snapshot_file::SnapshotFiles;
use crate::wal::Wal;
use crate::writer::Writer;
use quorate_consensus::LogPosition;
use std::sync::Arc;

/// The writer of an open log, and what there is to do beside it.
pub struct Steps {
    writer: Writer,
}

/// [`Wal::open`] on a simulated disk, without its threads.
pub fn open(
    disk: &SimDisk,
    options: WalOptions,
    create: bool,
) -> Result<(Wal, Steps, Recovered), WalError> {
    let (shared, writer, recovered) = Shared::open(Arc::new(disk.clone()), options, create)?;
    Ok((Wal::of(shared, None), Steps { writer }, recovered))
}

/// The snapshots beside that log.
pub fn snapshot_files(disk: &SimDisk, keys: DiskKeys) -> SnapshotFiles {
    SnapshotFiles::on(Arc::new(disk.clone()), keys)
}

impl Steps {
    /// What the writer would do next. Changes nothing.
    pub fn next(&self) -> Next {
        self.writer.next()
    }

    /// Does it. `Some`: the product would call `OnSync` with this now. An error is final, and the
    /// product would call `OnSync` with it once; a disk that has died looks like that, too.
    pub fn step(&mut self) -> Result<Option<LogPosition>, Arc<WalError>> {
        self.writer.step()
    }

    /// Whether segments are to be prepared or recycled, or a mark to be synced. The product does that in the background; what
    /// failed for want of room it tries again after five seconds, or when a segment was released.
    pub fn has_recycling(&self) -> bool {
        self.writer.shared().supply.has_job()
    }

    /// Does one piece of that. An error is final for the log.
    pub fn recycle(&mut self) -> Result<(), Arc<WalError>> {
        let shared = self.writer.shared();
        match shared.supply.try_job() {
            Some(job) => recycler::carry_out(shared, job),
            None => Ok(()),
        }
    }

    /// What the writer's thread does last when the log is closed in order and nothing is left to do.
    pub fn close(self) -> Result<(), Arc<WalError>> {
        self.writer.shared().save_closed()
    }
}
