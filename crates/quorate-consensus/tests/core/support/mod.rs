//! A member with its disk, driven by hand: shared by the scenario, property and oracle tests.

pub mod disk;

use disk::Disk;
use quorate_consensus::{
    Config, Consensus, Effects, Event, Fetch, Index, MemberId, MemberInfo, MemberRole, Message,
    Options, ReadReady, SnapshotMeta, StepError,
};

/// One process: the core, its disk, and what it wants done by others.
pub struct Member {
    pub id: MemberId,
    pub options: Options,
    pub core: Option<Consensus>,
    pub disk: Disk,
    /// The highest commit index it told its driver.
    pub commit: Index,
    /// Up to where the layer above has seen the log, in whatever life.
    pub shown: Index,
    pub outbox: Vec<Message>,
    pub reads: Vec<ReadReady>,
    pub fetches: Vec<Fetch>,
    pub snapshots: Vec<MemberId>,
    pub stepped_down: usize,
    /// The driver records the commit index, and knows it again after a restart.
    pub records_commit: bool,
    starts: u64,
}

impl Member {
    pub fn new(options: Options, config: Config) -> Self {
        Self {
            id: options.id,
            options,
            core: None,
            disk: Disk::new(config),
            commit: 0,
            shown: 0,
            outbox: Vec::new(),
            reads: Vec::new(),
            fetches: Vec::new(),
            snapshots: Vec::new(),
            stepped_down: 0,
            records_commit: false,
            starts: 0,
        }
    }

    pub fn start(&mut self, now_ms: u64) {
        assert!(self.core.is_none(), "started twice");
        self.starts += 1;
        let mut options = self.options.clone();
        options.seed = options.seed.wrapping_mul(1_000_003).wrapping_add(self.starts);
        let base = self.disk.durable.snapshot.last.index;
        let commit = if self.records_commit { self.commit } else { base };
        self.commit = commit;
        self.core = Some(Consensus::new(options, self.disk.restored(commit), now_ms));
    }

    /// kill -9, or a power cut: `reached` unsynced writes made it to the disk.
    pub fn crash(&mut self, reached: usize) {
        self.core = None;
        self.disk.crash(reached);
        self.outbox.clear();
        self.reads.clear();
        self.fetches.clear();
        self.snapshots.clear();
    }

    pub fn running(&self) -> bool {
        self.core.is_some()
    }

    /// Feeds one event and carries out what can be carried out at once.
    pub fn step(&mut self, now_ms: u64, event: Event) -> Result<(), StepError> {
        let Some(core) = &mut self.core else {
            return Ok(());
        };
        let mut effects = Effects::default();
        let outcome = core.step(now_ms, event, &mut effects);
        self.shown = self.shown.max(core.showable());
        self.disk.write(&effects);
        self.outbox.append(&mut effects.messages);
        self.reads.append(&mut effects.reads);
        self.fetches.append(&mut effects.fetches);
        self.snapshots.append(&mut effects.snapshots);
        self.stepped_down += usize::from(effects.stepped_down);
        if let Some(commit) = effects.commit {
            assert!(commit > self.commit, "the commit index of {:?} goes back", self.id);
            assert!(commit <= self.disk.written.last().index, "commit beyond the log");
            self.commit = commit;
        }
        outcome
    }

    /// Delivers the reports of finished syncs.
    pub fn report(&mut self, now_ms: u64) {
        while let Some(position) = self.disk.next_report() {
            self.step_ok(now_ms, Event::Persisted(position));
        }
    }

    /// Answers one fetch from what is written.
    pub fn answer_fetch(&mut self, now_ms: u64, fetch: Fetch) {
        let Fetch { to, from, bytes_max } = fetch;
        let first = self.disk.written.snapshot.last.index + 1;
        let event = if from < first {
            Event::FetchUnavailable { to }
        } else {
            let mut bytes = 0;
            let rest = self.disk.written.entries.iter().skip((from - first) as usize);
            let entries = rest.take_while(|entry| {
                let first = bytes == 0;
                bytes += entry.data.len() + 1;
                first || bytes <= bytes_max
            });
            Event::Fetched { to, from, entries: entries.cloned().collect() }
        };
        self.step_ok(now_ms, event);
    }

    /// A snapshot of everything that is committed, and on disk here.
    pub fn snapshot(&self) -> Option<SnapshotMeta> {
        let view = &self.disk.written;
        // What the disk holds at a committed index may still be what is to be overwritten.
        let index = self.commit.min(self.core.as_ref()?.status(0).persisted);
        let entry = view.get(index).map(|entry| entry.position());
        let last = if index == view.snapshot.last.index { view.snapshot.last } else { entry? };
        Some(SnapshotMeta { last, config: disk::config_at(view, index) })
    }

    pub fn step_ok(&mut self, now_ms: u64, event: Event) {
        if let Err(error) = self.step(now_ms, event) {
            panic!("{:?} refused: {error}", self.id);
        }
    }
}

pub fn voter(name: &str) -> MemberInfo {
    MemberInfo::new(MemberRole::Voter, format!("{name}:4567"), name)
}

/// `name:learner`, `name:logger:zone=x`, `name:w80:v2:joining`: a member with more than defaults.
pub fn described(words: &str) -> Result<(&str, MemberInfo), String> {
    let mut words = words.split(':');
    let name = words.next().unwrap_or_default();
    let mut info = voter(name);
    for word in words {
        match word {
            "learner" => info.role = MemberRole::Learner,
            "logger" => info.role = MemberRole::Logger,
            "joining" => info.joining = true,
            _ => match word.split_at(1) {
                ("w", priority) => info.priority = small(priority)?,
                ("v", votes) => info.votes = small(votes)?,
                _ => match word.strip_prefix("zone=") {
                    Some(zone) => info.zone = zone.into(),
                    None => {
                        return Err(format!(
                            "learner, logger, joining, w80, v2 or zone=x, not {word}"
                        ))
                    }
                },
            },
        }
    }
    Ok((name, info))
}

fn small(word: &str) -> Result<u8, String> {
    word.parse().map_err(|_| format!("a number up to 255 expected, not {word}"))
}

pub fn learner(name: &str) -> MemberInfo {
    MemberInfo { role: MemberRole::Learner, ..voter(name) }
}

/// The generator of the tests (splitmix64).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// True `percent` times out of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
