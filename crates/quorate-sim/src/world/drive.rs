//! Steps of the core, and carrying out what it wants: the same order of things as in a live member.
//!
//! A live member may take several steps before it carries out what they add up to; so does this
//! one, where the scenario says so. What the core *decides* is shown to the oracle at each step,
//! what it *does* when it is carried out.

use super::check::{check_acknowledgement, check_on_disk};
use super::disaster::AUDIT;
use super::{Event, Packet, World};
use crate::coverage::Mark;
use crate::disk::LogImage;
use crate::member::CrashPoint;
use crate::oracle::{show, Rule};
use crate::plant::Plant;
use quorate_consensus::{
    Config, Effects, Entry, EntryKind, Event as CoreEvent, HardState, Index, Message, MessageBody,
    RoleState, SnapshotMeta, StepError, Term,
};
use std::rc::Rc;

/// What a core had decided, and not yet carried out, before one step.
struct Before {
    led: bool,
    commit: Option<Index>,
    appended: usize,
    messages: usize,
}

/// The log as a core sees it: what its driver was already told, and what it is going to be told.
struct CoreLog<'a> {
    live: &'a LogImage,
    effects: &'a Effects,
}

impl World {
    /// One step of the core of `m`.
    pub(super) fn step(&mut self, m: usize, event: CoreEvent) -> Result<(), StepError> {
        let member = &mut self.members[m];
        let now_ms = member.clock.millis(self.schedule.now());
        let Some(core) = member.core.as_mut() else { return Ok(()) };
        let nothing_due = member.effects.is_empty();
        let mut effects = std::mem::take(&mut member.effects);
        let before = Before {
            led: core.is_leader(),
            commit: effects.commit,
            appended: effects.append.len(),
            messages: effects.messages.len(),
        };
        let result = core.step(now_ms, event, &mut effects);
        if result.is_err() && nothing_due && !effects.is_empty() {
            self.oracle
                .fail(Rule::Contract, || format!("a refused event had effects: {effects:?}"));
        }
        if nothing_due && effects.is_empty() {
            self.members[m].effects = effects;
            return result;
        }
        self.observe(m, before, &effects);
        self.members[m].effects = effects;
        match self.scenario.batch_us {
            0 => self.carry_out(m),
            longest if nothing_due => {
                let run = self.members[m].run;
                let delay = self.rng.below(longest);
                self.schedule.after(delay, Event::CarryOut { m, run });
            }
            _ => {}
        }
        result
    }

    /// A step that cannot be refused.
    pub(super) fn must_accept(&mut self, m: usize, event: CoreEvent) {
        if let Err(error) = self.step(m, event) {
            self.oracle.fail(Rule::Contract, || format!("the core of m{m} refused: {error}"));
        }
    }

