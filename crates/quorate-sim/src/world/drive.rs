//! Steps of the core, and carrying out what it wants: the same order of things as in a live member.

use super::{Event, Packet, World};
use crate::member::CrashPoint;
use crate::oracle::{show, Rule};
use crate::plant::Plant;
use quorate_consensus::{
    Config, Effects, Entry, Event as CoreEvent, Fetch, HardState, Index, LogPosition, MemberId,
    Message, MessageBody, RoleState, SnapshotMeta, StepError, Term,
};
use std::rc::Rc;

impl World {
    /// One step of the core of `m`, with everything it asks for.
    pub(super) fn step(&mut self, m: usize, event: CoreEvent) -> Result<(), StepError> {
        let now_ms = self.members[m].clock.millis(self.schedule.now());
        let mut effects = std::mem::take(&mut self.scratch);
        let Some(core) = self.members[m].core.as_mut() else {
            self.scratch = effects;
            return Ok(());
        };
        let led = core.is_leader();
        let result = core.step(now_ms, event, &mut effects);
        if result.is_err() && !effects.is_empty() {
            self.oracle
                .fail(Rule::Contract, || format!("a refused event had effects: {effects:?}"));
        }
        if !effects.is_empty() {
            self.carry_out(m, led, &mut effects);
        }
        effects.clear();
        self.scratch = effects;
        result
    }

    fn carry_out(&mut self, m: usize, led: bool, effects: &mut Effects) {
        let config_before = effects.commit.map(|_| Rc::clone(self.members[m].disk.live.config().1));
        // The term that it leads in this step, even if it steps down at the end of it.
        let leads = match (self.members[m].role, effects.role) {
            (RoleState::Leader { term }, _) if led => Some(term),
            (_, Some(RoleState::Leader { term })) => Some(term),
            _ => None,
        };
        let crash = self.due_crash(m, effects);
        if crash == Some(CrashPoint::BeforeHardState) {
            return self.crash(m);
        }
        if let Some(state) = effects.hard_state {
            if self.members[m].disk.failed {
                // A member that cannot record its vote must not cast it.
                return self.crash(m);
            }
            self.persist_hard_state(m, state);
        }
        if crash == Some(CrashPoint::AfterHardState) {
            return self.crash(m);
        }
        if let Some(meta) = effects.reset_log.take() {
            self.reset_log(m, &meta);
        }
        if let Some(from) = effects.truncate_from {
            self.truncate(m, from);
        }
        self.append(m, leads.is_some(), &mut effects.append);
        if crash == Some(CrashPoint::AfterAppend) {
            return self.crash(m);
        }
        if let Some(role) = effects.role {
            self.role_changed(m, role);
        }
        // Before the messages, which may carry the news: the oracle must hear it here first.
        if let (Some(upto), Some(config)) = (effects.commit, config_before) {
            self.committed(m, upto, leads, &config);
        }
        for (sent, message) in effects.messages.drain(..).enumerate() {
            if crash == Some(CrashPoint::AfterMessages(sent)) {
                return self.crash(m);
            }
            self.send_message(m, message);
        }
        for fetch in effects.fetches.drain(..) {
            self.start_fetch(m, fetch);
        }
        for to in effects.snapshots.drain(..) {
            self.ship_snapshot(m, to);
        }
        for read in effects.reads.drain(..) {
            self.read_ready(m, read);
        }
        if let Some(config) = effects.config.take() {
            self.check_config(m, &config);
        }
    }

    /// The armed crash of `m`, if these effects are what it waits for.
    fn due_crash(&mut self, m: usize, effects: &Effects) -> Option<CrashPoint> {
        let point = self.members[m].crash_at?;
        let due = match point {
            CrashPoint::BeforeHardState | CrashPoint::AfterHardState => {
                effects.hard_state.is_some()
            }
            CrashPoint::AfterAppend => !effects.append.is_empty(),
            CrashPoint::AfterMessages(sent) => effects.messages.len() > sent,
        };
        if !due {
            return None;
        }
        self.members[m].crash_at = None;
        Some(point)
    }

    fn persist_hard_state(&mut self, m: usize, state: HardState) {
        let plant = self.plant;
        let member = &mut self.members[m];
        if plant == Some(Plant::VoteBeforePersist) {
            member.disk.hard_stale.get_or_insert(member.disk.hard);
        }
        member.disk.hard = state;
        let id = member.id;
        self.oracle.hard_state(id, state);
        self.stir(state.term);
    }

