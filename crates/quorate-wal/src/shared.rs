//! What the handle, the writer and the recycler share, and how a log is opened.

use crate::crowd::Crowd;
use crate::directory::{classify, Contents};
use crate::disk::{Disk, DiskFile};
use crate::error::{IoContext, ReadError, WalError};
use crate::index::Placement;
use crate::meta::{Meta, MetaFile, Place};
use crate::options::{Identity, Recovered, WalOptions};
use crate::reader::read_planned;
use crate::recovery::{recover, Found};
use crate::replay::Replay;
use crate::seal::DiskKeyId;
use crate::segment::{file_name, shows_nothing, Segment, PAGE_BYTES};
use crate::segment_files::{is_leftover_name, is_spare_name};
use crate::snapshot_file::{self, TMP_NAME};
use crate::state::{Op, State};
use crate::supply::Supply;
use crate::tail::{End, Synced, Tail};
use crate::window::WINDOW_BYTES;
use crate::writer::Writer;
use quorate_consensus::{Charter, Entry, HardState, Index, LogPosition, MemberId};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

pub(crate) struct Shared {
    pub(crate) options: WalOptions,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) supply: Supply,
    pub(crate) wake: Condvar,
    pub(crate) crowd: Crowd,
    meta: Mutex<MetaFile>,
    state: Mutex<State>,
}