    /// Shows the oracle what the core decided in one step.
    fn observe(&mut self, m: usize, before: Before, effects: &Effects) {
        if let Some((at, config)) = self.installed_by_force(m, &before, effects) {
            let log = CoreLog { live: &self.members[m].disk.live, effects };
            let lost = |index: &Index| {
                log.term_at(*index).is_some_and(|t| Some(t) != self.oracle.committed_term(*index))
            };
            let upto = (1..at).find(lost).unwrap_or(at) - 1;
            self.forced(m, upto.min(self.oracle.commit()), at, config);
        }
        let member = &mut self.members[m];
        let role_before = member.role;
        member.role = effects.role.unwrap_or(role_before);
        let config_before = Rc::clone(&member.config);
        if let Some(config) = effects.config.as_ref().filter(|c| **c != *config_before) {
            member.config = Rc::new(config.clone());
        }
        let log = CoreLog { live: &member.disk.live, effects };
        // The term that it leads in this step, even if it steps down at the end of it.
        let leads = match (role_before, member.role) {
            (_, RoleState::Leader { term }) => Some(term),
            (RoleState::Leader { term }, _) if before.led => Some(term),
            _ => None,
        };
        if let (RoleState::Leader { term }, true) = (member.role, member.role != role_before) {
            member.elected.push(term);
            self.coverage.mark(Mark::Election);
            if !member.config.may_lead(member.id) {
                self.coverage.mark(Mark::Caretaker);
            }
        }
        if let Some(term) = leads {
            let made = effects.append.iter().skip(before.appended).filter(|e| e.term == term);
            // One on its way out of the voters serves to the end.
            let only_hands_over = |config: &Config| {
                config
                    .members
                    .get(&member.id)
                    .is_some_and(|info| info.is_voter() && !info.may_lead())
            };
            let caretaker = only_hands_over(&config_before) && only_hands_over(&member.config);
            for entry in made {
                if caretaker && matches!(entry.kind, EntryKind::Data | EntryKind::View) {
                    let at = show(entry.position());
                    self.oracle.fail(Rule::CaretakersOnlyHandOver, || {
                        format!("m{m} may not lead, but makes entry {at}")
                    });
                }
                if entry.kind == EntryKind::Config {
                    self.configs_made.extend(Config::decode(&entry.data).map(|c| (entry.index, c)));
                }
                if entry.kind == EntryKind::View && self.scenario.alone {
                    self.views_made.push((entry.position(), self.schedule.now()));
                }
                member.made.push((entry.clone(), log.term_at(entry.index - 1).unwrap_or(0)));
            }
        }
        for message in effects.messages.iter().skip(before.messages) {
            if let MessageBody::AppendReply { matched } | MessageBody::SnapshotReply { matched } =
                message.body
            {
                let term = log.term_at(matched);
                check_acknowledgement(&mut self.oracle, member, matched, term, self.plant);
            }
        }
        if effects.commit == before.commit {
            return;
        }
        let (from, upto) = (member.commit_seen, effects.commit.unwrap_or(0));
        if upto < from {
            return self.oracle.fail(Rule::CommittedNeverChanges, || {
                format!("m{m} takes its commit index back from {from} to {upto}")
            });
        }
        // A snapshot stands for everything below it.
        let skips = effects.reset_log.as_ref().map_or(0, |meta| meta.last.index.saturating_sub(1));
        let from = from.max(skips.min(upto));
        let news = self.oracle.committing(member.id, from, upto, leads, |i| log.term_at(i));
        self.members[m].commit_seen = upto;
        if let Some(position) = news {
            self.check_majority(m, position, leads, &config_before);
            self.check_zones(m, position, &config_before);
            self.check_leases(m);
            self.stir(position.index);
        }
    }

    /// The membership, with its place, that `m` just made as the leader of a forced election.
    fn installed_by_force(
        &self,
        m: usize,
        before: &Before,
        effects: &Effects,
    ) -> Option<(Index, Config)> {
        let role = effects.role.unwrap_or(self.members[m].role);
        let RoleState::Leader { term } = role else { return None };
        let made = effects.append.iter().skip(before.appended);
        let mut configs = made.filter(|e| e.term == term && e.kind == EntryKind::Config);
        let entry = configs.next()?;
        let config = Config::decode(&entry.data).ok().filter(|c| c.audit == AUDIT)?;
        Some((entry.index, config))
    }

    pub(super) fn carry_out(&mut self, m: usize) {
        let mut effects = std::mem::take(&mut self.members[m].effects);
        let run = self.members[m].run;
        self.carry_out_in_order(m, &mut effects);
        let member = &mut self.members[m];
        if member.run != run {
            return;
        }
        effects.clear();
        member.effects = effects;
        for _ in std::mem::take(&mut member.installing) {
            self.coverage.mark(Mark::SnapshotRefused);
        }
    }

