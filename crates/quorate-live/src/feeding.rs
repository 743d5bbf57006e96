//! Committed entries on their way to the layer above, in log order. What that is to see of them is `Feed`'s to say
//! (quorate-group).
//!
//! A thread of its own feeds them. Where they are few and brief, the receiver that has just heard that they are
//! committed feeds them in passing: waking that thread would take longer, and cost more.
//!
//! Invariants:
//! - an entry is applied once, after all before it, and only when it is committed. This member's disk may be the last
//!   one to have it: a snapshot of it is saved only after that ([`crate::core::Snapshots::next`]);
//! - one thread at a time feeds, the one that holds the lock, and looks again after it has let go: so what another
//!   found it busy with does not stay;
//! - a receiver is never kept by more than a moment's work, nor by a disk: by no snapshot, no change of the view, and
//!   nothing that the layer above does not call brief ([`StateMachine::is_brief`]);
//! - after an error, or a panic on whatever thread, nothing more is fed. The layer above is let go of outside of the
//!   lock: it may hold what closes the group.
//!
//! Lock order: this one, then the machine's.

use crate::core::Core;
use crate::host::{KeptLog, StateMachine};
use parking_lot::{Mutex, MutexGuard};
use quorate_consensus::{Entry, EntryKind, Index};
use quorate_group::{Committed, Content, Feed, FeedError, Input, LogLevel, Note, Noted};
use quorate_wal::ReadError;
use std::error::Error;

/// Bytes of entries read at once.
const READ_BYTES: usize = 4 << 20;
/// A moment's work: so many entries at most, of so much data together. Its keys are part of that.
const MOMENT_ENTRIES: Index = 16;
const MOMENT_BYTES: usize = 32 << 10;

/// Where this member's disk does not give back what it was given.
const UNREAD: &str = "Restart its server. If that fails again, and other members run, empty its log directory (keep a copy): \
                    it then rejoins as a new member by state transfer";

type Fed = Result<(), FeedError>;

/// `None`: not begun, or over.
type Slot = Mutex<Option<Box<Feeder>>>;

#[derive(Default)]
pub(crate) struct Feeding {
    feeder: Slot,
}

pub(crate) struct Feeder {
    machine: Box<dyn StateMachine>,
    feed: Feed,
    /// The database above has more than the log, as the group was told.
    unlogged: bool,
    /// Room for what is read.
    entries: Vec<Entry>,
}

impl Feeding {
    /// With the state that `feed` goes on from already in `machine`; `unlogged`: the log does not reach the database.
    pub fn begin(&self, machine: Box<dyn StateMachine>, feed: Feed, unlogged: bool) {
        let entries = Vec::new();
        *self.feeder.lock() = Some(Box::new(Feeder { machine, feed, unlogged, entries }));
    }

    /// Has the one who feeds do `work`; false if that is over.
    pub fn with(&self, core: &Core, work: impl FnOnce(&mut Feeder) -> Fed) -> bool {
        self.work(|feeder| Some(feeder.lock()), core, work) == Some(true)
    }

    /// The first index that the layer above still needs, or will; `None`: somebody feeds at this moment, or nobody any
    /// more.
    pub fn needs_from(&self, core: &Core) -> Option<Index> {
        let mut slot = self.feeder.try_lock()?;
        // What it has not been fed yet it may need when this is looked at.
        let needs = |feeder: &mut Box<Feeder>| {
            feeder.machine.needs_from().min(feeder.feed.position().index + 1)
        };
        let needed = slot.as_mut().map(needs);
        drop(slot);
        // A receiver may have found it busy with this.
        let gate = &core.hands().gate;
        if gate.waits() {
            gate.wake();
        }
        needed
    }

    pub fn end(&self) {
        let ended = self.feeder.lock().take();
        drop(ended);
    }

    /// What was just found to be committed: fed here, or left to the feeder's thread.
    pub fn in_passing(&self, core: &Core) {
        let gate = &core.hands().gate;
        if !gate.waits() {
            return;
        }
        let mut fed = false;
        let goes_on = self.work(Mutex::try_lock, core, |feeder| {
            fed = feeder.feed_a_moment(core)?;
            Ok(())
        });
        // Whoever held it looks again.
        if goes_on == Some(true) && (!fed || gate.waits()) {
            gate.wake();
        }
    }

    /// `None`: another thread feeds; false: that is over.
    fn work<'a>(
        &'a self,
        lock: impl FnOnce(&'a Slot) -> Option<MutexGuard<'a, Option<Box<Feeder>>>>,
        core: &Core,
        work: impl FnOnce(&mut Feeder) -> Fed,
    ) -> Option<bool> {
        // Declared first, so let go of last, in a panic too: it does not come back then.
        let mut taken;
        let mut slot = lock(&self.feeder)?;
        taken = slot.take();
        let Some(feeder) = &mut taken else { return Some(false) };
        match work(feeder) {
            Ok(()) => *slot = taken,
            Err(stop) => {
                let (node, index) = (&core.hands().node, feeder.feed.position().index);
                let notices = &core.hands().notices;
                let told = format!("node {node} cannot go on after log index {index}: ");
                match stop {
                    FeedError::Fault(reason) => notices.stuck(told + &reason),
                    // As others may be unable to read it, too, this member stays one: if all took leave, the last one
                    // would be the group.
                    FeedError::Unreadable(reason) => notices.fatal(told + &reason),
                }
                return Some(false);
            }
        }
        Some(true)
    }
}

