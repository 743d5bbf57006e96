//! Where the next segment comes from: prepared in the background, from a released one if there is
//! one, else zero-filled; so that the writer, when it needs it, finds it ready.

use crate::disk::{Disk, DiskFile};
use crate::error::{IoContext, WalError};
use crate::segment::{
    file_name, Segment, SegmentHeader, HEADER_BYTES, PAGE_BYTES, SEGMENT_BYTES_MAX,
};
use crate::state::Released;
use quorate_consensus::MemberId;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Zero-filling goes in steps of this, each synced, so that the log's own syncs do not queue
/// behind the whole of it.
const ZERO_STEP: usize = 256 << 10;

pub(crate) struct Supply {
    disk: Arc<dyn Disk>,
    member: MemberId,
    segment_bytes: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: Option<Arc<Segment>>,
    /// Sequence number of the segment to be prepared next.
    wanted: Option<u64>,
    /// One is being made, by the keeper or by the writer itself.
    making: bool,
    /// Why the last try failed; until space may have become free it is not tried again.
    blocked: Option<String>,
    spares: VecDeque<String>,
    retired: Vec<Released>,
    closing: bool,
}

/// What the keeper has to do.
pub(crate) enum Job {
    Retire(Vec<Released>),
    Make { sequence: u64, spare: Option<String> },
}

impl Supply {
    /// Released segments kept for reuse; more are deleted.
    pub(crate) const SPARES_MAX: usize = 2;

    pub(crate) fn new(disk: Arc<dyn Disk>, member: MemberId, segment_bytes: u64) -> Self {
        // Room for a few records at the least, and for the offsets in them at the most.
        let segment_bytes = segment_bytes.clamp(4 * HEADER_BYTES, SEGMENT_BYTES_MAX);
        let segment_bytes = segment_bytes.next_multiple_of(PAGE_BYTES);
        Supply { disk, member, segment_bytes, state: Mutex::default(), changed: Condvar::new() }
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// What recovery found: segments prepared behind the end of the log, and files to be reused.
    pub(crate) fn restock(&self, ready: Option<Arc<Segment>>, spares: Vec<String>) {
        let mut state = self.lock();
        state.ready = ready;
        state.spares = spares.into();
    }

    /// Has segment `sequence` prepared, unless it is.
    pub(crate) fn want(&self, sequence: u64) {
        let mut state = self.lock();
        if state.ready.is_none() {
            state.wanted = Some(sequence);
            self.changed.notify_all();
        }
    }

    /// The segment with this number, with at least `need` bytes; under its name, durably.
    pub(crate) fn take(&self, sequence: u64, need: u64) -> Result<Arc<Segment>, WalError> {
        let mut state = self.lock();
        while state.making {
            state = self.changed.wait(state).expect("no panics under this lock");
        }
        if let Some(ready) = state.ready.take() {
            if ready.sequence() == sequence && ready.size() >= need {
                state.wanted = Some(sequence + 1);
                self.changed.notify_all();
                return Ok(ready);
            }
        }
        state.making = true;
        state.wanted = None;
        let size = self.segment_bytes.max(need.next_multiple_of(PAGE_BYTES));
        let spare = if size == self.segment_bytes { state.spares.pop_front() } else { None };
        drop(state);
        let made = self.make(sequence, size, spare, || false);
        let mut state = self.lock();
        state.making = false;
        state.blocked = made.as_ref().err().map(WalError::to_string);
        state.wanted = Some(sequence + 1);
        self.changed.notify_all();
        made
    }

    /// These are no longer part of the log.
    pub(crate) fn retire(&self, released: Released) {
        self.lock().retired.push(released);
        self.changed.notify_all();
    }

    pub(crate) fn warning(&self) -> Option<String> {
        self.lock().blocked.clone()
    }

    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    /// Waits for something to do; `None` when closed and everything retired is recycled.
    pub(crate) fn next_job(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            match state.job() {
                Some(job) => return Some(job),
                None if state.closing => return None,
                None => {}
            }
            state = self.changed.wait(state).expect("no panics under this lock");
        }
    }

    #[cfg(test)]
    pub(crate) fn try_job(&self) -> Option<Job> {
        self.lock().job()
    }