    fn reset_log(&mut self, m: usize, meta: &SnapshotMeta) {
        if self.tells() {
            self.note(format!("m{m} restarts its log after snapshot {}", show(meta.last)));
        }
        let Some(snapshot) = self.members[m].installing.take() else {
            return self.oracle.fail(Rule::Contract, || {
                format!("m{m} resets its log to {} without a snapshot", show(meta.last))
            });
        };
        if snapshot.last != meta.last || *snapshot.config != meta.config {
            self.oracle.fail(Rule::Contract, || {
                format!(
                    "m{m} resets its log to {meta:?}, the snapshot is at {}",
                    show(snapshot.last)
                )
            });
        }
        self.members[m].disk.reset(meta.last, Rc::clone(&snapshot.config));
        self.start_from_snapshot(m, &snapshot);
        self.members[m].commit = meta.last.index;
        self.give_up_writes(m);
        self.start_sync(m);
    }

    fn truncate(&mut self, m: usize, from: Index) {
        let member = &mut self.members[m];
        if from <= member.commit || from <= member.disk.live.base.index {
            let commit = member.commit;
            return self.oracle.fail(Rule::CommittedNeverChanges, || {
                format!("m{m} cuts its log from {from} on, but has committed up to {commit}")
            });
        }
        for index in from..=member.disk.live.last().index {
            if let Some(entry) = member.disk.live.get(index) {
                self.oracle.truncated(member.id, entry.position());
            }
        }
        member.disk.truncate(from);
        if self.tells() {
            self.note(format!("m{m} cuts its log from {from} on"));
        }
        self.start_sync(m);
    }

    fn append(&mut self, m: usize, leads: bool, entries: &mut Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        if self.tells() {
            let list: Vec<_> =
                entries.iter().map(|e| format!("{}/{:?}", show(e.position()), e.kind)).collect();
            self.note(format!("m{m} appends {}", list.join(" ")));
        }
        let member = &mut self.members[m];
        for entry in entries.drain(..) {
            let last = member.disk.live.last();
            if entry.index != last.index + 1 {
                return self.oracle.fail(Rule::Contract, || {
                    format!("m{m} appends {} behind {}", show(entry.position()), show(last))
                });
            }
            self.oracle.appended(member.id, &entry, last.term, leads);
            member.disk.append(entry);
        }
        if self.plant == Some(Plant::AckBeforeSync) {
            let (run, upto) = (member.run, member.disk.live.last());
            self.schedule.after(1, Event::Persisted { m, run, upto });
        }
        self.start_sync(m);
    }

    fn role_changed(&mut self, m: usize, role: RoleState) {
        if self.tells() {
            self.note(format!("m{m} is now {role:?}"));
        }
        let member = &mut self.members[m];
        member.role = role;
        if let RoleState::Leader { term } = role {
            let live = &member.disk.live;
            self.oracle.elected(member.id, term, live.last().index, |i| live.term_at(i));
            self.stir(term ^ (m as u64) << 32);
        }
        self.leader_changed(m);
    }

    fn send_message(&mut self, m: usize, mut message: Message) {
        let member = &self.members[m];
        match &message.body {
            // A pre-vote speaks of a term that may never come.
            MessageBody::PreVote { .. } | MessageBody::PreVoteReply { .. } => {}
            MessageBody::VoteReply { granted: true } => {
                self.oracle.spoke(member.id, message.term);
                self.oracle.voted(member.id, message.term, message.to);
            }
            MessageBody::Vote { .. } => {
                self.oracle.spoke(member.id, message.term);
                self.oracle.voted(member.id, message.term, member.id);
            }
            MessageBody::AppendReply { matched } | MessageBody::SnapshotReply { matched } => {
                self.oracle.spoke(member.id, message.term);
                self.check_acknowledgement(m, *matched);
            }
            _ => self.oracle.spoke(member.id, message.term),
        }
        if self.plant == Some(Plant::InflatedReply) && m % 2 == 1 {
            if let MessageBody::AppendReply { matched } = &mut message.body {
                *matched += 1;
            }
        }
        if self.tells() && !is_routine(&message.body) {
            let to = self.slot(message.to).map_or("?".into(), |to| to.to_string());
            self.note(format!("m{m} -> m{to} term {}: {}", message.term, tell(&message.body)));
        }
        let to = message.to;
        self.send(m, to, Packet::Raft(message));
    }

