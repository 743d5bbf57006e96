//! Thousands of random histories on a disk that dies at a random operation.
//!
//! The log is one stream of operations (entries, truncations, resets), written strictly forward.
//! So what a start finds must be exactly what some prefix of the stream adds up to, and that prefix
//! must hold at least everything that was reported as synced. Each history is run twice: in the clear, and
//! encrypted, with the same key at each start or with others.

use crate::disk::sim::{Crash, Faults, SimDisk};
use crate::disk::Disk;
use crate::error::WalError;
use crate::options::{Recovered, WalOptions};
use crate::recycler;
use crate::seal::DiskKeys;
use crate::shared::Shared;
use crate::writer::{Next, Writer};
use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind, HardState, LogPosition, MemberId};
use std::sync::Arc;

/// By default; `QUORATE_WAL_SEEDS=N` runs so many, `QUORATE_WAL_SEED=N` that one.
const SEEDS: u64 = 1_000;

/// With what the starts of a history encrypt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encryption {
    Off,
    On,
    /// With any of some keys, or not at all: another one at each start.
    Changing,
}

/// What a log holds, by the operations so far.
#[derive(Clone, Default, Debug)]
pub(crate) struct Model {
    base: LogPosition,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Append(Entry),
    Truncate(u64),
    Reset(LogPosition),
}

impl Model {
    pub(crate) fn last(&self) -> LogPosition {
        self.entries.last().map_or(self.base, Entry::position)
    }

    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Append(entry) => self.entries.push(entry.clone()),
            Step::Truncate(from) => self.entries.retain(|e| e.index < *from),
            Step::Reset(base) => *self = Model { base: *base, entries: Vec::new() },
        }
    }

    /// Is this what was found? The found log may begin later: released entries are gone.
    fn explains(&self, found: &Model, released: u64) -> bool {
        let begin = found.base.index;
        let term = match begin.checked_sub(self.base.index) {
            None => return false,
            Some(0) => self.base.term,
            Some(skip) => match self.entries.get(skip as usize - 1) {
                Some(entry) => entry.term,
                None => return false,
            },
        };
        let skip = (begin - self.base.index) as usize;
        (skip == 0 || begin <= released)
            && term == found.base.term
            && self.entries[skip..] == found.entries[..]
    }
}

/// One member's disk through all its lives, and what must be on it.
pub(crate) struct History {
    encryption: Encryption,
    pub(crate) rng: fastrand::Rng,
    pub(crate) disk: Arc<SimDisk>,
    pub(crate) options: WalOptions,
    /// What is certainly on disk.
    pub(crate) synced: Model,
    /// Queued since; the first `taken` of them are with the writer.
    pub(crate) pending: Vec<Step>,
    pub(crate) taken: usize,
    /// Highest index that was released.
    released: u64,
    /// Entries that a crash took away before they were reported: whoever sent them sends them again.
    lost: Vec<Entry>,
    hard_state: HardState,
    /// One more may or may not have reached the disk.
    hard_state_tried: HardState,
    member: Option<MemberId>,
    incarnation: u32,
    term: u64,
}

pub(crate) struct Life {
    pub(crate) shared: Arc<Shared>,
    pub(crate) writer: Writer,
}

impl History {
    pub(crate) fn new(seed: u64, encryption: Encryption) -> Self {
        let options = WalOptions {
            segment_bytes: 16 << 10,
            cache_bytes: 8 << 10,
            retain_bytes: 0,
            keys: keys(encryption == Encryption::On),
            ..WalOptions::new("/sim")
        };
        History {
            encryption,
            rng: fastrand::Rng::with_seed(seed),
            disk: Arc::new(SimDisk::new(seed)),
            options,
            synced: Model::default(),
            pending: Vec::new(),
            taken: 0,
            released: 0,
            lost: Vec::new(),
            hard_state: HardState::default(),
            hard_state_tried: HardState::default(),
            member: None,
            incarnation: 0,
            term: 1,
        }
    }

    /// The log with everything queued.
    fn queued(&self) -> Model {
        let mut model = self.synced.clone();
        self.pending.iter().for_each(|step| model.apply(step));
        model
    }

    /// Opens, and checks what is found. `None` if the disk died meanwhile.
    pub(crate) fn open(&mut self) -> Option<Life> {
        let disk = self.disk.clone();
        if self.encryption == Encryption::Changing {
            let (own, encrypts) = (self.rng.u8(..3), self.rng.u8(..3) > 0);
            let all = [own, (own + 1) % 3, (own + 2) % 3].map(|key| [key; 32]);
            self.options.keys = DiskKeys::new(&all, encrypts);
        }
        let (shared, writer, recovered) = match Shared::open(disk, self.options.clone(), true) {
            Ok(opened) => opened,
            Err(error) => {
                assert!(self.disk.is_dead(), "a crash alone is never refused: {error}");
                return None;
            }
        };
        let life = Life { shared, writer };
        self.check(&recovered, &life);
        Some(life)
    }

