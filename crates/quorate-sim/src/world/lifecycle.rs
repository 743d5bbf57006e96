//! How members are born, run, stop, crash and come back.

use super::{Event, Packet, Phase, Received, World};
use crate::coverage::Mark;
use crate::disk::Disk;
use crate::machine::Machine;
use crate::member::{Client, Clock, Member, Session, Stream};
use crate::net::SLOTS_MAX;
use crate::oracle::Rule;
use crate::plant::Plant;
use quorate_consensus::placement::Writes;
use quorate_consensus::{
    Config, Consensus, Effects, Entry, EntryKind, Event as CoreEvent, HardState, LogPosition,
    MemberId, MemberRole, Options, Restored, RoleState, SnapshotMeta, Term,
};
use std::collections::VecDeque;
use std::rc::Rc;

impl World {
    /// Creates the first members, with the first membership on each disk.
    pub(super) fn found_group(&mut self) {
        let (voters, learners) = (self.scenario.voters, self.scenario.learners);
        let mut config = Config::default();
        let ids: Vec<_> = (0..voters + learners).map(|_| MemberId(self.rng.u128())).collect();
        for (slot, id) in ids.iter().enumerate() {
            let role = if slot < voters { MemberRole::Voter } else { MemberRole::Learner };
            config.members.insert(*id, self.scenario.staff.member(&mut self.rng, slot, role));
        }
        self.scenario.staff.govern(&mut config);
        self.scenario.modes.govern(&mut config.rules);
        self.oracle.state(MemberId::default(), 0, Machine::new(self.scenario.window).digest());
        let first = Entry::new(1, 1, EntryKind::Config, config.encode());
        let in_log = self.scenario.config_in_log;
        if in_log {
            self.oracle.given(&first, 0);
        }
        let config = Rc::new(config);
        self.committed_config = (0, Rc::clone(&config));
        for id in ids {
            let mut disk = Disk::new(if in_log { Rc::default() } else { Rc::clone(&config) });
            if in_log {
                disk.append(first.clone());
                disk.start_sync();
                disk.finish_sync();
                disk.hard = HardState { term: 1, voted_for: None };
            }
            self.spawn(id, disk);
        }
    }

    /// A member with an empty log, waiting to be added by a leader.
    pub(super) fn spawn_newcomer(&mut self) -> Option<usize> {
        if self.slots() >= SLOTS_MAX {
            return None;
        }
        let id = MemberId(self.rng.u128());
        Some(self.spawn(id, Disk::new(Rc::default())))
    }

    fn spawn(&mut self, id: MemberId, mut disk: Disk) -> usize {
        let m = self.slots();
        if self.plant == Some(Plant::ResurrectTruncated) {
            disk.plant_resurrection();
        }
        let clock = self.draw_clock();
        let slow = self.scenario.faults.slow_apply && self.rng.chance(400);
        let apply_lag_us = if slow { self.rng.range(1, self.scenario.election_us()) } else { 0 };
        self.members.push(Member {
            id,
            core: None,
            run: 0,
            since: 0,
            gone: false,
            paused: false,
            backlog: VecDeque::new(),
            clock,
            disk,
            slow_disk_until: 0,
            told_at: 0,
            crash_at: None,
            machine: Machine::new(self.scenario.window),
            view_at: LogPosition::default(),
            commit: 0,
            persisted: 0,
            commit_seen: 0,
            config: Rc::default(),
            effects: Effects::default(),
            elected: Vec::new(),
            made: Vec::new(),
            role: RoleState::Follower { term: 0, leader: None },
            apply_lag_us,
            installing: Vec::new(),
            snapshot_at: 0,
            origin: 0,
            next_serial: 1,
            pending: VecDeque::new(),
            sent: 0,
            session: Session::default(),
            streams: [Stream::default(); SLOTS_MAX],
            clients: Vec::new(),
            reads: Vec::new(),
            ticks: 0,
            view_proposed: (0, 0),
            writing_term: None,
            writes: Writes::default(),
        });
        self.start(m);
        m
    }

