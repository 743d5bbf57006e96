//! The log disk of one member: writes queue up, a sync makes a prefix of them durable, a crash
//! loses the rest. Reports of syncs are a queue of their own and may arrive late; when they do,
//! they count the truncations handed over meanwhile (see `Event::Persisted`).

use quorate_consensus::{
    Config, Effects, Entry, EntryKind, HardState, Index, LogPosition, Restored, SnapshotMeta,
};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Write {
    Reset(SnapshotMeta),
    Truncate(Index),
    Append(Entry),
}

/// A log as one sees it at one moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub snapshot: SnapshotMeta,
    pub entries: Vec<Entry>,
}

#[derive(Default)]
pub struct Disk {
    pub hard_state: HardState,
    /// What a reader sees: everything written.
    pub written: View,
    /// What a crash leaves.
    pub durable: View,
    queue: VecDeque<Write>,
    /// Ends of syncs that the core has not heard of.
    reports: VecDeque<Index>,
}

impl View {
    pub fn last(&self) -> LogPosition {
        self.entries.last().map_or(self.snapshot.last, Entry::position)
    }

    pub fn get(&self, index: Index) -> Option<&Entry> {
        let at = index.checked_sub(self.snapshot.last.index + 1)?;
        self.entries.get(at as usize)
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Reset(meta) => *self = View { snapshot: meta.clone(), entries: Vec::new() },
            Write::Truncate(from) => {
                assert!(*from > self.snapshot.last.index, "truncation below the base");
                self.entries.retain(|entry| entry.index < *from);
            }
            Write::Append(entry) => {
                assert_eq!(entry.index, self.last().index + 1, "hole in the log");
                assert!(entry.term >= self.last().term, "terms go back");
                self.entries.push(entry.clone());
            }
        }
    }

    fn compact(&mut self, upto: LogPosition) {
        let config = config_at(self, upto.index);
        self.entries.retain(|entry| entry.index > upto.index);
        self.snapshot = SnapshotMeta { last: upto, config };
    }
}

/// The configuration in force at `index`.
pub fn config_at(view: &View, index: Index) -> Config {
    let mut entries = view.entries.iter().rev();
    let latest = entries.find(|entry| entry.index <= index && entry.kind == EntryKind::Config);
    latest.map_or_else(
        || view.snapshot.config.clone(),
        |entry| Config::decode(&entry.data).expect("a Config entry that was accepted"),
    )
}

impl Disk {
    pub fn new(config: Config) -> Self {
        let snapshot = SnapshotMeta { last: LogPosition::default(), config };
        let view = View { snapshot, entries: Vec::new() };
        Self { written: view.clone(), durable: view, ..Self::default() }
    }

    /// Takes what the core wants written; the term file is written at once.
    pub fn write(&mut self, effects: &Effects) {
        if let Some(hard_state) = effects.hard_state {
            assert!(hard_state.term >= self.hard_state.term, "the term goes back");
            self.hard_state = hard_state;
        }
        let reset = effects.reset_log.iter().cloned().map(Write::Reset);
        let truncate = effects.truncate_from.into_iter().map(Write::Truncate);
        let append = effects.append.iter().cloned().map(Write::Append);
        for write in reset.chain(truncate).chain(append) {
            self.written.apply(&write);
            self.queue.push_back(write);
        }
    }

    pub fn unsynced(&self) -> usize {
        self.queue.len()
    }

    /// Makes the first `count` queued writes durable and queues the report.
    pub fn sync(&mut self, count: usize) {
        if self.flush(count) > 0 {
            self.reports.push_back(self.durable.last().index);
        }
    }

    pub fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// The next report as it is due now: the part of that sync that was not taken back since.
    pub fn next_report(&mut self) -> Option<LogPosition> {
        let index = self.reports.pop_front()?.min(self.persisted());
        let base = self.written.snapshot.last;
        let entry = self.written.get(index).map(Entry::position);
        Some(entry.unwrap_or(if index == base.index { base } else { LogPosition::default() }))
    }

    /// Up to where the log as written is on disk: nothing that waits to be written takes it back.
    pub fn persisted(&self) -> Index {
        self.queue.iter().fold(self.durable.last().index, |index, write| match write {
            Write::Reset(_) => 0,
            Write::Truncate(from) => index.min(from - 1),
            Write::Append(_) => index,
        })
    }

    fn flush(&mut self, count: usize) -> usize {
        let writes: Vec<Write> = self.queue.drain(..count.min(self.queue.len())).collect();
        writes.iter().for_each(|write| self.durable.apply(write));
        writes.len()
    }

    /// The process dies. The first `reached` queued writes happen to be on the disk all the same.
    pub fn crash(&mut self, reached: usize) {
        self.flush(reached);
        self.queue.clear();
        self.reports.clear();
        self.written = self.durable.clone();
    }

    /// Purges up to `upto`, which must be durable.
    pub fn compact(&mut self, upto: LogPosition) {
        if upto.index > self.written.snapshot.last.index {
            self.written.compact(upto);
            self.durable.compact(upto);
        }
    }

    pub fn restored(&self, commit: Index) -> Restored {
        let view = &self.durable;
        let mut restored = Restored {
            hard_state: self.hard_state,
            snapshot: view.snapshot.clone(),
            last: view.last(),
            commit,
            ..Restored::default()
        };
        for entry in &view.entries {
            if restored.term_runs.last().is_none_or(|(_, term)| *term != entry.term) {
                restored.term_runs.push((entry.index, entry.term));
            }
            if entry.kind == EntryKind::Config {
                let config = Config::decode(&entry.data).expect("a Config entry that was accepted");
                restored.configs.push((entry.index, config));
            }
        }
        restored
    }
}
