//! The disk of one member, and what a crash leaves of it.
//!
//! Invariant: `durable` changes only when a sync returns, when a crash lets a prefix of the batch
//! under way survive, or when a restart repairs the log; `live` is `durable` with every operation
//! in `ops` applied.

use crate::rng::Rng;
use quorate_consensus::{Config, Entry, EntryKind, HardState, Index, LogPosition, Term};
use std::collections::VecDeque;
use std::rc::Rc;

/// The content of a log: entries after `base`.
#[derive(Clone, Debug)]
pub struct LogImage {
    pub base: LogPosition,
    /// The membership in force at `base`.
    base_config: Rc<Config>,
    entries: Vec<Entry>,
    /// The Config entries among `entries`.
    configs: Vec<(Index, Rc<Config>)>,
}

/// A state-machine snapshot, durable as a whole or not there.
#[derive(Debug)]
pub struct Snapshot {
    pub last: LogPosition,
    pub config: Rc<Config>,
    pub state: Vec<u8>,
}

/// What was handed to the log and is not yet known to be on disk, an entry a piece.
#[derive(Debug)]
enum Op {
    Append(Entry),
    Truncate(Index),
    Reset(LogPosition, Rc<Config>),
}

#[derive(Debug)]
pub struct Disk {
    pub live: LogImage,
    pub durable: LogImage,
    pub hard: HardState,
    /// With the planted bug: what was last really written, before `hard`.
    pub hard_stale: Option<HardState>,
    pub snapshot: Option<Rc<Snapshot>>,
    /// A commit index recorded beside the log now and then.
    pub commit_hint: Index,
    /// A sync failed: nothing reaches this disk until it is repaired.
    pub failed: bool,
    ops: VecDeque<Op>,
    /// The first so many of `ops` are being written.
    in_flight: usize,
    /// With the planted bug: what the last truncation cut off.
    cut: Option<Vec<Entry>>,
}

impl LogImage {
    pub fn new(config: Rc<Config>) -> Self {
        LogImage {
            base: LogPosition::default(),
            base_config: config,
            entries: Vec::new(),
            configs: Vec::new(),
        }
    }

    pub fn last(&self) -> LogPosition {
        self.entries.last().map_or(self.base, Entry::position)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn get(&self, index: Index) -> Option<&Entry> {
        self.entries.get(index.checked_sub(self.base.index + 1)? as usize)
    }

    pub fn term_at(&self, index: Index) -> Option<Term> {
        if index == self.base.index {
            return Some(self.base.term);
        }
        self.get(index).map(|e| e.term)
    }

    /// The entry is here, or lies below the base and is thus part of a snapshot.
    pub fn covers(&self, position: LogPosition) -> bool {
        position.index < self.base.index || self.term_at(position.index) == Some(position.term)
    }

    /// The membership in force at the end, and the index of the entry that made it so.
    pub fn config(&self) -> (Index, &Rc<Config>) {
        self.configs.last().map_or((self.base.index, &self.base_config), |(i, c)| (*i, c))
    }

    pub fn config_at(&self, index: Index) -> &Rc<Config> {
        let after = self.configs.partition_point(|(i, _)| *i <= index);
        after.checked_sub(1).map_or(&self.base_config, |at| &self.configs[at].1)
    }

    pub fn base_config(&self) -> &Rc<Config> {
        &self.base_config
    }

    pub fn configs(&self) -> &[(Index, Rc<Config>)] {
        &self.configs
    }

    pub fn append(&mut self, entry: Entry) {
        debug_assert_eq!(entry.index, self.last().index + 1, "a log without holes");
        if entry.kind == EntryKind::Config {
            // Undecodable bytes would be a bug of the leader; the oracle compares the memberships.
            if let Ok(config) = Config::decode(&entry.data) {
                self.configs.push((entry.index, Rc::new(config)));
            }
        }
        self.entries.push(entry);
    }

    pub fn truncate(&mut self, from: Index) {
        let keep = from.saturating_sub(self.base.index + 1) as usize;
        self.entries.truncate(keep);
        while self.configs.last().is_some_and(|(i, _)| *i >= from) {
            self.configs.pop();
        }
    }

    pub fn reset(&mut self, base: LogPosition, config: Rc<Config>) {
        *self = LogImage::new(config);
        self.base = base;
    }

    /// Forgets everything up to `to`, which must be in the log.
    fn compact(&mut self, to: LogPosition, config: &Rc<Config>) {
        let gone = (to.index - self.base.index) as usize;
        self.entries.drain(..gone);
        self.configs.retain(|(i, _)| *i > to.index);
        self.base = to;
        self.base_config = Rc::clone(config);
    }
}

impl Disk {
    pub fn new(config: Rc<Config>) -> Self {
        let image = LogImage::new(config);
        Disk {
            live: image.clone(),
            durable: image,
            hard: HardState::default(),
            hard_stale: None,
            snapshot: None,
            commit_hint: 0,
            failed: false,
            ops: VecDeque::new(),
            in_flight: 0,
            cut: None,
        }
    }

