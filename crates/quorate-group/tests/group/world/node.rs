//! One machine with what applies its entries, and its log in memory.

use bytes::Bytes;
use quorate_consensus::placement::Pace;
use quorate_consensus::{
    Charter, Entry, HardState, Index, LogPosition, MemberId, MemberRole, Rules, SnapshotMeta, LEVEL,
};
use quorate_group::{
    prepare, Answer, Applied, Committed, Directory, EventNote, Feed, Input, Intake, LogLevel,
    Member, Notes, Notice, Opening, Options, OrderNote, Output, SeedAnswer, ServerStanding,
    StartError, Stored, View,
};
use quorate_wire::Standing;
use std::collections::{BTreeMap, BTreeSet};

pub struct Node {
    pub id: MemberId,
    pub machine: Option<Member>,
    pub log: Log,
    pub intake: Intake,
    pub answers: BTreeMap<u64, Answer>,
    /// What its state machine has seen.
    pub applied: Vec<String>,
    pub views: Vec<View>,
    /// What its observer was told.
    pub leaders: Vec<Option<MemberId>>,
    pub primary: Vec<bool>,
    pub fatal: Vec<String>,
    pub lines: Vec<String>,
    pub standings: Vec<ServerStanding>,
    pub awaited: bool,
    /// How its server stands, as it says at each tick; it may lack one.
    pub server: Option<Standing>,
    /// Nothing is fed to its state machine.
    pub lags: bool,
    /// How often the outbox to the leader was full.
    pub waited_for_room: usize,
    /// Whom it wants to be connected to, and the connections it has accepted.
    pub dials: BTreeSet<usize>,
    pub incoming: BTreeMap<usize, u64>,
    options: Options,
    incarnation: u32,
    serial: u64,
    feed: Option<Feed>,
}

/// Entries from index 1 on; all that was appended is on disk with the next sync.
#[derive(Default)]
pub struct Log {
    pub entries: Vec<Entry>,
    hard_state: HardState,
    group: (u128, Charter),
}

impl Log {
    /// True if a sync is to follow.
    pub fn write(&mut self, out: &mut Output) -> bool {
        if let Some(group) = out.group {
            self.group = group;
        }
        if let Some(state) = out.effects.hard_state {
            self.hard_state = state;
        }
        assert!(out.effects.reset_log.is_none(), "there are no snapshots here");
        if let Some(from) = out.effects.truncate_from {
            self.entries.truncate(from as usize - 1);
        }
        self.entries.append(&mut out.effects.append.clone());
        !out.effects.append.is_empty()
    }

    /// Its file of term and vote says another term.
    pub fn damage_term(&mut self, term: u64) {
        self.hard_state = HardState { term, voted_for: None };
    }

    pub fn from(&self, index: Index) -> Vec<Entry> {
        self.entries[index as usize - 1..].to_vec()
    }

    pub fn synced(&self) -> LogPosition {
        self.entries.last().map(Entry::position).unwrap_or_default()
    }

    fn directory(&self, member: MemberId, incarnation: u32) -> Directory {
        let mut term_runs: Vec<(Index, u64)> = Vec::new();
        for entry in &self.entries {
            if term_runs.last().is_none_or(|(_, term)| *term != entry.term) {
                term_runs.push((entry.index, entry.term));
            }
        }
        let special = |entry: &&Entry| entry.kind != quorate_consensus::EntryKind::Data;
        Directory {
            member,
            incarnation,
            group: self.group.0,
            charter: self.group.1,
            hard_state: self.hard_state,
            base: LogPosition::default(),
            last: self.synced(),
            term_runs,
            special: self.entries.iter().filter(special).cloned().collect(),
        }
    }
}

/// There are no snapshots here, and nobody to ask.
impl Opening for Log {
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
        Ok(())
    }

    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), StartError> {
        self.group = (group, charter);
        Ok(())
    }

    fn newest_snapshot(&mut self) -> Result<Option<(Stored, Bytes)>, StartError> {
        Ok(None)
    }

    fn remove_snapshot(&mut self, index: Index) -> Result<(), StartError> {
        unreachable!("a snapshot of {index}")
    }

    fn reset_log(&mut self, base: LogPosition) -> Result<(), StartError> {
        unreachable!("a snapshot of {base:?}")
    }

    fn mark_rolled_back(&mut self, reason: &str) -> Result<(), StartError> {
        unreachable!("nothing is rolled back: {reason}")
    }

    fn log(&mut self, _level: LogLevel, _line: String) {}
}

