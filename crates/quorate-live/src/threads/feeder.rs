//! The one thread that feeds committed entries, in log order, to the layer above. What that is, is
//! `Feed`'s to say (quorate-group).
//!
//! Invariant: an entry is applied once, after all before it, and only when it is committed and on this
//! member's disk.

use crate::core::Next;
use crate::host::{KeptLog, StateMachine};
use crate::live::Live;
use quorate_consensus::{Entry, EntryKind, Index};
use quorate_group::{Committed, Content, Feed, Input, LogLevel, Note, Noted};
use quorate_wal::ReadError;

/// Bytes of entries read at once.
const READ_BYTES: usize = 4 << 20;

pub(crate) struct Feeder {
    machine: Box<dyn StateMachine>,
    feed: Feed,
}

impl Feeder {
    /// With the state that `feed` goes on from already in `machine`.
    pub fn new(machine: Box<dyn StateMachine>, feed: Feed) -> Self {
        Self { machine, feed }
    }

    pub fn run(mut self, live: &Live) {
        self.started(live);
        let mut entries = Vec::new();
        loop {
            let done = match live.hands.gate.next(self.feed.position().index) {
                Next::Stop => return,
                Next::Install(index) => self.install(live, index),
                Next::UpTo(index) => self.feed(live, index, &mut entries),
            };
            if let Err(reason) = done {
                let node = &live.options.name;
                let index = self.feed.position().index;
                live.hands
                    .notices
                    .fatal(format!("node {node} cannot go on after log index {index}: {reason}"));
                return;
            }
        }
    }

    fn feed(&mut self, live: &Live, up_to: Index, entries: &mut Vec<Entry>) -> Result<(), String> {
        entries.clear();
        match live.hands.wal.read(self.feed.position().index + 1, READ_BYTES, entries) {
            Ok(()) => {}
            // Only a snapshot from the leader takes away what was not applied.
            Err(ReadError::Purged { .. }) if live.hands.gate.install_waits() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        for entry in entries.drain(..) {
            if entry.index > up_to {
                break;
            }
            self.apply(live, entry)?;
        }
        if self.feed.is_snapshot_due() {
            let (meta, content) = self.feed.snapshot(self.machine.snapshot());
            let needed = self.machine.needs_from();
            let bytes = live.hands.wal.bytes_from(self.machine.lags_from());
            self.machine.kept(KeptLog { bytes, max: live.hands.log_max });
            live.hands.snapshots.save(meta, content, needed);
        }
        Ok(())
    }

    fn apply(&mut self, live: &Live, entry: Entry) -> Result<(), String> {
        let (index, kind) = (entry.index, entry.kind);
        if let Some(committed) = self.feed.entry(entry)? {
            if let Committed::View { view, .. } = &committed {
                live.hands.gate.set_view(view.clone());
            }
            self.machine.apply(committed).map_err(|reason| self.feed.unreadable(index, &reason))?;
        }
        self.machine.passed(index);
        // Before it counts as applied: else it would be looked for in vain.
        if let Some(Noted { index, note, again }) = self.feed.take_noted() {
            if !again {
                *live.hands.notes.lock() = self.feed.notes().clone();
                let what = match &note {
                    Note::Order(_) => "order: noted",
                    Note::Event(_) => "history:",
                };
                live.log(LogLevel::Info, format!("{what} index={index} {note}"));
            }
            live.step(Input::Noted(note.id()));
        }
        live.hands.gate.set_applied(self.feed.position());
        if kind != EntryKind::Data {
            live.step(Input::Applied(self.feed.applied()));
        }
        Ok(())
    }

    fn install(&mut self, live: &Live, index: Index) -> Result<(), String> {
        let (stored, content) =
            live.hands.snapshots.load(index).map_err(|error| error.to_string())?;
        let content = Content::decode(content).map_err(|error| error.to_string())?;
        self.machine.restore(index, content.machine)?;
        self.feed.install(stored.meta, content.view, content.notes);
        self.started(live);
        live.log(LogLevel::Info, format!("continuing from the leader's snapshot of {index}"));
        Ok(())
    }

    fn started(&self, live: &Live) {
        live.hands.gate.start(self.feed.applied());
        *live.hands.notes.lock() = self.feed.notes().clone();
        live.step(Input::Started(self.feed.applied()));
    }
}
