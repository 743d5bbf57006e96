//! The one thread that feeds committed entries, in log order, to the layer above.
//!
//! Invariants:
//! - an entry is fed once, after all before it, and only when it is committed and on this
//!   member's disk;
//! - view, configuration and position after an index are the same on every member that got there,
//!   by entries or by a snapshot.

use crate::machine::{Committed, LogLevel, StateMachine};
use crate::member::{memory_fault, Member};
use crate::notices::Notice;
use crate::progress::Feed;
use crate::snapshot::Content;
use crate::view::View;
use quorate_consensus::{Config, Entry, EntryKind, Index, LogPosition, Primaries, SnapshotMeta};
use quorate_wal::ReadError;

/// Bytes of entries read at once.
const READ_BYTES: usize = 4 << 20;
/// What an entry is counted for beside its data when the growth of the log is estimated.
const ENTRY_OVERHEAD: u64 = 64;

pub(crate) struct Sequencer {
    machine: Box<dyn StateMachine>,
    applied: LogPosition,
    config: Config,
    view: View,
    /// Bytes of log since the last snapshot.
    grown: u64,
}

impl Sequencer {
    /// With the state of `meta` (default: the empty state before index 1) already in `machine`.
    pub fn new(machine: Box<dyn StateMachine>, meta: SnapshotMeta, view: View) -> Self {
        Self { machine, applied: meta.last, config: meta.config, view, grown: 0 }
    }

    pub fn run(mut self, member: &Member) {
        self.publish(member);
        member.progress.set_started();
        member.notices.wake();
        let mut entries = Vec::new();
        loop {
            let done = match member.progress.next(self.applied.index) {
                Feed::Stop => return,
                Feed::Install(index) => self.install(member, index),
                Feed::UpTo(fed) => self.feed(member, fed, &mut entries),
            };
            if let Err(reason) = done {
                let node = &member.options.name;
                let index = self.applied.index;
                member.notices.push(Notice::Fatal(format!(
                    "node {node} cannot go on after log index {index}: {reason}"
                )));
                return;
            }
        }
    }

    fn feed(
        &mut self,
        member: &Member,
        fed: Index,
        entries: &mut Vec<Entry>,
    ) -> Result<(), String> {
        entries.clear();
        match member.wal.read(self.applied.index + 1, READ_BYTES, entries) {
            Ok(()) => {}
            // Only a snapshot from the leader takes away what was not applied.
            Err(ReadError::Purged { .. }) if member.progress.install_waits() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        for entry in entries.drain(..) {
            if entry.index > fed {
                break;
            }
            if entry.index != self.applied.index + 1 {
                return Err(format!("the log gave index {} next (a bug)", entry.index));
            }
            if !entry.is_intact() {
                let what = format!("log index {}", entry.index);
                return Err(memory_fault(&member.options.name, &what));
            }
            self.apply(member, entry);
        }
        if self.grown >= member.options.segment_bytes {
            self.snapshot(member);
        }
        Ok(())
    }

    fn apply(&mut self, member: &Member, entry: Entry) {
        self.applied = entry.position();
        self.grown += entry.data.len() as u64 + ENTRY_OVERHEAD;
        let index = entry.index;
        match entry.kind {
            EntryKind::Noop => {}
            EntryKind::Config => match Config::decode(&entry.data) {
                Ok(config) => self.config = config,
                Err(error) => member.log(LogLevel::Error, format!("log index {index}: {error}")),
            },
            EntryKind::Data => {
                let single = self.config.rules.primaries == Primaries::Single;
                let primary_term = single.then_some(entry.term);
                self.machine.apply(Committed::Data { index, data: entry.data, primary_term });
            }
            EntryKind::View => {
                if let Some(view) = self.view.advance(&entry.data, &self.config) {
                    self.view = view.clone();
                    member.lineage.learn(&view);
                    member.progress.set_view(view.clone());
                    self.machine.apply(Committed::View { index, view });
                }
            }
        }
        self.machine.passed(index);
        member.progress.set_applied(self.applied);
        if entry.kind != EntryKind::Data {
            member.notices.wake();
        }
    }

    fn snapshot(&mut self, member: &Member) {
        self.grown = 0;
        let content = Content { view: self.view.clone(), machine: self.machine.snapshot() };
        let meta = SnapshotMeta { last: self.applied, config: self.config.clone() };
        let needed = self.machine.needs_from();
        member.snapshots.save(meta, content.encode(), needed);
    }

    fn install(&mut self, member: &Member, index: Index) -> Result<(), String> {
        let (stored, content) = member.snapshots.load(index).map_err(|error| error.to_string())?;
        let content = Content::decode(content).map_err(|error| error.to_string())?;
        self.machine.restore(index, content.machine)?;
        self.applied = stored.meta.last;
        self.config = stored.meta.config;
        self.view = content.view;
        self.grown = 0;
        self.publish(member);
        member.log(LogLevel::Info, format!("continuing from the leader's snapshot of {index}"));
        Ok(())
    }

    /// After a start from a snapshot. One that has this process in its view already (it had
    /// joined before the snapshot was taken) is followed by a view for the state machine to see.
    fn publish(&self, member: &Member) {
        member.progress.set_applied(self.applied);
        member.lineage.learn(&self.view);
        member.progress.set_view(self.view.clone());
        let own = (member.id, member.incarnation);
        if self.view.members.iter().any(|each| (each.id, each.incarnation) == own) {
            member.desk.want_view_after(self.view.number);
        }
    }
}