    pub fn append(&mut self, entry: Entry) {
        self.live.append(entry.clone());
        self.ops.push_back(Op::Append(entry));
    }

    pub fn truncate(&mut self, from: Index) {
        self.live.truncate(from);
        self.ops.push_back(Op::Truncate(from));
    }

    pub fn reset(&mut self, base: LogPosition, config: Rc<Config>) {
        self.live.reset(base, Rc::clone(&config));
        self.ops.push_back(Op::Reset(base, config));
    }

    /// Takes everything that waits into one batch. False if there is nothing to write, or a batch
    /// is already under way, or the disk is broken.
    pub fn start_sync(&mut self) -> bool {
        if self.failed || self.in_flight > 0 || self.ops.is_empty() {
            return false;
        }
        self.in_flight = self.ops.len();
        true
    }

    /// The sync returned: the batch is on disk.
    pub fn finish_sync(&mut self) {
        self.write(self.in_flight);
        self.in_flight = 0;
    }

    /// Up to where the log, as handed over so far, is on disk: no operation that waits or is under
    /// way takes it back. What an entry's rewrite replaced does not count for it, though index and
    /// term are the same. 0 while a reset is under way.
    pub fn persisted(&self) -> Index {
        self.ops.iter().fold(self.durable.last().index, |index, op| match op {
            Op::Append(_) => index,
            Op::Truncate(from) => index.min(from - 1),
            Op::Reset(..) => 0,
        })
    }

    /// The process died. Some first part of the batch under way may have reached the disk; a torn
    /// record is cut off by recovery, so only whole entries count. True if the batch was torn.
    pub fn crash(&mut self, rng: &mut Rng) -> bool {
        let survived = rng.below(self.in_flight as u64 + 1) as usize;
        let torn = survived > 0 && survived < self.in_flight;
        self.write(survived);
        self.ops.clear();
        self.in_flight = 0;
        if let Some(stale) = self.hard_stale.take() {
            self.hard = stale;
        }
        if let Some(cut) = &mut self.cut {
            let last = self.durable.last().index;
            if cut.first().is_some_and(|e| e.index <= last + 1) {
                for entry in cut.drain(..).filter(|e| e.index > last) {
                    self.durable.append(entry);
                }
            }
        }
        self.live = self.durable.clone();
        torn
    }

    /// A sync failed: what was handed over since the last one is lost for this process.
    pub fn fail(&mut self) {
        self.failed = true;
        self.in_flight = 0;
    }

    /// What opening the log does before the member starts: where the log does not reach its own
    /// snapshot, or contradicts it, the snapshot is the truth and the log goes on after it.
    pub fn recover(&mut self) {
        self.failed = false;
        if let Some(snapshot) = &self.snapshot {
            if !self.durable.covers(snapshot.last) {
                self.durable.reset(snapshot.last, Rc::clone(&snapshot.config));
            }
        }
        self.live = self.durable.clone();
    }

    /// Forgets the log up to `to` (durable, and part of the snapshot).
    pub fn compact(&mut self, to: LogPosition, config: &Rc<Config>) {
        self.durable.compact(to, config);
        self.live.compact(to, config);
    }

    /// A restart would find the entry, in the log or in the snapshot.
    pub fn keeps(&self, position: LogPosition) -> bool {
        self.durable.covers(position)
            || self.snapshot.as_ref().is_some_and(|s| s.last.index >= position.index)
    }

