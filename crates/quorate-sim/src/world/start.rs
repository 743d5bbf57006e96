//! What a start does with what it finds on the disk, as the product's shell does it.

use super::connections::key_of;
use super::{
    addr, name, show, Client, Coverage, Damage, Mark, Oracle, Plant, Process, Rule, Sessions, World,
};
use crate::database::Database;
use crate::oracle::digest_of_notes;
use bytes::Bytes;
use quorate_certify::process_uuid;
use quorate_consensus::{
    Charter, Entry, HardState, Index, KeyId, LogPosition, MemberId, Primaries, Rules, SnapshotMeta,
    Term,
};
use quorate_group::{
    prepare, Content, Directory, Feed, Input, LogLevel, Member, Notes, Opened, Opening, Options,
    Output, SeedAnswer, Stored, View,
};
use quorate_wal::sim::{self, Next, Steps};
use quorate_wal::{Recovered, SnapshotFiles, Wal};
use std::collections::{BTreeMap, BTreeSet};

/// Why a process did not come up.
pub(super) struct NoStart(pub(super) String);

impl<E: std::error::Error> From<E> for NoStart {
    fn from(error: E) -> Self {
        NoStart(error.to_string())
    }
}

/// The disk of a process that comes up.
struct Folder<'a> {
    last: LogPosition,
    wal: &'a Wal,
    steps: &'a mut Steps,
    snapshots: &'a SnapshotFiles,
    /// [`Plant::CommitWithoutTerms`]: what lies below a snapshot passes for what the snapshot is of.
    trusting: bool,
    mark: &'a mut Option<String>,
    oracle: &'a mut Oracle,
    coverage: &'a mut Coverage<Mark>,
}

impl Opening for Folder<'_> {
    type Error = NoStart;

    fn ask_seed(&mut self, _own: MemberId, _addr: &str) -> SeedAnswer {
        SeedAnswer::Nobody
    }

    fn save_hard_state(&mut self, state: HardState) -> Result<(), NoStart> {
        Ok(self.wal.save_hard_state(state)?)
    }

    fn write_first(&mut self, entry: &Entry) -> Result<(), NoStart> {
        self.oracle.given(entry, 0);
        self.wal.append(std::slice::from_ref(entry));
        sync_all(self.steps)?;
        self.coverage.mark(Mark::Founded);
        Ok(())
    }

    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), NoStart> {
        Ok(self.wal.save_group(group, charter)?)
    }

    fn newest_snapshot(&mut self) -> Result<Option<(Stored, Bytes)>, NoStart> {
        let mut newest = load_newest(self.snapshots);
        if let Some((stored, _)) = newest.as_mut().filter(|_| self.trusting) {
            stored.meta.last = stored.meta.last.min(self.last);
        }
        Ok(newest)
    }

    fn remove_snapshot(&mut self, index: Index) -> Result<(), NoStart> {
        Ok(self.snapshots.remove(index)?)
    }

    fn reset_log(&mut self, base: LogPosition) -> Result<(), NoStart> {
        self.wal.reset(base);
        sync_all(self.steps)?;
        self.coverage.mark(Mark::InstallFinished);
        Ok(())
    }

    fn mark_rolled_back(&mut self, reason: &str) -> Result<(), NoStart> {
        *self.mark = Some(reason.to_owned());
        Ok(())
    }

    fn log(&mut self, _level: LogLevel, _line: String) {}
}

impl World {
    fn options(&mut self, m: usize, key: KeyId) -> Options {
        let s = &self.scenario;
        let count = self.nodes.len();
        Options {
            group_name: "sim".into(),
            name: name(m),
            advertise: addr(m),
            incoming: String::new(),
            key,
            seeds: (0..count).map(addr).collect(),
            bootstrap: s.founded && m == 0 && self.oracle.commit() == 0,
            objection: None,
            charter: Default::default(),
            // Alone it can commit in its own zone only.
            rules: quorate_consensus::Rules { zones_min: s.rules.zones_min.min(1), ..s.rules },
            role: self.nodes[m].wish.0,
            priority: self.nodes[m].wish.1,
            zone: format!("z{}", m as u64 % s.zones),
            blank: self.nodes[m].promised.is_none(),
            level: quorate_consensus::LEVEL,
            election_timeout_ms: s.election_timeout_ms,
            disk_stall_ms: match s.stall_timeouts {
                0 => u64::MAX / 4,
                timeouts => s.election_timeout_ms * timeouts,
            },
            expel_ms: s.expels.then_some(s.election_timeout_ms * 20),
            primary_ms: s.election_timeout_ms * 2,
            suspect_ms: s.election_timeout_ms * 3,
            pace: self.pace(),
            lease_reads: s.lease_reads,
            segment_bytes: s.snapshot_bytes,
            dir: name(m),
            seed: self.rng.next_u64(),
        }
    }