impl Feeder {
    /// All up to `up_to`, or as much of it as is read at once.
    pub fn feed(&mut self, core: &Core, up_to: Index) -> Fed {
        if self.feed.position().index < up_to {
            self.entries.clear();
            let next = self.feed.position().index + 1;
            match core.hands().wal.read(next, READ_BYTES, &mut self.entries) {
                // That is said, and more to be done about it.
                Ok(()) if self.entries.is_empty() => {
                    let reason = "the log has failed, and did not take the next entry";
                    return Err(FeedError::Unreadable(reason.into()));
                }
                Ok(()) => self.apply_read(core, up_to)?,
                // Only a snapshot from the leader takes away what was not applied.
                Err(ReadError::Purged { .. }) if core.hands().gate.install_waits() => return Ok(()),
                Err(error) => return Err(unread(&error)),
            }
        }
        if self.feed.is_snapshot_due() {
            self.save_snapshot(core);
        }
        Ok(())
    }

    /// All that may be applied; false if that is more than a moment's work, or not in memory: then nothing is.
    fn feed_a_moment(&mut self, core: &Core) -> Result<bool, FeedError> {
        let (next, up_to) = (self.feed.position().index + 1, core.hands().gate.open_to());
        let count = (up_to + 1).saturating_sub(next);
        if count > MOMENT_ENTRIES || self.feed.is_snapshot_due() {
            return Ok(false);
        }
        self.entries.clear();
        let wal = &core.hands().wal;
        wal.read_cached(next..=up_to, MOMENT_BYTES, &mut self.entries);
        let bytes: usize = self.entries.iter().map(|entry| entry.data.len()).sum();
        let mut entries = self.entries.iter();
        let is_brief =
            |entry: &Entry| entry.kind == EntryKind::Data && self.machine.is_brief(&entry.data);
        let whole = self.entries.len() as Index == count && bytes <= MOMENT_BYTES;
        if !whole || !entries.all(is_brief) {
            return Ok(false);
        }
        self.apply_read(core, up_to)?;
        Ok(!self.feed.is_snapshot_due())
    }

    fn apply_read(&mut self, core: &Core, up_to: Index) -> Fed {
        let mut entries = std::mem::take(&mut self.entries);
        for entry in entries.drain(..).take_while(|entry| entry.index <= up_to) {
            self.apply(core, entry)?;
        }
        self.entries = entries;
        Ok(())
    }

    /// Only what must not change meanwhile is done here: the thread that writes snapshots makes bytes of it.
    fn save_snapshot(&mut self, core: &Core) {
        let (outline, machine) = (self.feed.snapshot(), self.machine.freeze());
        let needed = self.machine.needs_from();
        let bytes = core.hands().wal.bytes_from(self.machine.lags_from());
        self.machine.kept(KeptLog { bytes, max: core.hands().log_max });
        core.hands().snapshots.save(outline, machine, needed, core.hands().wal.persisted().index);
    }

    fn apply(&mut self, core: &Core, entry: Entry) -> Fed {
        let (index, kind) = (entry.index, entry.kind);
        if let Some(committed) = self.feed.entry(entry)? {
            if let Committed::View { view, .. } = &committed {
                core.hands().gate.set_view(view.clone());
            }
            self.machine.apply(committed).map_err(|reason| self.feed.unreadable(index, &reason))?;
        }
        self.machine.passed(index);
        self.compare_with_database(core);
        // Before it counts as applied: else it would be looked for in vain.
        if let Some(Noted { index, note, again }) = self.feed.take_noted() {
            if !again {
                *core.hands().notes.lock() = self.feed.notes().clone();
                let what = match &note {
                    Note::Order(_) => "order: noted",
                    Note::Event(_) => "history:",
                };
                core.hands().notices.log(LogLevel::Info, format!("{what} index={index} {note}"));
            }
            core.step(Input::Noted(note.id()));
        }
        core.hands().gate.set_applied(self.feed.position());
        if kind != EntryKind::Data {
            core.step(Input::Applied(self.feed.applied()));
        }
        Ok(())
    }

    /// A majority is not to be given up while the database has what the log has not.
    fn compare_with_database(&mut self, core: &Core) {
        let unlogged = self.machine.is_unlogged(self.unlogged);
        if unlogged != self.unlogged {
            self.unlogged = unlogged;
            core.step(Input::Unlogged(unlogged));
        }
    }

    /// Goes on from a snapshot that a leader sent.
    pub fn install(&mut self, core: &Core, index: Index) -> Fed {
        let loaded = core.hands().snapshots.load(index);
        let (stored, content) = loaded.map_err(|error| unread(&error))?;
        let content =
            Content::decode(content).map_err(|error| FeedError::Unreadable(error.to_string()))?;
        self.machine.restore(index, content.machine).map_err(FeedError::Unreadable)?;
        self.feed.install(stored, content.view, content.notes);
        self.compare_with_database(core);
        self.started(core);
        core.hands()
            .notices
            .log(LogLevel::Info, format!("continuing from the leader's snapshot of {index}"));
        Ok(())
    }

    /// The others may hear where it stands.
    pub fn started(&self, core: &Core) {
        core.step(Input::Unlogged(self.unlogged));
        core.hands().gate.start(self.feed.applied());
        *core.hands().notes.lock() = self.feed.notes().clone();
        core.step(Input::Started(self.feed.applied()));
    }
}

/// It may be the disk, and another start may read it.
fn unread(error: &dyn Error) -> FeedError {
    FeedError::Fault(format!("{error}. {UNREAD}"))
}