    /// Clocks differ by any offset, and drift apart within what the options allow. Whole
    /// milliseconds cost one of what is allowed.
    fn draw_clock(&mut self) -> Clock {
        let allowed_ms = self.scenario.clock_drift_ms.saturating_sub(1);
        let most = (allowed_ms * 1_000_000 / (2 * self.scenario.election_timeout_ms)) as i64;
        Clock {
            offset_us: self.rng.below(10_000_000),
            parts_per_million: self.rng.range(0, 2 * most as u64) as i64 - most,
        }
    }

    /// Starts the process of `m` from what its disk holds.
    fn start(&mut self, m: usize) {
        self.members[m].disk.recover();
        self.check_found_log(m);
        let restored = self.restored(m);
        let options = self.options(m);
        let snapshot = self.members[m].disk.snapshot.clone();
        match snapshot {
            Some(snapshot) => self.start_from_snapshot(m, &snapshot),
            None => {
                let member = &mut self.members[m];
                member.machine = Machine::new(self.scenario.window);
                member.machine.govern(member.disk.durable.base_config());
            }
        }
        let now = self.schedule.now();
        let origin = self.rng.u128();
        let clients = self.scenario.clients_per_member;
        let writes = self.no_writes();
        let member = &mut self.members[m];
        let term = restored.hard_state.term;
        member.commit = restored.commit.max(member.disk.live.base.index);
        member.commit_seen = member.commit;
        member.since = now;
        member.view_at = LogPosition::default();
        member.persisted = member.disk.durable.last().index;
        member.told_at = now;
        member.config = Rc::clone(member.disk.live.config().1);
        member.role = RoleState::Follower { term, leader: None };
        member.origin = origin;
        member.next_serial = 1;
        member.sent = 0;
        member.session = Session::default();
        member.streams = [Stream::default(); SLOTS_MAX];
        member.view_proposed = (0, 0);
        member.clients = vec![Client::Idle; clients];
        member.writes = writes;
        member.core = Some(Consensus::new(options, restored, member.clock.millis(now)));
        let run = member.run;
        self.look_who_writes(m);
        let phase = self.rng.below(self.scenario.tick_us());
        self.schedule.after(phase, Event::Tick { m, run });
        for client in 0..clients {
            let delay = self.rng.below(self.scenario.think_us * 2);
            self.schedule.after(delay, Event::Client { m, run, client });
        }
        self.apply(m, u64::MAX);
    }

    fn restored(&self, m: usize) -> Restored {
        let disk = &self.members[m].disk;
        let log = &disk.durable;
        let mut term_runs: Vec<(u64, Term)> = Vec::new();
        for entry in log.entries() {
            if term_runs.last().is_none_or(|(_, term)| *term != entry.term) {
                term_runs.push((entry.index, entry.term));
            }
        }
        let commit = if self.scenario.records_commit {
            let snapshot = disk.snapshot.as_ref().map_or(0, |s| s.last.index);
            disk.commit_hint.max(snapshot)
        } else {
            0
        };
        Restored {
            hard_state: disk.hard,
            snapshot: SnapshotMeta { last: log.base, config: (**log.base_config()).clone() },
            last: log.last(),
            term_runs,
            configs: log.configs().iter().map(|(i, c)| (*i, (**c).clone())).collect(),
            commit,
        }
    }

    fn options(&mut self, m: usize) -> Options {
        let s = &self.scenario;
        let stretched = self.plant == Some(Plant::LongLease) && m == 0;
        Options {
            election_timeout_ms: s.election_timeout_ms * if stretched { 6 } else { 1 },
            heartbeat_interval_ms: s.heartbeat_ms(),
            append_bytes_max: s.append_bytes_max,
            inflight_bytes_max: s.inflight_bytes_max,
            inflight_messages_max: s.inflight_messages_max,
            recent_bytes_max: s.recent_bytes_max,
            disk_stall_ms: match s.staff.stall_timeouts {
                0 => u64::MAX,
                timeouts => s.election_timeout_ms * timeouts,
            },
            clock_drift_ms: s.clock_drift_ms,
            lease_reads: s.lease_reads,
            ..Options::new(self.members[m].id, self.rng.next_u64())
        }
    }