    fn check(&mut self, recovered: &Recovered, life: &Life) {
        assert_eq!(
            *self.member.get_or_insert(recovered.identity.member),
            recovered.identity.member
        );
        assert!(recovered.identity.incarnation > self.incarnation);
        self.incarnation = recovered.identity.incarnation;
        let hard_state = recovered.hard_state;
        let is_ahead = hard_state.term > self.hard_state.term && hard_state.voted_for.is_none();
        assert!(
            is_ahead || hard_state == self.hard_state || hard_state == self.hard_state_tried,
            "{hard_state:?}"
        );
        self.hard_state = hard_state;
        self.hard_state_tried = hard_state;

        let found = Model { base: recovered.base, entries: life.read_all() };
        assert_eq!(found.last(), recovered.last);
        for entry in &found.entries {
            assert_eq!(life.shared.state().term_at(entry.index), Some(entry.term));
        }
        let is_special = |e: &&Entry| !matches!(e.kind, EntryKind::Data | EntryKind::Note);
        let special = found.entries.iter().filter(is_special);
        assert!(special.eq(&recovered.special));

        let mut model = self.synced.clone();
        let mut steps = self.pending.iter();
        while !model.explains(&found, self.released) {
            let step = steps.next().unwrap_or_else(|| {
                panic!(
                    "no prefix explains {:?}..{:?}; synced {:?}..{:?}, then {} steps",
                    found.base,
                    recovered.last,
                    self.synced.base,
                    self.synced.last(),
                    self.pending.len()
                )
            });
            model.apply(step);
        }
        self.lost = steps
            .filter_map(|step| match step {
                Step::Append(entry) => Some(entry.clone()),
                _ => None,
            })
            .collect();
        self.synced = model;
        self.pending.clear();
        self.taken = 0;
    }

    /// Does things until `steps` are done or the log fails.
    pub(crate) fn live(&mut self, life: &mut Life, steps: usize) -> Result<(), Arc<WalError>> {
        for _ in 0..steps {
            match self.rng.u32(..20) {
                0..8 => self.append(life),
                8..14 => self.sync(life)?,
                14 => self.truncate(life),
                15 => {
                    if self.rng.u32(..6) == 0 {
                        self.reset(life);
                    }
                }
                16 => self.release(life),
                17 => {
                    if self.rng.bool() {
                        life.shared.supply.hurry();
                    }
                    if let Some(job) = life.shared.supply.try_job() {
                        recycler::carry_out(&life.shared, job)?;
                    }
                }
                18 => life.writer.mark()?,
                _ => self.vote(life)?,
            }
            self.read_something(life);
        }
        Ok(())
    }

    pub(crate) fn append(&mut self, life: &Life) {
        if self.rng.u32(..5) == 0 {
            self.term += 1;
        }
        let last = self.queued().last();
        if let Some(again) = self.lost.iter().find(|e| e.index == last.index + 1).cloned() {
            if again.term >= last.term && self.rng.bool() {
                self.term = self.term.max(again.term);
                life.shared.state().append(std::slice::from_ref(&again)).unwrap();
                self.pending.push(Step::Append(again));
                return;
            }
        }
        let mut entries = Vec::new();
        for number in 0..self.rng.u64(1..6) {
            let len = match self.rng.u32(..60) {
                0 => self.rng.usize(10_000..40_000),
                1..30 => self.rng.usize(..50),
                _ => self.rng.usize(..3000),
            };
            let fill = self.rng.u8(..);
            let kind = if fill < 32 { EntryKind::Config } else { EntryKind::Data };
            let data = Bytes::from(vec![fill; len]);
            let term = self.term.max(last.term);
            entries.push(Entry::new(last.index + 1 + number, term, kind, data));
        }
        life.shared.state().append(&entries).unwrap();
        self.pending.extend(entries.into_iter().map(Step::Append));
    }

    fn truncate(&mut self, life: &Life) {
        let model = self.queued();
        let lowest = model.base.index.max(self.released) + 1;
        if lowest > model.last().index {
            return;
        }
        let from = self.rng.u64(lowest..=model.last().index);
        life.shared.state().truncate(from);
        self.pending.push(Step::Truncate(from));
        self.term += 1;
    }

    fn reset(&mut self, life: &Life) {
        let last = self.queued().last();
        self.term += 1;
        let base = LogPosition { term: self.term, index: last.index + self.rng.u64(..50) };
        life.shared.state().reset(base);
        self.pending.truncate(self.taken);
        self.pending.push(Step::Reset(base));
    }

