//! Where the next segment comes from, and what is kept for a disk that runs full.
//!
//! The next segment is prepared in the background ([`crate::recycler`]), from a released one if there
//! is one, else zero-filled; so that the writer, when it needs it, finds it ready. If the log grows faster than
//! that, the writer gets the segment as far as it is filled.
//!
//! The stock holds segment files without content. Some of them are the reserve: they are touched
//! only when the disk has no room for a new file, and filled up again when it has. Members whose
//! disks fill together are not to stop together: one that no majority needs leaves half of its
//! reserve and stops first ([`Supply::set_needed`]).

use crate::disk::{Disk, DiskFile};
use crate::error::{IoContext, WalError};
use crate::options::Room;
use crate::record::Layout;
use crate::seal::{DiskKeyId, DiskKeys};
use crate::segment::{file_name, Segment, HEADER_BYTES, PAGE_BYTES, SEGMENT_BYTES_MAX};
use crate::segment_files::{allocate, fill, spare_name, Fill, SegmentFiles};
use crate::state::Released;
use quorate_consensus::MemberId;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What failed in the background is tried again after this, or when a segment was released.
const RETRY: Duration = Duration::from_secs(5);

pub(crate) struct Supply {
    files: SegmentFiles,
    segment_bytes: u64,
    /// Files of the stock that are kept for a full disk.
    reserve: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: Option<Arc<Segment>>,
    /// Sequence number of the segment to be prepared next.
    wanted: Option<u64>,
    /// One is being made, by the recycler or by the writer itself.
    making: bool,
    /// The writer waits for it.
    hurry: bool,
    stock: VecDeque<String>,
    retired: Vec<Released>,
    /// The segment in use, with a mark that is written and not synced.
    marked: Option<Arc<Segment>>,
    /// The member may go on when others of its group stop.
    spared: bool,
    /// There was no room for a new file.
    full: bool,
    /// The last try in the background failed; it waits before the next.
    held: Option<Held>,
    /// Why the writer stands still.
    blocked: Option<String>,
    /// That is the disk, and not want of a file descriptor: letting go of the log helps.
    blocked_by_disk: bool,
    closing: bool,
    abandoned: bool,
}

/// A try that failed.
struct Held {
    why: String,
    /// When the next one is due, however often something else is to be done until then.
    until: Instant,
}

impl Held {
    fn of(error: &WalError) -> Self {
        Held { why: error.to_string(), until: Instant::now() + RETRY }
    }
}

/// What there is to do in the background.
pub(crate) enum Job {
    Retire(Vec<Released>),
    Make {
        sequence: u64,
        spare: Option<String>,
    },
    Reserve,
    /// Sync it: nobody waits for that.
    Settle(Arc<Segment>),
}