    fn check_found_log(&mut self, m: usize) {
        let member = &self.members[m];
        let mut prev_term = member.disk.durable.base.term;
        for entry in member.disk.durable.entries() {
            self.oracle.found(member.id, entry.position(), prev_term);
            prev_term = entry.term;
        }
    }

    // ---- time ----

    pub(super) fn tick(&mut self, m: usize) {
        let member = &mut self.members[m];
        member.ticks += 1;
        let (ticks, run) = (member.ticks, member.run);
        self.schedule.after(self.scenario.tick_us(), Event::Tick { m, run });
        self.must_accept(m, CoreEvent::Tick);
        if self.scenario.modes.on && self.members[m].is_up() {
            self.keep_modes(m, ticks);
        }
        if ticks % 8 == 0 && self.members[m].is_up() {
            self.check_status(m);
            self.unstick(m);
            self.retry_reads(m);
            self.propose_view(m);
        }
    }

    pub(super) fn receive(&mut self, from: usize, m: usize, packet: Packet) {
        match packet {
            Packet::Raft(message) => self.must_accept(m, CoreEvent::Receive(message)),
            Packet::Forward { session, part, items } => {
                self.forwarded(from, m, session, part, items)
            }
            Packet::Snapshot { term, snapshot, token } => {
                self.snapshot_arrived(m, Received { from, term, snapshot, token })
            }
            Packet::SnapshotStored { token } => self.shipment_ended(token, true),
        }
    }

    pub(super) fn unreachable(&mut self, m: usize, peer: MemberId) {
        self.must_accept(m, CoreEvent::Unreachable(peer));
    }

    /// Something for a process that is not there: the sender of a message may be told so.
    pub(super) fn undeliverable(&mut self, event: Event) {
        let Event::Deliver { from, m, packet: Packet::Raft(_) } = event else { return };
        if !self.members[m].gone && !self.net.is_cut(m, from) && self.rng.chance(200) {
            let (run, peer) = (self.members[from].run, self.members[m].id);
            self.schedule.after(100, Event::Unreachable { m: from, run, peer });
        }
    }

    // ---- faults of one process ----

    /// kill -9, or a power cut: what was not synced is lost.
    pub(super) fn crash(&mut self, m: usize) {
        self.stop(m);
        let election = self.scenario.election_us();
        let longest =
            self.rng.weighted(&[(election / 10, 4), (election * 3, 5), (election * 10, 1)]);
        let delay = self.rng.below(longest.unwrap_or(election));
        let run = self.members[m].run;
        self.schedule.after(delay, Event::Restart { m, run });
        // Its kernel resets the connections, unless the whole machine went down.
        if self.rng.chance(600) {
            let peer = self.members[m].id;
            for other in 0..self.slots() {
                if other != m && self.members[other].is_up() && !self.net.is_cut(m, other) {
                    let run = self.members[other].run;
                    let delay = self.rng.range(100, 2_000);
                    self.schedule.after(delay, Event::Unreachable { m: other, run, peer });
                }
            }
        }
    }

    /// Stops the process without bringing it back.
    pub(super) fn stop(&mut self, m: usize) {
        if !self.members[m].is_up() {
            return;
        }
        if self.tells() {
            self.note(format!("m{m} crashes"));
        }
        let member = &mut self.members[m];
        member.core = None;
        member.run += 1;
        member.paused = false;
        member.backlog.clear();
        member.crash_at = None;
        member.installing.clear();
        member.effects.clear();
        member.elected.clear();
        member.made.clear();
        member.pending.clear();
        member.reads.clear();
        let torn = member.disk.crash(&mut self.rng);
        self.mark(Mark::Crash);
        if torn {
            self.mark(Mark::TornBatch);
        }
        self.stir(m as u64);
    }