    pub(super) fn try_start(&mut self, m: usize) -> Result<(), NoStart> {
        if let Some(mark) = &self.nodes[m].mark {
            return Err(NoStart(mark.clone()));
        }
        let wal_options = self.wal_options(m);
        let keys = wal_options.keys.clone();
        let (wal, mut steps, recovered) = sim::open(&self.nodes[m].disk, wal_options, true)?;
        let snapshots = sim::snapshot_files(&self.nodes[m].disk, keys.clone());
        let received = load_newest(&snapshots).filter(|(stored, _)| stored.received);
        self.check_found(m, &recovered, received.map(|(stored, _)| stored.meta.last.index));
        if recovered.torn_bytes > 0 {
            self.mark(Mark::TornTail);
        }
        let own = keys.encrypts_with();
        if own.is_some() {
            self.mark(Mark::Encrypted);
        }
        if recovered.encryption.keys().any(|key| *key != own) {
            self.mark(Mark::KeyChanged);
        }
        let options = self.options(m, key_of(recovered.identity.member));
        let group = self.rng.u128();
        let mut folder = Folder {
            last: recovered.last,
            wal: &wal,
            steps: &mut steps,
            snapshots: &snapshots,
            trusting: self.plant == Some(Plant::CommitWithoutTerms),
            mark: &mut self.nodes[m].mark,
            oracle: &mut self.oracle,
            coverage: &mut self.coverage,
        };
        let Opened { directory, newest, .. } =
            prepare(&options, directory(&recovered), group, &mut folder)?;
        let (mut stored, (view, notes), database) = self.starting_point(m, &wal, &snapshots);
        if self.plant == Some(Plant::ForgottenMode) {
            stored.meta.config.rules.primaries = Primaries::Multi;
        }
        let node = (&options.name[..], directory.member);
        let feed = Feed::new(node, options.level, options.segment_bytes, stored, view, notes);
        let mut out = Output::default();
        let (id, incarnation) = (directory.member, directory.incarnation);
        let now_ms = self.now_ms(m);
        let member = Member::new(options, directory, newest, now_ms, &mut out)?;
        let (base, last, applied) = (wal.base(), wal.last(), feed.applied());
        note!(self, "m{m} starts ({incarnation}): log {base:?} to {last:?}, applied {applied:?}");
        let unlogged =
            self.nodes[m].database_at > last.index && self.plant != Some(Plant::UnloggedUnknown);
        let clients = self.scenario.clients_per_member;
        // By the clock, as `quorate-node` begins: a member that was rolled back counts its starts once
        // more, and must not take an outcome of its forgotten life for its own.
        let from_one = self.plant == Some(Plant::SerialsFromOne);
        let began_us = self.schedule.now();
        let next_serial = if from_one { 1 } else { began_us + 1 };
        let node = &mut self.nodes[m];
        node.id = id;
        node.process = Some(Process {
            wal,
            steps,
            snapshots,
            member,
            out,
            notes: digest_of_notes(feed.notes()),
            feed,
            database,
            fed_to: 0,
            install: None,
            origin: process_uuid(id.0, incarnation),
            term: 0,
            leads: false,
            rules: Rules::default(),
            writing_term: Some(0),
            ticks: 0,
            caretaker: false,
            isolated: false,
            cut_until: 0,
            in_view: false,
            synced_since: None,
            awaited: false,
            wants_votes: 1,
            links: BTreeMap::new(),
            incoming: BTreeMap::new(),
            clients: vec![Client::default(); clients],
            pending: BTreeMap::new(),
            next_serial,
            reads: Vec::new(),
            sessions: Sessions::new(began_us),
            asking: None,
            orders: BTreeMap::new(),
            signed: BTreeSet::new(),
            disk_at: None,
            disk_turn: 0,
            feed_due: false,
            unlogged,
            saving: false,
            fatal: None,
            hangs: false,
        });
        self.carry_out(m);
        self.step(m, Input::Unlogged(unlogged));
        self.step(m, Input::Started(applied));
        let phase = self.rng.below(self.scenario.tick_us());
        self.tick_later(m, phase);
        for client in 0..clients {
            let delay = self.rng.below(self.scenario.think_us * 2);
            self.later_at(m, delay, move |w| w.client(m, client));
        }
        self.instruct(m);
        Ok(())
    }