    /// Whatever a member acknowledges is on its disk, as it is in its log.
    fn check_acknowledgement(&mut self, m: usize, matched: Index) {
        let member = &self.members[m];
        let Some(term) = member.disk.live.term_at(matched) else {
            if matched < member.disk.live.base.index {
                return;
            }
            return self.oracle.fail(Rule::AcknowledgeOnlyPersisted, || {
                format!("m{m} acknowledges {matched}, which its log does not have")
            });
        };
        let planted = matches!(self.plant, Some(Plant::AckBeforeSync));
        let position = LogPosition { term, index: matched };
        if !planted && !member.disk.keeps(position) {
            self.oracle.fail(Rule::AcknowledgeOnlyPersisted, || {
                format!("m{m} acknowledges {}, which is not on its disk", show(position))
            });
        }
    }

    /// The member holds its log committed up to `upto`.
    fn committed(&mut self, m: usize, upto: Index, leads: Option<Term>, config_before: &Config) {
        let member = &self.members[m];
        let (id, from) = (member.id, member.commit);
        if upto < from {
            return self.oracle.fail(Rule::CommittedNeverChanges, || {
                format!("m{m} takes its commit index back from {from} to {upto}")
            });
        }
        let live = &member.disk.live;
        let news = self.oracle.committing(id, from, upto, leads, |i| live.term_at(i));
        if let Some(position) = news {
            self.check_majority(m, position, leads, config_before);
            self.check_leases(m);
            self.stir(position.index);
        }
        if self.tells() {
            self.note(format!("m{m} commits up to {upto}"));
        }
        self.members[m].commit = upto;
        self.apply_soon(m);
    }

    fn check_majority(
        &mut self,
        m: usize,
        position: LogPosition,
        leads: Option<Term>,
        config_before: &Config,
    ) {
        if leads.is_some_and(|term| position.term != term) {
            self.oracle.fail(Rule::CommitOnlyOwnTerm, || {
                format!("m{m} counts entry {} of a former term", show(position))
            });
        }
        let config_after = Rc::clone(self.members[m].disk.live.config().1);
        let by = |config: &Config| self.persisted_by_majority(position, config);
        if !by(config_before) && !by(&config_after) {
            let on: Vec<_> = (0..self.slots()).filter(|s| self.has_on_disk(*s, position)).collect();
            self.oracle.fail(Rule::CommitNeedsPersistedMajority, || {
                format!(
                    "m{m} commits {}, which is only on the disks of {on:?}; voters {:?}, outgoing {:?}",
                    show(position),
                    config_before.voters().collect::<Vec<_>>(),
                    config_before.outgoing
                )
            });
        }
    }

    fn persisted_by_majority(&self, position: LogPosition, config: &Config) -> bool {
        let on_disk =
            |id: &MemberId| self.slot(*id).is_some_and(|slot| self.has_on_disk(slot, position));
        let (mut voters, mut have) = (0, 0);
        for id in config.voters() {
            voters += 1;
            have += usize::from(on_disk(&id));
        }
        let outgoing = config.outgoing.iter().filter(|id| on_disk(id)).count();
        have * 2 > voters && (config.outgoing.is_empty() || outgoing * 2 > config.outgoing.len())
    }

    fn has_on_disk(&self, slot: usize, position: LogPosition) -> bool {
        self.members[slot].disk.durable.covers(position)
    }

    /// `m` just committed something new, so nobody else may think that its own lease holds.
    fn check_leases(&mut self, m: usize) {
        let now = self.schedule.now();
        for other in 0..self.slots() {
            let member = &self.members[other];
            if other == m || !member.is_leader() {
                continue;
            }
            let now_ms = member.clock.millis(now);
            if member.core.as_ref().is_some_and(|core| core.status(now_ms).lease_valid) {
                self.oracle.fail(Rule::LeaseSafety, || {
                    format!("m{other} believes in its lease while m{m} commits without it")
                });
            }
        }
    }

    /// The core's idea of the membership is the one in its log.
    fn check_config(&mut self, m: usize, config: &Config) {
        let (index, in_log) = self.members[m].disk.live.config();
        if **in_log != *config {
            let in_log = Rc::clone(in_log);
            self.oracle.fail(Rule::Contract, || {
                format!("m{m} goes by {config:?}, its log says {in_log:?} (entry {index})")
            });
        }
    }