impl Shared {
    /// Opens (or creates) the log on a disk that nobody else uses. Starts no threads.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        options: WalOptions,
        create: bool,
    ) -> Result<(Arc<Shared>, Writer, Recovered), WalError> {
        let mut meta = match classify(&*disk)? {
            Contents::Log => MetaFile::open(&*disk, options.keys.clone())?,
            Contents::Empty if create => {
                MetaFile::create(&*disk, options.keys.clone(), fresh_meta(&*disk)?)?
            }
            Contents::Empty => return Err(WalError::NoLog { dir: disk.dir().to_path_buf() }),
        };
        let member = meta.content().identity.member;
        let (bytes, reserve) = (options.segment_bytes, options.reserve_segments);
        let keys = &options.keys;
        let supply = Supply::new(disk.clone(), member, keys.clone(), bytes, reserve);
        let snapshots = snapshot_file::check_keys(&*disk, keys)?;
        let mut found = match meta.content().first_segment {
            0 => create_log(&*disk, &supply)?,
            first => recover(&*disk, member, first, keys)?,
        };
        check_reaches(&meta.content(), &found)?;
        let encryption = encryption(&found, snapshots);
        leave_outdated(&mut found, &supply);

        // From here on the directory is changed. The incarnation is durable before a record
        // carries it, and the log is proven to be on disk before a record says so.
        let mut content = meta.content();
        let closed = std::mem::take(&mut content.closed);
        content.identity.incarnation += 1;
        let mut leftovers = std::mem::take(&mut found.leftovers);
        let mut gives_up = || {
            let spare = leftovers.iter().position(|name| is_spare_name(name));
            spare.is_some_and(|at| disk.remove(&leftovers.swap_remove(at)).is_ok())
        };
        with_room(&mut gives_up, || meta.settle())?;
        with_room(&mut gives_up, || meta.save(content))?;
        if let Some((segment, range)) = &found.unproven {
            with_room(&mut gives_up, || rewrite(segment, range.clone()))?;
        }
        let spares = tidy(&*disk, &leftovers, &supply)?;
        supply.restock(found.next, spares);
        let first = found.end.segment.sequence();
        let mut tail = Tail::resume(disk.clone(), found.end, content.identity.incarnation)?;
        put_mark(&mut tail, &supply)?;
        if content.first_segment == 0 {
            content.first_segment = first;
        }
        content.synced = tail.synced();
        with_room(|| supply.give_up_spare(), || meta.save(content))?;

        let mut replay = found.replay;
        let recovered = Recovered {
            identity: content.identity,
            hard_state: content.hard_state,
            base: replay.base,
            last: replay.last,
            term_runs: replay.runs.to_vec(),
            special: std::mem::take(&mut replay.special),
            torn_bytes: found.torn_bytes,
            closed,
            encryption,
        };
        let (synced, cache_bytes) = (tail.synced(), options.cache_bytes);
        let Replay { base, last, runs, .. } = replay;
        let mut state = State::new(base, last, runs, found.index, synced, cache_bytes);
        tail.placements().for_each(|p| state.index.apply(p));
        supply.want(synced.segment + 1);
        let shared = Arc::new(Shared {
            options,
            disk,
            supply,
            wake: Condvar::new(),
            crowd: Crowd::default(),
            meta: Mutex::new(meta),
            state: Mutex::new(state),
        });
        let writer = Writer::new(shared.clone(), tail);
        Ok((shared, writer, recovered))
    }

    /// A panic under this lock leaves a log that has failed.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.failed.get_or_insert_with(|| self.bug("its state is half changed"));
            state
        })
    }

    fn bug(&self, what: &str) -> Arc<WalError> {
        let dir = self.disk.dir().to_path_buf();
        Arc::new(WalError::Panicked { dir, what: what.into() })
    }

    /// Waits for [`Self::wake`], or so long. True: it was that long.
    pub(crate) fn wait(&self, state: MutexGuard<'_, State>, patience: Option<Duration>) -> bool {
        let Some(patience) = patience else {
            drop(self.wake.wait(state));
            return false;
        };
        let waited = self.wake.wait_timeout(state, patience);
        waited.is_ok_and(|(_, timeout)| timeout.timed_out())
    }

    /// Segments were recycled: a writer that found no room tries again.
    pub(crate) fn room_made(&self) {
        self.state().room_made = true;
        self.wake.notify_all();
    }

    /// What [`Wal::release`](crate::Wal::release) goes by, and whether there is room.
    pub(crate) fn retention(&self) -> (WalOptions, bool) {
        let mut options = self.options.clone();
        let is_roomy = !self.supply.needs_room();
        if !is_roomy {
            (options.retain_bytes, options.retain_age) = (0, None);
        }
        (options, is_roomy)
    }

    /// See [`crate::Wal::read`].
    pub(crate) fn read(
        &self,
        from: Index,
        bytes_max: usize,
        out: &mut Vec<Entry>,
    ) -> Result<(), ReadError> {
        let plan = {
            let state = self.state();
            if state.closing {
                // The directory may belong to somebody else by now.
                return Err(ReadError::Wal(self.closed()));
            }
            let base = state.base.index;
            if from <= base {
                return Err(ReadError::Purged { index: from, base });
            }
            if from > state.last.index {
                return Ok(());
            }
            let cached = state.cache.first_index();
            if cached.is_some_and(|first| from >= first) {
                state.cache.read(from, bytes_max, out);
                return Ok(());
            }
            state.index.plan(from, cached.unwrap_or(state.last.index + 1), bytes_max)
        };
        read_planned(&plan, from, bytes_max, out)
    }

    /// Changes the meta file; durable when it returns. A failure is final for the log. The file needs
    /// no room, but where even overwriting does: there the reserve is given up for it.
    pub(crate) fn save_meta(&self, change: impl FnOnce(&mut Meta)) -> Result<(), Arc<WalError>> {
        let Ok(mut meta) = self.meta.lock() else {
            let dir = self.disk.dir().to_path_buf();
            let what = "a write of the term file ended half-way".into();
            return Err(self.fail(WalError::Panicked { dir, what }));
        };
        if let Some(error) = &self.state().failed {
            return Err(error.clone());
        }
        let mut content = meta.content();
        change(&mut content);
        if content == meta.content() {
            return Ok(());
        }
        content.synced = self.state().synced;
        with_room(|| self.supply.give_up_spare(), || meta.save(content))
            .map_err(|error| self.fail(error))
    }

    /// Has the meta file say how far the log is synced. A failure is final for the log.
    pub(crate) fn save_synced(&self) -> Result<(), Arc<WalError>> {
        let synced = self.state().synced;
        self.save_meta(|meta| meta.synced = synced)
    }

    /// The same, when nothing more will be written.
    pub(crate) fn save_closed(&self) -> Result<(), Arc<WalError>> {
        self.save_meta(|meta| meta.closed = true)
    }

    pub(crate) fn closed(&self) -> Arc<WalError> {
        Arc::new(WalError::Closed { dir: self.disk.dir().to_path_buf() })
    }

    /// Nothing is written or acknowledged from here on; the writer says so once. Returns the
    /// first reason.
    pub(crate) fn fail(&self, error: WalError) -> Arc<WalError> {
        let mut state = self.state();
        let failure = state.failed.get_or_insert_with(|| {
            let dir = self.disk.dir().to_path_buf();
            Arc::new(WalError::Failed { dir, cause: Box::new(error) })
        });
        self.wake.notify_all();
        failure.clone()
    }
}

fn fresh_meta(disk: &dyn Disk) -> Result<Meta, WalError> {
    let member = disk.member_id().doing("draw a member id for", disk.dir())?;
    let member = MemberId(member);
    Ok(Meta {
        identity: Identity { member, group: 0, charter: Charter::default(), incarnation: 0 },
        hard_state: HardState::default(),
        first_segment: 0,
        base: LogPosition::default(),
        synced: Place::default(),
        closed: false,
    })
}