    pub(super) fn restart(&mut self, m: usize, run: u32) {
        let member = &self.members[m];
        if member.run != run || member.is_up() || member.gone || self.stays_down(m) {
            return;
        }
        if self.tells() {
            self.note(format!("m{m} starts"));
        }
        self.start(m);
    }

    pub(super) fn kill(&mut self, m: usize, run: u32) {
        if self.members[m].run == run && self.members[m].is_up() {
            self.crash(m);
        }
    }

    /// SIGSTOP for a while.
    pub(super) fn pause(&mut self, m: usize, micros: u64) {
        let member = &mut self.members[m];
        if !member.runs() {
            return;
        }
        member.paused = true;
        let run = member.run;
        self.schedule.after(micros, Event::Resume { m, run });
        self.mark(Mark::Pause);
        if self.tells() {
            self.note(format!("m{m} is stopped for {} ms", micros / 1000));
        }
    }

    pub(super) fn resume(&mut self, m: usize, run: u32) {
        let member = &mut self.members[m];
        if member.run != run || !member.paused {
            return;
        }
        member.paused = false;
        let backlog = std::mem::take(&mut member.backlog);
        if self.tells() {
            self.note(format!("m{m} goes on, {} events waited", backlog.len()));
        }
        let now = self.schedule.now();
        self.schedule.at(now, Event::Tick { m, run });
        for event in backlog {
            self.handle(event);
        }
    }

    /// A sync returns an error: the log of this member is finished until it is started again.
    pub(super) fn sync_failed(&mut self, m: usize) {
        if self.tells() {
            self.note(format!("m{m}: fsync fails"));
        }
        self.members[m].disk.fail();
        self.mark(Mark::SyncFailure);
        self.must_accept(m, CoreEvent::StepDown);
        let run = self.members[m].run;
        let delay = self.rng.below(self.scenario.election_us() * 4);
        self.schedule.after(delay, Event::Kill { m, run });
    }

    /// The disk is lost with everything on it. What it held still counts for what was once
    /// persisted, so it is kept for the oracle.
    pub(super) fn wipe(&mut self, m: usize) {
        self.stop(m);
        self.members[m].gone = true;
        self.mark(Mark::LostDisk);
        if self.tells() {
            self.note(format!("m{m} loses its disk"));
        }
    }

    /// A removed member's process is stopped by its operator.
    pub(super) fn retire(&mut self, m: usize) {
        let id = self.members[m].id;
        if self.phase == Phase::Faults && !self.is_member_anywhere(id) {
            self.stop(m);
        }
    }

    fn is_member_anywhere(&self, id: MemberId) -> bool {
        let has = |c: &Config| c.members.contains_key(&id) || c.outgoing.contains(&id);
        self.members.iter().any(|m| !m.gone && has(m.disk.live.config().1))
    }

    /// Puts the machine into the state of a snapshot.
    pub(super) fn start_from_snapshot(&mut self, m: usize, snapshot: &crate::disk::Snapshot) {
        match Machine::restore(&snapshot.state) {
            Ok(mut machine) => {
                if self.plant == Some(Plant::PartialIndex) {
                    machine.forget_index();
                }
                if self.plant != Some(Plant::ForgottenMode) {
                    machine.govern(&snapshot.config);
                }
                let member = &mut self.members[m];
                self.oracle.state(member.id, machine.applied, machine.digest());
                member.snapshot_at = machine.applied;
                member.machine = machine;
            }
            Err(error) => self
                .oracle
                .fail(Rule::Contract, || format!("m{m} cannot start from its snapshot: {error}")),
        }
    }
}