    /// The newest snapshot at or before where the database stands, or the state before the first
    /// entry; without either the state is another member's (its newest snapshot, here).
    fn starting_point(
        &mut self,
        m: usize,
        wal: &Wal,
        snapshots: &SnapshotFiles,
    ) -> (Stored, (View, Notes), Database) {
        let (base, stands_at) = (wal.base().index, self.nodes[m].database_at);
        let usable = |limit: Index| {
            let indexes = snapshots.list().unwrap_or_default();
            let mut fits = indexes.into_iter().filter(|index| (base..=limit).contains(index));
            fits.find_map(|index| load(snapshots, index))
        };
        let found = match usable(stands_at) {
            None if base > 0 => usable(Index::MAX),
            found => found,
        };
        let Some((stored, content)) = found else {
            let empty = Database::new(self.scenario.window, self.retries.on);
            let beginning = Stored { meta: SnapshotMeta::default(), received: false };
            return (beginning, Default::default(), empty);
        };
        let content = Content::decode(content).expect("the checksum was right");
        let mut database =
            Database::restore(&content.machine, self.retries.on).expect("the checksum was right");
        if self.plant == Some(Plant::PartialIndex) {
            database.forget_index();
        }
        let id = self.nodes[m].id;
        let index = stored.meta.last.index;
        if self.plant != Some(Plant::PartialIndex) && self.nodes[m].damage.is_none() {
            self.oracle.state(id, index, database.digest());
            self.oracle.notes(id, index, digest_of_notes(&content.notes));
        }
        (stored, (content.view, content.notes), database)
    }

    /// What a start finds, held against what was promised. `received`: up to where its leader's snapshot is, if the
    /// newest one is a leader's.
    fn check_found(&mut self, m: usize, recovered: &Recovered, received: Option<Index>) {
        let node = &self.nodes[m];
        let id = recovered.identity.member;
        if node.damage == Some(Damage::RolledBack) {
            return self.oracle.rolled_back(id, recovered.hard_state);
        }
        let term_at = |index: Index| term_at(recovered, index);
        // Rot of what was synced last looks like a write that was interrupted.
        let whole = node.damage.is_none();
        if let Some(promised) = node.promised.filter(|promised| whole && promised.index > 0) {
            let has = promised.index <= recovered.base.index
                || (promised.index <= recovered.last.index
                    && term_at(promised.index) == Some(promised.term));
            let last = recovered.last;
            self.oracle.fail_if(!has, Rule::SyncedIsKept, || {
                format!("m{m} had {promised:?} on disk, and finds a log up to {last:?}")
            });
        }
        if whole {
            self.check_database(m, recovered, received);
        }
        self.oracle.restarted(id, recovered.hard_state);
        let mut prev_term = recovered.base.term;
        for index in recovered.base.index + 1..=recovered.last.index {
            let term = term_at(index).unwrap_or_default();
            self.oracle.found(id, LogPosition { term, index }, prev_term);
            prev_term = term;
        }
    }

    /// Where the log ends before the database, it is the beginning of what the database has: so it may be gone on with
    /// as soon as it has the rest. Or the power went after a leader's snapshot was there, and before the log that it
    /// takes the place of was reset.
    fn check_database(&mut self, m: usize, recovered: &Recovered, received: Option<Index>) {
        let node = &self.nodes[m];
        let (index, last) = (node.database_at, recovered.last);
        let Some(term) = node.database_term.filter(|_| index > recovered.base.index) else {
            return;
        };
        let database = LogPosition { term, index };
        if self.oracle.committed_term(index) != Some(term) {
            return; // It is of a majority that was given up.
        }
        let is_ahead = index > last.index;
        if is_ahead {
            self.mark(Mark::DatabaseAhead);
        }
        let fits = match is_ahead {
            true => {
                received.is_some_and(|received| received >= index)
                    || self.oracle.committed_term(last.index) == Some(last.term)
            }
            false => term_at(recovered, index) == Some(term),
        };
        self.oracle.fail_if(!fits, Rule::LogFitsDatabase, || {
            let (database, last) = (show(database), show(last));
            format!("m{m} has {database} in its database, and finds another log, up to {last}")
        });
    }
}

fn term_at(recovered: &Recovered, index: Index) -> Option<Term> {
    let mut runs = recovered.term_runs.iter().rev();
    runs.find(|(first, _)| *first <= index).map(|(_, term)| *term)
}

fn directory(recovered: &Recovered) -> Directory {
    let identity = recovered.identity;
    Directory {
        member: identity.member,
        incarnation: identity.incarnation,
        group: identity.group,
        charter: identity.charter,
        hard_state: recovered.hard_state,
        base: recovered.base,
        last: recovered.last,
        term_runs: recovered.term_runs.clone(),
        special: recovered.special.clone(),
    }
}

pub(super) fn load(snapshots: &SnapshotFiles, index: Index) -> Option<(Stored, Bytes)> {
    let file = snapshots.load(index).ok()?;
    Some((Stored::decode(file.meta).ok()?, file.payload))
}

/// The newest that can be read.
pub(super) fn load_newest(snapshots: &SnapshotFiles) -> Option<(Stored, Bytes)> {
    snapshots.list().ok()?.into_iter().find_map(|index| load(snapshots, index))
}

/// Before there is a member: everything that is queued goes to the disk.
pub(super) fn sync_all(steps: &mut Steps) -> Result<(), std::sync::Arc<quorate_wal::WalError>> {
    while matches!(steps.next(), Next::Write | Next::Sync) {
        steps.step()?;
    }
    match steps.next() {
        Next::Failed | Next::Full => steps.step().map(drop),
        _ => Ok(()),
    }
}