/// The first segment of a new log. What an interrupted creation left is overwritten.
fn create_log(disk: &dyn Disk, supply: &Supply) -> Result<Found, WalError> {
    // Filled with zeros: nobody waits for it yet. If that fails, the next line says why.
    supply.prepare(1, None);
    let segment = supply.take(1, PAGE_BYTES)?;
    let names = disk.list().doing("list", disk.dir())?;
    let leftovers = names.into_iter().filter(|name| is_leftover_name(name)).collect();
    let mut index = crate::index::SparseIndex::default();
    index.apply(Placement::Segment(segment.clone()));
    let offset = crate::segment::HEADER_BYTES;
    let end = End { segment, offset, crc: 0, last: LogPosition::default() };
    let replay = Default::default();
    Ok(Found { replay, index, end, torn_bytes: 0, unproven: None, next: None, leftovers })
}

/// What the meta file knows to have been on disk: a log that ends before lacks its end.
fn check_reaches(meta: &Meta, found: &Found) -> Result<(), WalError> {
    let (end, synced) = (found.end.place(), meta.synced);
    if end < synced {
        let known = file_name(synced.segment);
        let what = format!(
            "no intact record is found there, but the term file says that the log was on disk up to \
             byte {} of {known}",
            synced.offset
        );
        return Err(found.end.segment.damaged(end.offset, what));
    }
    let replay = &found.replay;
    if replay.was_reset || replay.last.index >= meta.base.index {
        return Ok(());
    }
    let (last, base) = (replay.last.index, meta.base.index);
    let what = format!("the log ends at index {last} here, but was purged up to {base} before");
    Err(found.end.segment.damaged(found.end.offset, what))
}

/// The first records of this start, written and synced.
fn put_mark(tail: &mut Tail, supply: &Supply) -> Result<(), WalError> {
    let mut put = false;
    loop {
        put = put || tail.put_op(&Op::Mark, supply)?;
        with_room(|| supply.give_up_spare(), || tail.flush())?;
        if tail.sync()? == Synced::All && put {
            return Ok(());
        }
    }
}

/// Writes what cannot wait for room, where even overwriting needs some: at the expense of what was set aside.
fn with_room<T>(
    mut gives_up: impl FnMut() -> bool,
    mut write: impl FnMut() -> Result<T, WalError>,
) -> Result<T, WalError> {
    loop {
        match write() {
            Err(WalError::Full { .. }) if gives_up() => {}
            done => return done,
        }
    }
}

/// Removes leftovers; returns those that can be recycled.
fn tidy(disk: &dyn Disk, names: &[String], supply: &Supply) -> Result<Vec<String>, WalError> {
    let mut spares = Vec::new();
    for name in names {
        let path = disk.path(name);
        if spares.len() < supply.stock_max() && is_spare_name(name) {
            let file = disk.open(name).doing("open", &path)?;
            let fits = file.len().doing("look at", &path)? == supply.segment_bytes();
            if fits && (supply.key().is_none() || is_clean(&*file).doing("read", &path)?) {
                spares.push(name.clone());
                continue;
            }
        }
        disk.remove(name).doing("delete", &path)?;
    }
    if supply.key().is_some()
        && disk.list().doing("list", disk.dir())?.iter().any(|n| n == TMP_NAME)
    {
        // Half a snapshot, perhaps in the clear.
        disk.remove(TMP_NAME).doing("delete", &disk.path(TMP_NAME))?;
    }
    // Also makes durable whatever names the last start of the node left undecided.
    disk.sync_dir().doing("sync", disk.dir())?;
    Ok(spares)
}

/// Whether the last life of this file left nothing in the clear: only then are encrypted ones to follow.
fn is_clean(file: &dyn DiskFile) -> io::Result<bool> {
    let mut head = [0; PAGE_BYTES as usize];
    file.read_exact_at(&mut head, 0)?;
    Ok(shows_nothing(&head))
}

/// How many files there are of each key.
fn encryption(
    found: &Found,
    snapshots: Vec<Option<DiskKeyId>>,
) -> BTreeMap<Option<DiskKeyId>, u64> {
    let segments = found.index.segments().iter().map(|s| &s.segment).chain(&found.next);
    let mut files = BTreeMap::new();
    for key in segments.map(|segment| segment.key()).chain(snapshots) {
        *files.entry(key).or_default() += 1;
    }
    files
}

/// A segment that was prepared with another key, or with none, is not to be used.
fn leave_outdated(found: &mut Found, supply: &Supply) {
    if let Some(next) = found.next.take_if(|next| next.key() != supply.key()) {
        found.leftovers.push(file_name(next.sequence()));
    }
}

/// After a crash of the node alone, its last write may exist only in the kernel's memory, or (if
/// its sync failed) be taken for clean there: writing the same bytes again settles it.
fn rewrite(segment: &Segment, range: Range<u64>) -> Result<(), WalError> {
    let end = range.end;
    for at in range.step_by(WINDOW_BYTES) {
        let mut bytes = vec![0; (end - at).min(WINDOW_BYTES as u64) as usize];
        segment.read(&mut bytes, at)?;
        segment.write(&bytes, at)?;
    }
    segment.sync()
}
