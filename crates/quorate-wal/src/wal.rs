//! The handle.

use crate::directory::Lock;
use crate::disk::RealDisk;
use crate::error::{IoContext, ReadError, WalError};
use crate::meta::Meta;
use crate::options::{Recovered, Room, WalOptions, WalStats};
use crate::shared::Shared;
use crate::state::State;
use crate::threads;
use crate::writer::Writer;
use quorate_consensus::{Charter, Entry, HardState, Index, LogPosition, Term};
use std::fs;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// Called on the writer thread after each sync (`Ok`: on disk up to here) and once on failure
/// (final: nothing is acknowledged afterwards). An entry that takes several syncs is reported after
/// each, with the position before it: the disk gets on.
///
/// The position is exact when it is reported: entries that a truncation or reset queued before
/// that takes back are not in it. A receiver that hands it to another thread should take
/// [`Wal::persisted`] there instead: that knows of truncations queued in between.
pub type OnSync = Box<dyn Fn(Result<LogPosition, Arc<WalError>>) + Send>;

/// Handle of an open log; clones share it, the last one to go closes it. One writer thread, one
/// that keeps segments ready; readers on any thread.
#[derive(Clone)]
pub struct Wal {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
}

pub(crate) struct Running {
    threads: Vec<JoinHandle<()>>,
    /// Given back when they have ended.
    _lock: Option<Lock>,
}

impl Wal {
    /// Opens (creating it if `create` and empty) and locks the directory, repairs a torn tail,
    /// refuses a hole in the middle, and starts the writer thread.
    pub fn open(
        options: WalOptions,
        create: bool,
        on_sync: OnSync,
    ) -> Result<(Wal, Recovered), WalError> {
        let disk = RealDisk::new(&options.dir);
        let lock = Lock::take(&disk, create)?;
        let (shared, writer, recovered) = Shared::open(Arc::new(disk), options, create)?;
        Ok((Wal::start(shared, writer, on_sync, Some(lock))?, recovered))
    }

    /// Starts the threads of an opened log.
    pub(crate) fn start(
        shared: Arc<Shared>,
        writer: Writer,
        on_sync: OnSync,
        lock: Option<Lock>,
    ) -> Result<Wal, WalError> {
        let mut threads = Vec::new();
        let mut start = |name: &str, run: Box<dyn FnOnce() + Send>| {
            let spawned = thread::Builder::new().name(name.into()).spawn(run);
            spawned
                .map(|thread| threads.push(thread))
                .doing("start a thread for", shared.disk.dir())
        };
        let recycled = shared.clone();
        let started = start("quorate-log", Box::new(move || threads::write(writer, on_sync)))
            .and_then(|()| start("quorate-seg", Box::new(move || threads::recycle(&recycled))));
        let running = Some(Running { threads, _lock: lock });
        let wal = Wal::of(shared, running);
        started.map(|()| wal)
    }

    /// A handle; whoever writes for it is the caller's business.
    pub(crate) fn of(shared: Arc<Shared>, running: Option<Running>) -> Wal {
        Wal { inner: Arc::new(Inner { shared, running: Mutex::new(running) }) }
    }

    /// Queues consecutive entries; returns at once. They are readable immediately. Before the
    /// caller queues an entry whose index is at or below the last one, it calls `truncate`.
    /// Ignored once the log failed or is closed.
    pub fn append(&self, entries: &[Entry]) {
        self.queue(|state| state.append(entries));
    }

    /// Queues the removal of everything from `from` on. Never reaches below the base.
    pub fn truncate(&self, from: Index) {
        self.queue(|state| {
            state.truncate(from);
            Ok(())
        });
    }

    /// Queues: forget everything, the log continues after `base`. `OnSync` reports `base` when done.
    pub fn reset(&self, base: LogPosition) {
        self.queue(|state| {
            state.reset(base);
            Ok(())
        });
    }

    /// Durable when it returns. Called rarely (elections), so it may block for a sync.
    pub fn save_hard_state(&self, state: HardState) -> Result<(), Arc<WalError>> {
        self.save_meta(|meta| meta.hard_state = state)
    }

    /// Durable when it returns.
    pub fn save_group(&self, group: u128, charter: Charter) -> Result<(), Arc<WalError>> {
        self.save_meta(|meta| {
            meta.identity.group = group;
            meta.identity.charter = charter;
        })
    }

    /// Has the term file say how far the log is on disk: an open that finds less refuses. Called
    /// when something else that is kept relies on it, such as a snapshot of the state. Durable
    /// when it returns.
    pub fn save_synced(&self) -> Result<(), Arc<WalError>> {
        self.inner.shared.save_synced()
    }