    /// Whether the log may be compacted to `to`: no operation under way may reach below it.
    pub fn may_compact(&self, to: LogPosition) -> bool {
        let below = |op: &Op| match op {
            Op::Append(entry) => entry.index <= to.index,
            Op::Truncate(from) => *from <= to.index,
            Op::Reset(..) => true,
        };
        to.index > self.live.base.index
            && to.index > self.durable.base.index
            && self.live.term_at(to.index) == Some(to.term)
            && self.durable.term_at(to.index) == Some(to.term)
            && !self.ops.iter().any(below)
    }

    /// Plants the bug of a log whose truncations do not outlive a crash.
    pub fn plant_resurrection(&mut self) {
        self.cut = Some(Vec::new());
    }

    fn write(&mut self, count: usize) {
        for op in self.ops.drain(..count) {
            match op {
                Op::Append(entry) => self.durable.append(entry),
                Op::Truncate(from) => {
                    if let Some(cut) = &mut self.cut {
                        cut.clear();
                        cut.extend(
                            self.durable.entries.iter().filter(|e| e.index >= from).cloned(),
                        );
                    }
                    self.durable.truncate(from);
                }
                Op::Reset(base, config) => self.durable.reset(base, config),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn entry(index: Index, term: Term) -> Entry {
        Entry::new(index, term, EntryKind::Data, Bytes::new())
    }

    fn disk() -> Disk {
        Disk::new(Rc::new(Config::default()))
    }

    #[test]
    fn only_synced_entries_survive_for_sure() {
        let mut disk = disk();
        let mut rng = Rng::new(1);
        disk.append(entry(1, 1));
        assert!(disk.start_sync());
        disk.append(entry(2, 1));
        assert!(!disk.start_sync(), "one batch at a time");
        disk.finish_sync();
        assert_eq!((disk.durable.last().index, disk.persisted()), (1, 1));
        assert_eq!(disk.live.last().index, 2);
        disk.crash(&mut rng);
        assert_eq!(disk.live.last().index, 1, "what was not even in flight is gone");
    }

    #[test]
    fn an_entry_written_again_is_not_on_disk_by_its_first_sync() {
        let mut disk = disk();
        disk.append(entry(1, 1));
        disk.append(entry(2, 1));
        assert!(disk.start_sync());
        disk.truncate(2);
        disk.append(entry(2, 1));
        disk.finish_sync();
        assert_eq!(disk.persisted(), 1);
        assert!(disk.start_sync());
        disk.finish_sync();
        assert_eq!(disk.persisted(), 2);
        disk.reset(LogPosition { term: 3, index: 7 }, Rc::default());
        assert_eq!(disk.persisted(), 0);
        assert!(disk.start_sync());
        disk.finish_sync();
        assert_eq!(disk.persisted(), 7);
    }

    #[test]
    fn a_torn_batch_leaves_a_prefix_of_its_operations() {
        let mut ends = [0; 4];
        for seed in 0..64 {
            let mut disk = disk();
            disk.append(entry(1, 1));
            disk.append(entry(2, 1));
            disk.start_sync();
            disk.finish_sync();
            disk.truncate(2);
            disk.append(entry(2, 2));
            disk.append(entry(3, 2));
            disk.start_sync();
            disk.crash(&mut Rng::new(seed));
            let last = disk.live.last();
            assert!(last.index >= 1 && disk.live.term_at(1) == Some(1));
            ends[match (last.index, last.term) {
                (2, 1) => 0,
                (1, 1) => 1,
                (2, 2) => 2,
                (3, 2) => 3,
                other => panic!("impossible end {other:?}"),
            }] += 1;
        }
        assert!(ends.iter().all(|n| *n > 0), "{ends:?}");
    }

    #[test]
    fn a_log_that_contradicts_its_snapshot_starts_after_it() {
        let mut disk = disk();
        disk.append(entry(1, 1));
        disk.start_sync();
        disk.finish_sync();
        let last = LogPosition { term: 3, index: 5 };
        disk.snapshot =
            Some(Rc::new(Snapshot { last, config: Rc::new(Config::default()), state: vec![] }));
        disk.crash(&mut Rng::new(1));
        disk.recover();
        assert_eq!((disk.live.base, disk.live.last()), (last, last));
    }
}
