//! Writing a history while it happens.

use super::{Action, Operation, Outcome};
use anyhow::{Context, Result};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Shared by all clients. A line is written when its operation has ended.
pub struct Recorder {
    start: Instant,
    file: Mutex<BufWriter<File>>,
    counts: [AtomicU64; 3],
}

impl Recorder {
    /// Times count from `start` on.
    pub fn create(path: &Path, start: Instant) -> Result<Recorder> {
        let file = File::create(path).with_context(|| format!("making {}", path.display()))?;
        Ok(Recorder { start, file: Mutex::new(BufWriter::new(file)), counts: Default::default() })
    }

    /// Microseconds since the start of the history.
    pub fn now_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    pub fn write(&self, operation: &Operation) -> Result<()> {
        self.counts[operation.outcome as usize].fetch_add(1, Ordering::Relaxed);
        let line = format!("{operation}\n");
        let mut file = self.file.lock();
        file.write_all(line.as_bytes()).context("writing the history")
    }

    /// An operation that ends now.
    pub fn ended(
        &self,
        begin_us: u64,
        (process, node): (u32, u16),
        outcome: Outcome,
        action: Action,
        note: String,
    ) -> Result<()> {
        let end_us = self.now_us();
        self.write(&Operation { begin_us, end_us, process, node, outcome, action, note })
    }

    /// How many operations ended with an outcome so far.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.counts[outcome as usize].load(Ordering::Relaxed)
    }

    /// Everything recorded so far is in the file.
    pub fn flush(&self) -> Result<()> {
        let mut file = self.file.lock();
        file.flush().context("writing the history")
    }
}