    /// What the core says of its log agrees with the log.
    pub(super) fn check_status(&mut self, m: usize) {
        let member = &self.members[m];
        let now_ms = member.clock.millis(self.schedule.now());
        let Some(status) = member.core.as_ref().map(|core| core.status(now_ms)) else { return };
        let disk = &member.disk;
        let persisted = LogPosition {
            term: disk.live.term_at(status.persisted).unwrap_or(0),
            index: status.persisted,
        };
        let lie = if status.last != disk.live.last() {
            Some(format!("last {}, its log ends at {}", show(status.last), show(disk.live.last())))
        } else if status.commit != member.commit {
            Some(format!("commit {}, it told {}", status.commit, member.commit))
        } else if !disk.keeps(persisted) && self.plant != Some(Plant::AckBeforeSync) {
            Some(format!("persisted {}, its disk disagrees", show(persisted)))
        } else {
            None
        };
        if let Some(lie) = lie {
            self.oracle.fail(Rule::Contract, || format!("the core of m{m} says {lie}"));
        }
    }

    // ---- the disk ----

    pub(super) fn start_sync(&mut self, m: usize) {
        let scenario = &self.scenario;
        let member = &mut self.members[m];
        if !member.disk.start_sync() {
            return;
        }
        let (low, high) = scenario.sync_us;
        let mut takes = self.rng.range(low, high);
        let now = self.schedule.now();
        if self.phase == super::Phase::Faults {
            if self.rng.chance(scenario.stall_per_mille) {
                takes += self.rng.below(scenario.stall_us);
            }
            takes += member.slow_disk_until.saturating_sub(now);
        }
        let run = member.run;
        self.schedule.after(takes, Event::SyncDone { m, run });
    }

    pub(super) fn sync_done(&mut self, m: usize, run: u32) {
        let member = &mut self.members[m];
        if !member.is_up() || member.run != run || member.disk.failed {
            return;
        }
        let upto = member.disk.finish_sync();
        if self.scenario.records_commit && member.disk.durable.last().index >= member.commit {
            let commit = member.commit;
            if member.disk.live.term_at(commit) == member.disk.durable.term_at(commit) {
                member.disk.commit_hint = commit;
            }
        }
        let late = self.phase == super::Phase::Faults
            && self.rng.chance(self.scenario.late_notice_per_mille);
        let delay = if late { self.rng.below(self.scenario.election_us()) } else { 0 };
        self.schedule.after(delay, Event::Persisted { m, run, upto });
    }

    pub(super) fn persisted(&mut self, m: usize, upto: LogPosition) {
        self.start_sync(m);
        self.must_accept(m, CoreEvent::Persisted(upto));
    }

    fn start_fetch(&mut self, m: usize, fetch: Fetch) {
        let run = self.members[m].run;
        // The reader may look at the log now or when its turn comes.
        let read = self.rng.chance(500).then(|| self.read_log(m, &fetch)).flatten();
        let delay = self.rng.range(20, 500);
        self.schedule.after(delay, Event::Fetch { m, run, fetch, read });
    }

    pub(super) fn fetch(&mut self, m: usize, fetch: Fetch, read: Option<Vec<Entry>>) {
        let Fetch { to, from, .. } = fetch;
        if from <= self.members[m].disk.live.base.index {
            return self.must_accept(m, CoreEvent::FetchUnavailable { to });
        }
        let entries = read.or_else(|| self.read_log(m, &fetch)).unwrap_or_default();
        if !entries.is_empty() {
            self.must_accept(m, CoreEvent::Fetched { to, from, entries });
        }
    }

    fn read_log(&self, m: usize, fetch: &Fetch) -> Option<Vec<Entry>> {
        let live = &self.members[m].disk.live;
        let skip = fetch.from.checked_sub(live.base.index + 1)? as usize;
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            let first = bytes == 0;
            bytes += entry.data.len() + 1;
            first || bytes <= fetch.bytes_max
        };
        let entries: Vec<_> = live.entries().iter().skip(skip).take_while(fits).cloned().collect();
        (!entries.is_empty()).then_some(entries)
    }

    /// A step that cannot be refused.
    pub(super) fn must_accept(&mut self, m: usize, event: CoreEvent) {
        if let Err(error) = self.step(m, event) {
            self.oracle.fail(Rule::Contract, || format!("the core of m{m} refused: {error}"));
        }
    }
}

/// Not worth a line in a trace.
fn is_routine(body: &MessageBody) -> bool {
    matches!(body, MessageBody::Heartbeat { .. } | MessageBody::HeartbeatReply { .. })
}

fn tell(body: &MessageBody) -> String {
    match body {
        MessageBody::Append { prev, entries, commit } => {
            let entries: Vec<_> = entries.iter().map(|e| show(e.position())).collect();
            format!("Append after {}, commit {commit}: [{}]", show(*prev), entries.join(" "))
        }
        other => format!("{other:?}"),
    }
}