    /// Carries out [`Job::Make`]. A failure costs nothing yet: `take` tries again when the segment
    /// is really needed, and the keeper when space may have become free.
    pub(crate) fn prepare(&self, sequence: u64, spare: Option<String>) {
        let made = self.make(sequence, self.segment_bytes, spare, || self.lock().closing);
        let mut state = self.lock();
        state.making = false;
        match made {
            Ok(segment) => {
                state.blocked = None;
                state.ready = Some(segment);
            }
            Err(error) => {
                state.blocked = Some(error.to_string());
                state.wanted = Some(sequence);
            }
        }
        self.changed.notify_all();
    }

    /// Carries out [`Job::Retire`], once the meta file says that these files are garbage. A
    /// segment that somebody still reads is deleted rather than reused. A failure only leaves
    /// files behind, which the next start removes.
    pub(crate) fn recycle(&self, segments: Vec<Arc<Segment>>) {
        let kept = self.rename_or_delete(segments);
        let mut state = self.lock();
        match kept {
            Ok(kept) => {
                state.spares.extend(kept);
                state.blocked = None;
            }
            Err(error) => state.blocked = Some(error.to_string()),
        }
        self.changed.notify_all();
    }

    /// None of this needs to be durable: by the meta file, these are garbage under any name.
    fn rename_or_delete(&self, segments: Vec<Arc<Segment>>) -> Result<Vec<String>, WalError> {
        let mut kept = Vec::new();
        for segment in segments {
            let reusable = segment.size() == self.segment_bytes && Arc::strong_count(&segment) == 1;
            let name = file_name(segment.sequence());
            if reusable && self.lock().spares.len() + kept.len() < Self::SPARES_MAX {
                let spare = spare_name(segment.sequence());
                self.disk.rename(&name, &spare).doing("rename", segment.path())?;
                kept.push(spare);
            } else {
                self.disk.remove(&name).doing("delete", segment.path())?;
            }
        }
        Ok(kept)
    }

    /// A full-sized, zero-filled or recycled file gets a new header, and then its name.
    fn make(
        &self,
        sequence: u64,
        size: u64,
        spare: Option<String>,
        give_up: impl Fn() -> bool,
    ) -> Result<Arc<Segment>, WalError> {
        let name = spare.clone().unwrap_or_else(|| format!("{NEW_PREFIX}{sequence:016x}"));
        let path = self.disk.path(&name);
        let file = match spare {
            Some(_) => self.disk.open(&name).doing("open", &path)?,
            None => {
                let file = self.disk.create(&name).doing("create", &path)?;
                if let Err(error) = zero_fill(&*file, size, give_up) {
                    // What was filled so far would only take space; the error is what counts.
                    let _ = self.disk.remove(&name);
                    return Err(error).doing("write", &path);
                }
                file
            }
        };
        let nonce = self.disk.random().doing("draw a random number for", &path)? as u64;
        let header = SegmentHeader { sequence, size, nonce, member: self.member };
        file.write_all_at(&header.encode(), 0).doing("write", &path)?;
        file.sync_data().doing("sync", &path)?;
        self.disk.rename(&name, &file_name(sequence)).doing("rename", &path)?;
        self.disk.sync_dir().doing("sync", self.disk.dir())?;
        Ok(Arc::new(Segment::new(&*self.disk, header, file)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panics under this lock")
    }
}

impl State {
    fn job(&mut self) -> Option<Job> {
        if !self.retired.is_empty() {
            return Some(Job::Retire(std::mem::take(&mut self.retired)));
        }
        if self.making || self.blocked.is_some() || self.closing {
            return None;
        }
        let sequence = self.wanted.take()?;
        self.making = true;
        Some(Job::Make { sequence, spare: self.spares.pop_front() })
    }
}

fn zero_fill(file: &dyn DiskFile, size: u64, give_up: impl Fn() -> bool) -> io::Result<()> {
    let zeros = vec![0; ZERO_STEP];
    let mut at = 0;
    while at < size {
        if give_up() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let step = (size - at).min(ZERO_STEP as u64);
        file.write_all_at(&zeros[..step as usize], at)?;
        file.sync_data()?;
        at += step;
    }
    Ok(())
}

fn spare_name(sequence: u64) -> String {
    format!("{SPARE_PREFIX}{sequence:016x}")
}

/// A released segment, to be recycled.
pub(crate) fn is_spare_name(name: &str) -> bool {
    name.starts_with(SPARE_PREFIX)
}

/// That, or a segment whose making was interrupted.
pub(crate) fn is_leftover_name(name: &str) -> bool {
    is_spare_name(name) || name.starts_with(NEW_PREFIX)
}

const SPARE_PREFIX: &str = "spare-";
const NEW_PREFIX: &str = "new-";