impl Supply {
    /// Released segments kept for reuse, beside the reserve; more are deleted.
    const SPARES_MAX: usize = 2;

    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        member: MemberId,
        keys: DiskKeys,
        segment_bytes: u64,
        reserve: usize,
    ) -> Self {
        // Room for a few records at the least, and for the offsets in them at the most.
        let segment_bytes = segment_bytes.clamp(4 * HEADER_BYTES, SEGMENT_BYTES_MAX);
        let segment_bytes = segment_bytes.next_multiple_of(PAGE_BYTES);
        let (state, changed) = Default::default();
        let files = SegmentFiles { disk, member, keys };
        Supply { files, segment_bytes, reserve, state, changed }
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// What new segments are encrypted with; `None`: they are in the clear.
    pub(crate) fn key(&self) -> Option<DiskKeyId> {
        self.files.keys.encrypts_with()
    }

    pub(crate) fn layout(&self) -> Layout {
        match self.key() {
            None => Layout::Plain,
            Some(_) => Layout::Sealed,
        }
    }

    pub(crate) fn stock_max(&self) -> usize {
        Self::SPARES_MAX + self.reserve
    }

    /// Since 1970.
    pub(crate) fn now(&self) -> Duration {
        self.files.disk.now()
    }

    /// What recovery found: segments prepared behind the end of the log, and files to be reused.
    pub(crate) fn restock(&self, ready: Option<Arc<Segment>>, spares: Vec<String>) {
        let mut state = self.lock();
        state.ready = ready;
        state.stock = spares.into();
    }

    /// Has segment `sequence` prepared, unless it is.
    pub(crate) fn want(&self, sequence: u64) {
        let mut state = self.lock();
        if state.ready.is_none() {
            state.wanted = Some(sequence);
            self.changed.notify_all();
        }
    }

    /// Whether the whole reserve may be used, or only half of it.
    pub(crate) fn set_needed(&self, needed: bool) {
        self.lock().spared = !needed;
    }

    /// The segment with this number, with at least `need` bytes; under its name, durably. After
    /// [`WalError::Full`] the same can be tried again.
    pub(crate) fn take(&self, sequence: u64, need: u64) -> Result<Arc<Segment>, WalError> {
        let mut state = self.lock();
        loop {
            // First of all: what is made beside it may be for the reserve, and nobody waits for that.
            let fits = |r: &mut Arc<Segment>| r.sequence() == sequence && r.size() >= need;
            if let Some(ready) = state.ready.take_if(fits) {
                state.wanted = Some(sequence + 1);
                self.changed.notify_all();
                return Ok(ready);
            }
            if !state.making || state.abandoned {
                break;
            }
            state.hurry = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.making = true;
        state.wanted = None;
        drop(state);
        let made =
            self.make_now(sequence, self.segment_bytes.max(need.next_multiple_of(PAGE_BYTES)));
        let mut state = self.lock();
        state.making = false;
        if made.is_ok() {
            // One that was too small has lost its name to this.
            state.ready = None;
            state.wanted = Some(sequence + 1);
        }
        self.changed.notify_all();
        made
    }

    /// The writer waits for it: the room is taken, but nothing is filled with zeros first.
    fn make_now(&self, sequence: u64, size: u64) -> Result<Arc<Segment>, WalError> {
        let ordinary = size == self.segment_bytes;
        let spare = if ordinary { self.take_spare(self.reserve) } else { None };
        let made = self.make(sequence, size, spare, |file| allocate(file, size));
        let full = made.as_ref().err().is_some_and(WalError::is_full_disk);
        {
            let mut state = self.lock();
            state.full = full;
            // What failed for want of room need not wait any longer.
            state.held = state.held.take().filter(|_| made.is_err());
        }
        if !full || !ordinary {
            return made;
        }
        let kept = if self.lock().spared { self.reserve.div_ceil(2) } else { 0 };
        match self.take_spare(kept) {
            Some(spare) => self.make(sequence, size, Some(spare), |_| Ok(())),
            None => made,
        }
    }

    fn take_spare(&self, keep: usize) -> Option<String> {
        let mut state = self.lock();
        if state.stock.len() > keep {
            state.stock.pop_front()
        } else {
            None
        }
    }

    /// Makes room for something that cannot wait, at the expense of the stock; false if that is empty.
    pub(crate) fn give_up_spare(&self) -> bool {
        self.take_spare(0).is_some_and(|name| self.files.disk.remove(&name).is_ok())
    }

    /// These are no longer part of the log.
    pub(crate) fn retire(&self, released: Released) {
        self.lock().retired.push(released);
        self.changed.notify_all();
    }

    /// The mark that was written to this segment is to be synced.
    pub(crate) fn settle(&self, segment: Arc<Segment>) {
        self.lock().marked = Some(segment);
        self.changed.notify_all();
    }

    /// Why the writer stands still, or that it goes on.
    pub(crate) fn set_blocked(&self, why: Option<&WalError>) {
        let mut state = self.lock();
        state.blocked = why.map(WalError::to_string);
        state.blocked_by_disk = why.is_some_and(WalError::is_full_disk);
    }

    /// Whether the log is to let go of all that is not needed.
    pub(crate) fn needs_room(&self) -> bool {
        let state = self.lock();
        state.full || state.blocked_by_disk
    }

    pub(crate) fn room(&self) -> Room {
        let state = self.lock();
        match (&state.blocked, state.full) {
            (Some(_), _) => Room::Blocked,
            (None, true) => Room::Reserve { segments: state.stock.len() },
            (None, false) => Room::Enough,
        }
    }

    pub(crate) fn warning(&self) -> Option<String> {
        let state = self.lock();
        if let Some(why) = &state.blocked {
            return Some(format!(
                "{why}. Until then this node acknowledges nothing: what it acknowledged stands, and \
                 the others go on without it. It goes on by itself when there is room"
            ));
        }
        let why = &state.held.as_ref()?.why;
        let left = state.stock.len();
        Some(format!(
            "{why}. Until then the log goes on with {left} segments that it has in reserve"
        ))
    }

    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    /// Nothing is prepared any more: a bug ended the thread that did.
    pub(crate) fn abandon(&self) {
        self.lock().abandoned = true;
        self.changed.notify_all();
    }

    /// Waits for something to do; `None` when closed and everything retired is recycled.
    pub(crate) fn next_job(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            match state.job(self.reserve) {
                Some(job) => return Some(job),
                None if state.closing => return None,
                None => {}
            }
            let Some(until) = state.held.as_ref().map(|held| held.until) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.held = None;
                continue;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What there is to do now; what failed before is tried again.
    #[cfg(feature = "sim")]
    pub(crate) fn try_job(&self) -> Option<Job> {
        let mut state = self.lock();
        state.held = None;
        state.job(self.reserve)
    }

    /// Whether there is something to do that did not just fail.
    #[cfg(feature = "sim")]
    pub(crate) fn has_job(&self) -> bool {
        let state = self.lock();
        let make = state.wanted.is_some() || state.stock.len() < self.reserve;
        !state.retired.is_empty() || state.marked.is_some() || (make && state.held.is_none())
    }

    /// Carries out [`Job::Make`]. A failure costs nothing yet: `take` tries again when the segment
    /// is really needed, and the recycler when space may have become free.
    pub(crate) fn prepare(&self, sequence: u64, spare: Option<String>) {
        let how = || {
            let state = self.lock();
            match (state.hurry, state.closing) {
                (true, _) => Fill::AtOnce,
                (_, true) => Fill::GiveUp,
                _ => Fill::Steadily,
            }
        };
        let size = self.segment_bytes;
        let made = self.make(sequence, size, spare, |file| fill(file, size, how));
        let mut state = self.lock();
        (state.making, state.hurry) = (false, false);
        state.tried(made.as_ref().err());
        match made {
            Ok(segment) => state.ready = Some(segment),
            Err(_) => state.wanted = Some(sequence),
        }
        self.changed.notify_all();
    }

    /// As if the writer waited for what is made next.
    #[cfg(test)]
    pub(crate) fn hurry(&self) {
        self.lock().hurry = true;
    }

    /// Carries out [`Job::Reserve`].
    pub(crate) fn add_to_reserve(&self) {
        let added = self.files.new_spare(self.segment_bytes);
        let mut state = self.lock();
        (state.making, state.hurry) = (false, false);
        state.tried(added.as_ref().err());
        state.stock.extend(added.ok());
        self.changed.notify_all();
    }

    /// Carries out [`Job::Retire`], once the meta file says that these files are garbage. A
    /// segment that somebody still reads is deleted rather than reused. A failure only leaves
    /// files behind, which the next start removes.
    pub(crate) fn recycle(&self, segments: Vec<Arc<Segment>>) {
        let kept = self.rename_or_delete(segments);
        let mut state = self.lock();
        state.held = kept.as_ref().err().map(Held::of);
        state.stock.extend(kept.unwrap_or_default());
        self.changed.notify_all();
    }

    /// None of this needs to be durable: by the meta file, these are garbage under any name.
    fn rename_or_delete(&self, segments: Vec<Arc<Segment>>) -> Result<Vec<String>, WalError> {
        let mut kept = Vec::new();
        for segment in segments {
            // Where new segments are encrypted, nothing in the clear is to lie behind them.
            let shows_rows = self.key().is_some() && segment.key().is_none();
            let reusable = segment.size() == self.segment_bytes
                && !shows_rows
                && Arc::strong_count(&segment) == 1;
            let name = file_name(segment.sequence());
            if reusable && self.lock().stock.len() + kept.len() < self.stock_max() {
                let spare = spare_name(segment.sequence());
                self.files.disk.rename(&name, &spare).doing("rename", segment.path())?;
                kept.push(spare);
            } else {
                self.files.disk.remove(&name).doing("delete", segment.path())?;
            }
        }
        Ok(kept)
    }

    /// A full-sized file, new or from the stock, gets a new header, and then its name.
    fn make(
        &self,
        sequence: u64,
        size: u64,
        mut spare: Option<String>,
        prepare: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
    ) -> Result<Arc<Segment>, WalError> {
        let made = self.files.make(sequence, size, &mut spare, prepare);
        if matches!(made, Err(WalError::Full { .. })) {
            // Unless it is the segment's file by now, and only the directory found no room.
            self.lock().stock.extend(spare);
        }
        made
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked under it has failed the log: nothing relies on this any more.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn job(&mut self, reserve: usize) -> Option<Job> {
        if !self.retired.is_empty() {
            return Some(Job::Retire(std::mem::take(&mut self.retired)));
        }
        if let Some(segment) = self.marked.take() {
            return Some(Job::Settle(segment));
        }
        if self.making || self.closing {
            return None;
        }
        let spare = self.wanted.filter(|_| self.stock.len() > reserve);
        let spare = spare.and_then(|_| self.stock.pop_front());
        if self.held.is_some() && spare.is_none() {
            return None;
        }
        let job = match self.wanted.take() {
            Some(sequence) => Job::Make { sequence, spare },
            None if self.stock.len() < reserve => Job::Reserve,
            None => return None,
        };
        self.making = true;
        Some(job)
    }

    /// The outcome of a try in the background.
    fn tried(&mut self, error: Option<&WalError>) {
        self.full = error.is_some_and(WalError::is_full_disk);
        self.held = error.map(Held::of);
    }
}

#[cfg(test)]
mod tests;
