//! Committed entries in log order, as the layer above is to see them: the pure half of whoever feeds
//! a state machine.
//!
//! Invariant: view, configuration and position after an index are the same on every member that got
//! there, by entries or by a snapshot.

use crate::error::{memory_fault, unreadable};
use crate::input::Applied;
use crate::snapshot::Content;
use crate::view::View;
use bytes::Bytes;
use quorate_consensus::{
    level, Config, Entry, EntryKind, Index, Level, LogPosition, Primaries, SnapshotMeta, Term,
};

/// What an entry is counted for beside its data when the growth of the log is estimated.
const ENTRY_OVERHEAD: u64 = 64;

/// A committed entry for the layer above. `Noop` and `Config` entries are not shown. Everything in
/// it follows from the log.
#[derive(Clone, Debug)]
pub enum Committed {
    Data {
        index: Index,
        data: Bytes,
        /// With a single primary, by the rules in force at this place of the log: the term of the
        /// leader that made the entry.
        primary_term: Option<Term>,
    },
    View {
        index: Index,
        view: View,
    },
}

#[derive(Clone, Debug)]
pub struct Feed {
    /// Names this member in errors.
    node: String,
    applied: LogPosition,
    config: Config,
    view: View,
    /// The highest that this member knows.
    level: Level,
    /// Bytes of log since the last snapshot.
    grown: u64,
    segment_bytes: u64,
}

impl Feed {
    /// After the state of `meta` (default: the empty state before index 1).
    pub fn new(
        node: &str,
        level: Level,
        segment_bytes: u64,
        meta: SnapshotMeta,
        view: View,
    ) -> Self {
        let (node, applied, config) = (node.to_owned(), meta.last, meta.config);
        Self { node, applied, config, view, level, grown: 0, segment_bytes }
    }

    /// The next entry: what the state machine is to see of it. `Err`: the state machine can see
    /// nothing more. What cannot be read is not passed over: others may be able to read it.
    pub fn entry(&mut self, entry: Entry) -> Result<Option<Committed>, String> {
        let index = entry.index;
        if index != self.applied.index + 1 {
            return Err(format!("the log gave index {index} next (a bug)"));
        }
        if !entry.is_intact() {
            return Err(memory_fault(&self.node, &format!("log index {index}")));
        }
        let position = entry.position();
        let stop = |reason: String| unreadable(&self.node, index, &reason);
        self.grown += entry.data.len() as u64 + ENTRY_OVERHEAD;
        let committed = match entry.kind {
            EntryKind::Noop => None,
            EntryKind::Config => {
                let config = Config::decode_up_to(self.level, &entry.data);
                self.config = config.map_err(|error| stop(error.to_string()))?;
                None
            }
            EntryKind::Data => {
                let single = self.config.rules.primaries == Primaries::Single;
                let primary_term = single.then_some(entry.term);
                Some(Committed::Data { index, data: entry.data, primary_term })
            }
            EntryKind::View => {
                let next = self.view.advance(&entry.data, &self.config);
                next.map_err(|error| stop(error.to_string()))?.map(|view| {
                    self.view = view.clone();
                    Committed::View { index, view }
                })
            }
            EntryKind::Unknown(kind) => {
                let upgrade = level::upgrade(self.level + 1);
                return Err(stop(format!("it is of kind {kind}; {upgrade}")));
            }
        };
        self.applied = position;
        Ok(committed)
    }

    /// The state machine cannot read an entry that it was given: why this member stops.
    pub fn unreadable(&self, index: Index, reason: &str) -> String {
        unreadable(&self.node, index, reason)
    }

    /// Whether the log has grown by so much that the state is to be saved. Not in the middle of a change
    /// of members, which is over with the next entry or so: where those are that only decide until then
    /// stands in the configuration before, and a snapshot has but one.
    pub fn is_snapshot_due(&self) -> bool {
        self.grown >= self.segment_bytes && !self.config.is_joint()
    }

    /// The snapshot of here, where the state machine's is `machine`.
    pub fn snapshot(&mut self, machine: Bytes) -> (SnapshotMeta, Bytes) {
        self.grown = 0;
        let content = Content { view: self.view.clone(), machine };
        (SnapshotMeta { last: self.applied, config: self.config.clone() }, content.encode())
    }

    /// Goes on after a snapshot of this, whose content the state machine has.
    pub fn install(&mut self, meta: SnapshotMeta, view: View) {
        *self = Self::new(&self.node, self.level, self.segment_bytes, meta, view);
    }

    pub fn applied(&self) -> Applied {
        Applied { last: self.applied, view: self.view.clone() }
    }

    pub fn position(&self) -> LogPosition {
        self.applied
    }

    pub fn view(&self) -> &View {
        &self.view
    }
}