impl Node {
    pub fn new(at: usize, change: &impl Fn(usize, &mut Options)) -> Self {
        let mut options = Options {
            group_name: "group".into(),
            name: format!("n{at}"),
            advertise: format!("node{at}"),
            incoming: String::new(),
            key: Default::default(),
            seeds: (0..=at).map(|at| format!("node{at}")).collect(),
            bootstrap: at == 0,
            objection: None,
            charter: Charter::default(),
            rules: Rules::default(),
            role: MemberRole::Voter,
            priority: 50,
            zone: String::new(),
            blank: false,
            election_timeout_ms: 200,
            disk_stall_ms: 1_000,
            expel_ms: None,
            primary_ms: 500,
            suspect_ms: 600,
            pace: Pace::default(),
            lease_reads: false,
            level: LEVEL,
            segment_bytes: 1 << 20,
            dir: format!("dir{at}"),
            seed: at as u64,
        };
        change(at, &mut options);
        Self {
            id: MemberId(at as u128 + 1),
            machine: None,
            log: Log::default(),
            intake: Intake::default(),
            answers: BTreeMap::new(),
            applied: Vec::new(),
            views: Vec::new(),
            leaders: Vec::new(),
            primary: Vec::new(),
            fatal: Vec::new(),
            lines: Vec::new(),
            standings: Vec::new(),
            awaited: false,
            server: None,
            lags: false,
            waited_for_room: 0,
            dials: BTreeSet::new(),
            incoming: BTreeMap::new(),
            options,
            incarnation: 0,
            serial: 0,
            feed: None,
        }
    }

    /// Starts from what is on disk, with an empty state machine.
    pub fn start(&mut self, now_ms: u64) -> Output {
        self.incarnation += 1;
        (self.applied, self.views) = (Vec::new(), Vec::new());
        (self.leaders, self.primary) = (Vec::new(), Vec::new());
        (self.dials, self.incoming) = (BTreeSet::new(), BTreeMap::new());
        let directory = self.log.directory(self.id, self.incarnation);
        let opened = prepare(&self.options, directory, 77, &mut self.log).unwrap();
        let mut out = Output::default();
        let mut options = self.options.clone();
        options.seed += 1_000 * u64::from(self.incarnation);
        let mut machine =
            Member::new(options, opened.directory, opened.newest, now_ms, &mut out).unwrap();
        let feed = Feed::new(
            (&self.options.name, self.id),
            LEVEL,
            1 << 20,
            Stored { meta: SnapshotMeta::default(), received: false },
            View::default(),
            Notes::default(),
        );
        machine.step(now_ms, Input::Started(feed.applied()), &mut out);
        (self.feed, self.machine) = (Some(feed), Some(machine));
        out
    }

    /// It comes back as an older state of itself, which nobody notices before it is asked what it has.
    pub fn roll_back(&mut self, last: Index) {
        self.log.entries.truncate(last as usize);
    }

    /// It comes back as somebody else, with nothing.
    pub fn wipe(&mut self, id: MemberId) {
        (self.id, self.log, self.incarnation) = (id, Log::default(), 0);
    }

    pub fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub fn applied(&self) -> Applied {
        self.feed.as_ref().map(Feed::applied).unwrap_or_default()
    }

    /// What it knows of operators' orders.
    pub fn notes(&self) -> Vec<OrderNote> {
        let notes = self.feed.iter().flat_map(|feed| feed.notes().orders());
        notes.cloned().collect()
    }

    /// What it knows to have happened.
    pub fn events(&self) -> Vec<EventNote> {
        let notes = self.feed.iter().flat_map(|feed| feed.notes().events());
        notes.cloned().collect()
    }

    pub fn note(&mut self, notices: impl Iterator<Item = Notice>) {
        for notice in notices {
            match notice {
                Notice::Leader(_, leader) => self.leaders.push(leader),
                Notice::Primary(primary) => self.primary.push(primary),
                Notice::Fatal(line) | Notice::Stuck(line) => self.fatal.push(line),
                Notice::Log(_, line) => self.lines.push(line),
                Notice::Standings(all) => self.standings = all,
                Notice::Awaited(awaited) => self.awaited = awaited,
                Notice::Rules(_) => {}
            }
        }
    }

    /// Feeds up to here; what the machine is to be told of it.
    pub fn feed(&mut self, up_to: Option<Index>) -> Vec<Input> {
        let (Some(up_to), Some(feed)) = (up_to.filter(|_| !self.lags), &mut self.feed) else {
            return Vec::new();
        };
        let mut inputs = Vec::new();
        while feed.position().index < up_to {
            let entry = self.log.entries[feed.position().index as usize].clone();
            match feed.entry(entry).unwrap() {
                Some(Committed::Data { data, .. }) => {
                    self.applied.push(String::from_utf8(data.to_vec()).unwrap());
                }
                Some(Committed::View { view, .. }) => self.views.push(view),
                None => {}
            }
            inputs.extend(feed.take_noted().map(|noted| Input::Noted(noted.note.id())));
            inputs.push(Input::Applied(feed.applied()));
        }
        inputs
    }
}