    fn release(&mut self, life: &Life) {
        let upto = life.shared.state().persisted.index;
        let options = &self.options;
        let released = life.shared.state().release(upto, upto, options, self.disk.now());
        if let Some(released) = released {
            assert!(released.base.index <= upto);
            self.released = self.released.max(released.base.index);
            life.shared.supply.retire(released);
        }
    }

    fn vote(&mut self, life: &Life) -> Result<(), Arc<WalError>> {
        let voted_for = self.rng.bool().then(|| MemberId(self.rng.u128(..)));
        self.hard_state_tried = HardState { term: self.term, voted_for };
        life.shared.save_meta(|meta| meta.hard_state = self.hard_state_tried)?;
        self.hard_state = self.hard_state_tried;
        Ok(())
    }

    fn sync(&mut self, life: &mut Life) -> Result<(), Arc<WalError>> {
        self.taken = self.pending.len();
        let reported = life.writer.write_batch()?;
        if life.writer.next() == Next::Full {
            return Ok(());
        }
        let steps: Vec<_> = self.pending.drain(..).collect();
        self.taken = 0;
        steps.iter().for_each(|step| self.synced.apply(step));
        if !steps.is_empty() {
            assert_eq!(reported, Some(self.synced.last()));
        }
        Ok(())
    }

    fn read_something(&mut self, life: &Life) {
        let model = self.queued();
        let base = life.shared.state().base;
        assert_eq!(life.shared.state().last, model.last());
        if base.index < model.last().index {
            let from = self.rng.u64(base.index + 1..=model.last().index);
            let mut out = Vec::new();
            life.shared.read(from, self.rng.usize(..20_000), &mut out).unwrap();
            assert!(!out.is_empty());
            let at = (from - model.base.index - 1) as usize;
            assert_eq!(out[..], model.entries[at..at + out.len()]);
        }
    }

    pub(crate) fn crash(&mut self) {
        let crash = if self.rng.u32(..4) == 0 { Crash::Kill } else { Crash::Power };
        self.disk = Arc::new(self.disk.crash(crash));
    }
}

impl Life {
    pub(crate) fn read_all(&self) -> Vec<Entry> {
        let (base, last) = {
            let state = self.shared.state();
            (state.base.index, state.last.index)
        };
        let mut all = Vec::new();
        while base + (all.len() as u64) < last {
            let before = all.len();
            self.shared.read(base + all.len() as u64 + 1, 20_000, &mut all).unwrap();
            assert!(all.len() > before);
        }
        all
    }
}

/// Each seed in the clear and encrypted.
pub(crate) fn histories() -> impl Iterator<Item = (u64, Encryption)> {
    seeds().flat_map(|seed| {
        let encrypted = if seed % 2 == 0 { Encryption::On } else { Encryption::Changing };
        [(seed, Encryption::Off), (seed, encrypted)]
    })
}

/// Files of [`Encryption::On`] and [`Encryption::Off`].
pub(crate) fn keys(encrypts: bool) -> DiskKeys {
    DiskKeys::new(&[[1; 32]], encrypts)
}

pub(crate) fn seeds() -> impl Iterator<Item = u64> {
    let one = std::env::var("QUORATE_WAL_SEED").ok().map(|s| s.parse().expect("a number"));
    let many = std::env::var("QUORATE_WAL_SEEDS").ok().map(|s| s.parse().expect("a number"));
    let range = one.map_or(0..many.unwrap_or(SEEDS), |seed| seed..seed + 1);
    range.inspect(|seed| println!("seed {seed}"))
}

#[test]
fn whatever_was_reported_survives_crashes_at_any_operation() {
    for (seed, encryption) in histories() {
        let mut history = History::new(seed, encryption);
        for _ in 0..4 {
            let dies_after = Some(history.rng.u64(..250));
            history.disk.inject(Faults { dies_after, ..Faults::default() });
            if let Some(mut life) = history.open() {
                let steps = history.rng.usize(..60);
                if let Err(error) = history.live(&mut life, steps) {
                    assert!(history.disk.is_dead(), "{error}");
                }
            }
            history.crash();
        }
        history.open().expect("nothing is wrong now");
    }
}

#[test]
fn a_failed_sync_is_final_and_costs_nothing_reported() {
    for (seed, encryption) in histories() {
        let mut history = History::new(seed, encryption);
        for _ in 0..3 {
            let sync_fails_after = Some(history.rng.u64(20..80));
            let mut life = history.open().expect("the syncs of an open work");
            history.disk.inject(Faults { sync_fails_after, ..Faults::default() });
            let outcome = history.live(&mut life, 100);
            if let Err(error) = outcome {
                assert!(error.to_string().contains("/sim/"), "{error}");
                assert!(life.shared.save_meta(|meta| meta.hard_state.term += 1).is_err());
            }
            history.crash();
        }
        history.open().expect("nothing is wrong now");
    }
}