    fn carry_out_in_order(&mut self, m: usize, effects: &mut Effects) {
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
        // From here on others may learn of it.
        let member = &mut self.members[m];
        let log = CoreLog { live: &member.disk.live, effects };
        for term in member.elected.drain(..) {
            self.oracle.elected(member.id, term, log.last(), |i| log.term_at(i));
        }
        for (entry, prev_term) in member.made.drain(..) {
            self.oracle.appended(member.id, &entry, prev_term, true);
        }
        if let Some(meta) = effects.reset_log.take() {
            self.reset_log(m, &meta);
        }
        if let Some(from) = effects.truncate_from {
            self.truncate(m, from);
        }
        self.append(m, &mut effects.append);
        if crash == Some(CrashPoint::AfterAppend) {
            return self.crash(m);
        }
        for (sent, message) in effects.messages.drain(..).enumerate() {
            if crash == Some(CrashPoint::AfterMessages(sent)) {
                return self.crash(m);
            }
            self.send_message(m, message);
        }
        if let Some(upto) = effects.commit {
            self.committed(m, upto);
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
        if let Some(role) = effects.role {
            self.role_changed(m, role);
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
        self.mark(Mark::CrashInsideStep);
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
        let received = std::mem::take(&mut self.members[m].installing);
        let Some(snapshot) = received.into_iter().find(|s| s.last == meta.last) else {
            return self.oracle.fail(Rule::Contract, || {
                format!("m{m} resets its log to {}, but got no such snapshot", show(meta.last))
            });
        };
        if *snapshot.config != meta.config {
            self.oracle.fail(Rule::Contract, || {
                format!("m{m} resets its log to {meta:?}, the snapshot has {:?}", snapshot.config)
            });
        }
        self.mark(Mark::SnapshotInstalled);
        self.members[m].disk.reset(meta.last, Rc::clone(&snapshot.config));
        self.members[m].persisted = 0;
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
        member.persisted = member.persisted.min(from - 1);
        self.mark(Mark::Truncation);
        self.provoke();
        if self.tells() {
            self.note(format!("m{m} cuts its log from {from} on"));
        }
        self.start_sync(m);
    }

    fn append(&mut self, m: usize, entries: &mut Vec<Entry>) {
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
            self.oracle.appended(member.id, &entry, last.term, false);
            let leads = self.oracle.leader_of(entry.term) == Some(member.id);
            let is_config = entry.kind == EntryKind::Config;
            member.disk.append(entry);
            if leads && is_config && member.disk.live.config().1.is_joint() {
                self.coverage.mark(Mark::JointMembership);
            }
        }
        if self.plant == Some(Plant::AckBeforeSync) {
            let (run, upto) = (member.run, member.disk.live.last().index);
            self.schedule.after(1, Event::Persisted { m, run, upto });
        }
        self.start_sync(m);
    }

    fn role_changed(&mut self, m: usize, role: RoleState) {
        if self.tells() {
            self.note(format!("m{m} is now {role:?}"));
        }
        if let RoleState::Leader { term } = role {
            self.stir(term ^ (m as u64) << 32);
            self.provoke();
        }
        self.leader_changed(m);
    }

    fn send_message(&mut self, m: usize, mut message: Message) {
        let member = &self.members[m];
        // A pre-vote speaks of a term that may never come.
        let pre_vote =
            matches!(message.body, MessageBody::PreVote { .. } | MessageBody::PreVoteReply { .. });
        if !pre_vote {
            self.oracle.spoke(member.id, message.term);
            let vote = match &message.body {
                MessageBody::VoteReply { granted: true } => Some(message.to),
                MessageBody::Vote { .. } => Some(member.id),
                _ => None,
            };
            check_on_disk(&mut self.oracle, member, message.term, vote);
            if let Some(candidate) = vote {
                self.oracle.voted(member.id, message.term, candidate);
            }
        }
        if matches!(message.body, MessageBody::TimeoutNow) {
            self.coverage.mark(Mark::HandOver);
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

    /// The member holds its log committed up to `upto`.
    fn committed(&mut self, m: usize, upto: Index) {
        if self.tells() {
            self.note(format!("m{m} commits up to {upto}"));
        }
        self.members[m].commit = upto;
        self.apply_soon(m);
    }
}

impl CoreLog<'_> {
    fn last(&self) -> Index {
        let appended = self.effects.append.last().map(|entry| entry.index);
        let cut = self.effects.truncate_from.map(|from| from - 1);
        let reset = self.effects.reset_log.as_ref().map(|meta| meta.last.index);
        appended.unwrap_or_else(|| {
            let whole = reset.unwrap_or(self.live.last().index);
            cut.map_or(whole, |cut| cut.min(whole))
        })
    }

    fn term_at(&self, index: Index) -> Option<Term> {
        let Effects { append, truncate_from, reset_log, .. } = self.effects;
        if let Some(at) = append.first().and_then(|first| index.checked_sub(first.index)) {
            return append.get(at as usize).map(|entry| entry.term);
        }
        if truncate_from.is_some_and(|from| index >= from) {
            return None;
        }
        match reset_log {
            Some(meta) => (index == meta.last.index).then_some(meta.last.term),
            None => self.live.term_at(index),
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