    /// Adds entries from `from` on to `out`: at least one if there is one, at most about
    /// `bytes_max` of data. From the cache where possible, else from disk with read-ahead.
    pub fn read(
        &self,
        from: Index,
        bytes_max: usize,
        out: &mut Vec<Entry>,
    ) -> Result<(), ReadError> {
        self.inner.shared.read(from, bytes_max, out)
    }

    /// Adds the entries of `range` to `out`, as far as they are in memory, and until `bytes_max` of data: at least one
    /// if there is one.
    pub fn read_cached(
        &self,
        range: RangeInclusive<Index>,
        bytes_max: usize,
        out: &mut Vec<Entry>,
    ) {
        self.inner.shared.state().cache.read_range(range, bytes_max, out);
    }

    /// The term of the entry at `index` or of the base.
    pub fn term_at(&self, index: Index) -> Option<Term> {
        self.inner.shared.state().term_at(index)
    }

    /// Entries up to here are covered by a snapshot: segments wholly below may be recycled, as
    /// far as retention allows. Those with entries above `sent` stay, too, as long as the log has no more than half of
    /// what it may. On a full disk neither counts. Returns the new base if anything was purged; the files follow in
    /// the background.
    pub fn release(&self, upto: Index, sent: Index) -> Option<LogPosition> {
        let shared = &self.inner.shared;
        let (keep, is_roomy) = shared.retention();
        let sent = if is_roomy { sent } else { Index::MAX };
        let released = shared.state().release(upto, sent, &keep, shared.disk.now())?;
        let base = released.base;
        shared.supply.retire(released);
        Some(base)
    }

    /// For whoever is about to append: lets those run first that are ready to do so, too, if they come in crowds.
    pub fn give_way(&self) {
        self.inner.shared.crowd.give_way();
    }

    /// Position just before the first entry.
    pub fn base(&self) -> LogPosition {
        self.inner.shared.state().base
    }

    /// The last entry queued.
    pub fn last(&self) -> LogPosition {
        self.inner.shared.state().last
    }

    /// What of the log, as queued so far, is on disk. `(0, 0)` while a reset is under way.
    pub fn persisted(&self) -> LogPosition {
        self.inner.shared.state().persisted
    }

    /// Bytes on disk of the segments with the entries from `from` on.
    pub fn bytes_from(&self, from: Index) -> u64 {
        self.inner.shared.state().index.bytes_from(from)
    }

    /// How much room there is on the disk. Cheap.
    pub fn room(&self) -> Room {
        self.inner.shared.supply.room()
    }

    /// Whether the group needs this member for its majority (at first: it does). On a full disk
    /// it may then use its whole reserve; others leave half of it, and stop first.
    pub fn set_needed(&self, needed: bool) {
        self.inner.shared.supply.set_needed(needed);
    }

    /// When the oldest file of the log was last written to: the log reaches back to then at least. `None`: the
    /// file system does not say.
    pub fn oldest_write(&self) -> Option<SystemTime> {
        let oldest = self.inner.shared.state().index.segments().front()?.segment.path().to_owned();
        fs::metadata(oldest).and_then(|metadata| metadata.modified()).ok()
    }

    pub fn stats(&self) -> WalStats {
        let shared = &self.inner.shared;
        let warning = shared.supply.warning();
        let state = shared.state();
        let segments = state.index.segments();
        WalStats {
            bytes: segments.iter().map(|s| s.segment.size()).sum(),
            segments: segments.len() as u64,
            warning,
            ..state.stats.clone()
        }
    }

    /// Syncs what is queued, stops the writer thread and joins it. Idempotent.
    pub fn close(&self) {
        self.inner.close();
    }

    fn save_meta(&self, change: impl FnOnce(&mut Meta)) -> Result<(), Arc<WalError>> {
        let shared = &self.inner.shared;
        if shared.state().closing {
            return Err(shared.closed());
        }
        shared.save_meta(change)
    }

    fn queue(&self, change: impl FnOnce(&mut State) -> Result<(), WalError>) {
        let shared = &self.inner.shared;
        let mut state = shared.state();
        if state.failed.is_some() || state.closing {
            return;
        }
        if let Err(error) = change(&mut state) {
            drop(state);
            shared.fail(error);
            return;
        }
        let wake = std::mem::take(&mut state.idle);
        drop(state);
        if wake {
            shared.wake.notify_one();
        }
    }
}

impl Inner {
    fn close(&self) {
        self.shared.state().closing = true;
        self.shared.wake.notify_all();
        self.shared.supply.close();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { threads, _lock }) = running {
            threads.into_iter().for_each(join);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// From within a callback the thread cannot wait for itself; it ends by itself then. Whatever
/// panicked in it was reported through `OnSync`.
fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != thread::current().id() {
        let _ = thread.join();
    }
}
