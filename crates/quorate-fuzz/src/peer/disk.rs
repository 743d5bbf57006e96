//! The log directory of a member, in memory: what is written is read, and what is synced survives.
//!
//! It holds the machine to what a log demands: entries follow each other, terms and votes never go back,
//! and nothing is cut off that the state machine has seen.

use bytes::Bytes;
use quorate_consensus::{Charter, Entry, EntryKind, HardState, Index, LogPosition, MemberId, Term};
use quorate_group::{
    Directory, LogLevel, LogQueue, Opening, Received, SeedAnswer, StartError, Stored,
};
use std::collections::BTreeMap;
use std::convert::Infallible;

#[derive(Default)]
pub struct Disk {
    pub member: MemberId,
    pub incarnation: u32,
    pub group: (u128, Charter),
    pub hard_state: HardState,
    pub base: LogPosition,
    pub entries: Vec<Entry>,
    pub snapshots: BTreeMap<Index, (Stored, Bytes)>,
    /// Up to here all is on disk.
    pub synced: Index,
    /// What the state machine has seen.
    pub fed: Index,
    /// What one of before a crash has, as far as it was on disk.
    pub seen: Index,
    /// From which snapshot it is to go on.
    pub install: Option<Index>,
}

impl Disk {
    pub fn last(&self) -> LogPosition {
        self.entries.last().map_or(self.base, Entry::position)
    }

    pub fn get(&self, index: Index) -> Option<&Entry> {
        let at = index.checked_sub(self.base.index + 1)?;
        self.entries.get(at as usize)
    }

    /// The end of what is on disk, of the log as it is now.
    pub fn persisted(&self) -> LogPosition {
        self.get(self.synced).map_or(self.base, Entry::position)
    }

    /// Entries from here on, at least one; none: they are not in the log any more.
    pub fn fetch(&self, from: Index) -> Vec<Entry> {
        let at = from.checked_sub(self.base.index + 1);
        let rest = at.and_then(|at| self.entries.get(at as usize..)).unwrap_or_default();
        rest.iter().take(8).cloned().collect()
    }

    pub fn store(&mut self, received: &Received, content: Bytes) {
        let stored = Stored { meta: received.meta.clone(), received: true };
        self.snapshots.insert(received.meta.last.index, (stored, content));
    }

    /// Everything up to here may go.
    pub fn release(&mut self, index: Index) -> Option<LogPosition> {
        let upto = self.get(index)?.position();
        assert!(index <= self.fed, "released {index}, seen {}", self.fed);
        self.entries.retain(|entry| entry.index > index);
        self.base = upto;
        self.snapshots.retain(|at, _| *at >= index);
        Some(upto)
    }

    /// What was not synced is gone.
    pub fn crash(&mut self) {
        let synced = self.synced;
        self.seen = self.seen.max(self.fed.min(synced));
        self.entries.retain(|entry| entry.index <= synced);
        (self.fed, self.install) = (0, None);
        self.incarnation += 1;
    }

    pub fn directory(&self) -> Directory {
        let mut term_runs: Vec<(Index, Term)> = Vec::new();
        for entry in &self.entries {
            if term_runs.last().is_none_or(|(_, term)| *term != entry.term) {
                term_runs.push((entry.index, entry.term));
            }
        }
        let special = |entry: &&Entry| entry.kind != EntryKind::Data;
        Directory {
            member: self.member,
            incarnation: self.incarnation,
            group: self.group.0,
            charter: self.group.1,
            hard_state: self.hard_state,
            base: self.base,
            last: self.last(),
            term_runs,
            special: self.entries.iter().filter(special).cloned().collect(),
        }
    }
}

impl LogQueue for Disk {
    type Error = Infallible;

    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), Infallible> {
        assert!(group != 0 && self.group.0 == 0, "one group, for good");
        self.group = (group, charter);
        Ok(())
    }

    fn save_hard_state(&mut self, state: HardState) -> Result<(), Infallible> {
        let HardState { term, voted_for } = self.hard_state;
        assert!(state.term >= term, "the term goes back");
        let kept = state.term > term || voted_for.is_none() || state.voted_for == voted_for;
        assert!(kept, "two votes in term {term}");
        self.hard_state = state;
        Ok(())
    }

    fn install(&mut self, index: Index) {
        assert!(self.snapshots.contains_key(&index), "there is no snapshot of {index}");
        self.install = Some(index);
    }

    fn reset(&mut self, base: LogPosition) {
        assert!(base.index > self.fed, "reset to {base:?}, seen {}", self.fed);
        self.entries.clear();
        (self.base, self.synced) = (base, base.index);
    }

    fn truncate(&mut self, from: Index) {
        let kept = self.base.index.max(self.fed);
        assert!(from > kept, "cut off from {from}, but kept is {kept}");
        self.entries.retain(|entry| entry.index < from);
        self.synced = self.synced.min(from - 1);
    }

    fn append(&mut self, entries: &[Entry]) {
        for entry in entries {
            let last = self.last();
            assert!(entry.index == last.index + 1 && entry.term >= last.term, "{last:?}");
            assert!(entry.is_intact() && entry.term <= self.hard_state.term, "{entry:?}");
            self.entries.push(entry.clone());
        }
    }
}

impl Opening for Disk {
    type Error = StartError;

    fn ask_seed(&mut self, _own: MemberId, _addr: &str) -> SeedAnswer {
        SeedAnswer::Nobody
    }

    fn save_hard_state(&mut self, state: HardState) -> Result<(), StartError> {
        self.hard_state = state;
        Ok(())
    }

    fn write_first(&mut self, entry: &Entry) -> Result<(), StartError> {
        self.entries.push(entry.clone());
        self.synced = entry.index;
        Ok(())
    }

    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), StartError> {
        self.group = (group, charter);
        Ok(())
    }

    fn newest_snapshot(&mut self) -> Result<Option<(Stored, Bytes)>, StartError> {
        Ok(self.snapshots.last_key_value().map(|(_, snapshot)| snapshot.clone()))
    }

    fn remove_snapshot(&mut self, index: Index) -> Result<(), StartError> {
        assert!(self.snapshots.remove(&index).is_some(), "there is no snapshot of {index}");
        Ok(())
    }

    fn reset_log(&mut self, base: LogPosition) -> Result<(), StartError> {
        assert!(base.index >= self.seen, "a start resets to {base:?}, seen {}", self.seen);
        self.entries.clear();
        (self.base, self.synced) = (base, base.index);
        Ok(())
    }

    fn mark_rolled_back(&mut self, _reason: &str) -> Result<(), StartError> {
        Ok(())
    }

    fn log(&mut self, _level: LogLevel, _line: String) {}
}
