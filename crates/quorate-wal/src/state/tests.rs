//! What `persisted` claims, against the disk as it is: it must be exact, since the consensus core
//! acknowledges whatever it is told (`quorate_consensus::Event::Persisted`).

use super::*;
use bytes::Bytes;
use quorate_consensus::EntryKind;

/// An entry; `copy` tells apart what index and term do not.
fn entry(index: Index, term: Term, copy: u64) -> Entry {
    let data = Bytes::copy_from_slice(&copy.to_le_bytes());
    Entry::new(index, term, EntryKind::Data, data)
}

/// A state, the batch of its writer, and what a power cut would leave.
struct Rig {
    state: State,
    batch: VecDeque<Op>,
    written: LogPosition,
    durable: Vec<Entry>,
    durable_base: LogPosition,
}

impl Rig {
    fn new() -> Self {
        let start = LogPosition::default();
        let state = State::new(
            start,
            start,
            TermRuns::default(),
            SparseIndex::default(),
            Place::default(),
            1 << 20,
        );
        let (batch, durable) = Default::default();
        Rig { state, batch, written: start, durable, durable_base: start }
    }

    fn begin_sync(&mut self) {
        self.state.take_queue(&mut self.batch);
    }

    /// The sync returns.
    fn end_sync(&mut self) -> Option<LogPosition> {
        for op in self.batch.drain(..) {
            match op {
                Op::Append(entry) => {
                    self.written = entry.position();
                    self.durable.push(entry);
                }
                Op::Truncate(last) => {
                    self.written = last;
                    self.durable.retain(|entry| entry.index <= last.index);
                }
                Op::Mark => unreachable!("only the writer puts marks"),
                Op::Reset(base) => {
                    self.written = base;
                    self.durable.clear();
                    self.durable_base = base;
                }
            }
        }
        self.state.batch_synced(self.written, Place::default(), std::iter::empty())
    }

    /// The entries of the log as queued: the cache is large enough to hold them all.
    fn log(&self) -> Vec<Entry> {
        let mut log = Vec::new();
        if let Some(first) = self.state.cache.first_index() {
            self.state.cache.read(first, usize::MAX, &mut log);
        }
        log
    }

    /// Everything that counts as persisted is on disk, in the very copy that is in the log.
    fn check(&self) {
        let State { persisted, last, base, .. } = self.state;
        assert!(persisted.index <= last.index);
        for entry in self.log().iter().filter(|entry| entry.index <= persisted.index) {
            assert!(self.durable.contains(entry), "{persisted:?} does not cover {entry:?}");
        }
        if persisted.index > 0 {
            assert_eq!(self.durable_base, base, "a reset is under way");
            assert_eq!(self.state.term_at(persisted.index), Some(persisted.term));
        }
    }
}

#[test]
fn a_sync_under_way_does_not_speak_for_the_same_entries_written_again() {
    let mut rig = Rig::new();
    rig.state.append(&[entry(1, 1, 0), entry(2, 1, 0), entry(3, 1, 0)]).unwrap();
    rig.begin_sync();
    // Another leader overwrites 2 and 3, and a third one brings them back, bit for bit.
    rig.state.truncate(2);
    rig.state.append(&[entry(2, 2, 0)]).unwrap();
    rig.state.truncate(2);
    rig.state.append(&[entry(2, 1, 0), entry(3, 1, 0)]).unwrap();
    let only_the_first = LogPosition { term: 1, index: 1 };
    assert_eq!(rig.end_sync(), Some(only_the_first));
    assert_eq!(rig.state.persisted, only_the_first);
    rig.begin_sync();
    assert_eq!(rig.state.persisted, only_the_first);
    assert_eq!(rig.end_sync(), Some(LogPosition { term: 1, index: 3 }));
}

#[test]
fn a_truncation_takes_back_what_was_reported() {
    let mut rig = Rig::new();
    rig.state.append(&[entry(1, 1, 0), entry(2, 1, 0)]).unwrap();
    rig.begin_sync();
    rig.end_sync();
    rig.state.truncate(2);
    rig.state.append(&[entry(2, 1, 0)]).unwrap();
    assert_eq!(rig.state.persisted.index, 1);
    rig.begin_sync();
    rig.end_sync();
    assert_eq!(rig.state.persisted.index, 2);
}

#[test]
fn nothing_is_persisted_while_a_reset_is_under_way() {
    let mut rig = Rig::new();
    let base = LogPosition { term: 1, index: 1 };
    rig.state.append(&[entry(1, 1, 0), entry(2, 1, 0)]).unwrap();
    rig.begin_sync();
    rig.state.reset(base);
    rig.state.append(&[entry(2, 1, 0)]).unwrap();
    assert_eq!(rig.end_sync(), None);
    assert_eq!(rig.state.persisted, LogPosition::default());
    rig.begin_sync();
    rig.state.truncate(2);
    rig.state.append(&[entry(2, 1, 0)]).unwrap();
    assert_eq!(rig.end_sync(), Some(base));
}

#[test]
fn persisted_is_exact_in_any_history() {
    for seed in 0..500 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut rig = Rig::new();
        let mut syncing = false;
        for copy in 0..200 {
            let last = rig.state.last;
            match rng.u32(0..20) {
                0..=8 => {
                    // Few terms, so that entries come back with the same index and term.
                    let term = last.term.max(rng.u64(1..4));
                    rig.state.append(&[entry(last.index + 1, term, copy)]).unwrap();
                }
                9..=12 => rig.state.truncate(rng.u64(1..=last.index + 1)),
                13 => {
                    let index = rng.u64(0..=last.index + 2);
                    rig.state.reset(LogPosition { term: rng.u64(1..3), index });
                }
                14..=16 if !syncing => {
                    rig.begin_sync();
                    syncing = true;
                }
                _ if syncing => {
                    rig.end_sync();
                    syncing = false;
                }
                _ => {}
            }
            rig.check();
        }
        if syncing {
            rig.end_sync();
        }
        rig.begin_sync();
        rig.end_sync();
        rig.check();
        assert_eq!(rig.state.persisted, rig.state.last, "seed {seed}: all is on disk");
    }
}
