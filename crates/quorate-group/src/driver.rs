//! The consensus core behind its lock, and the carrying out of what it decides.
//!
//! There is no thread of its own: whichever thread has an event locks the driver, steps the core
//! and carries the effects out; packets are put into outboxes under the lock and written after it
//! is released (`Member::finish`).
//!
//! Invariants:
//! - term and vote are durable before any message of the same step is in an outbox;
//! - `fed` (what the sequencer may read) is committed *and* on this member's own disk, and never
//!   goes back: what the layer above has seen, the own log can show again after a crash.

use crate::machine::LogLevel;
use crate::member::Member;
use crate::net::peer::Peer;
use crate::notices::Notice;
use quorate_consensus::follow::Writes;
use quorate_consensus::{
    Config, Consensus, Effects, Event, Index, MemberId, Message, Proposal, RoleState, Rules,
    StepError, Term,
};
use quorate_wal::WalError;
use quorate_wire::Packet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Proposals given to the core (or to the leader) in one piece.
const BATCH_BYTES: usize = 1 << 20;
/// Forwarded proposals that may wait in the outbox to the leader.
const FORWARD_BYTES: usize = 8 << 20;

pub(crate) struct Driver {
    pub consensus: Consensus,
    pub peers: BTreeMap<MemberId, Arc<Peer>>,
    pub config: Config,
    pub leadership: Leadership,
    effects: Effects,
    /// Peers with something new in the outbox.
    touched: Vec<Arc<Peer>>,
    commit: Index,
    persisted: Index,
    /// How often the log has said that its disk gets on.
    pub disk_reports: u64,
    fed: Index,
    fed_moved: bool,
    /// Others' proposals that came while leadership was on its way to somebody who may not take
    /// it: proposed as soon as that is settled.
    deferred: Vec<Proposal>,
    pub writes: Writes,
    /// What the observer knows.
    rules_told: Option<Rules>,
}

/// Who leads, as far as this member knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leadership {
    pub term: Term,
    pub leader: Option<MemberId>,
    pub is_leader: bool,
    pub since: Instant,
}

impl Driver {
    pub fn new(consensus: Consensus, config: Config, persisted: Index, commit: Index) -> Self {
        let leadership =
            Leadership { term: 0, leader: None, is_leader: false, since: Instant::now() };
        Self {
            consensus,
            peers: BTreeMap::new(),
            config,
            leadership,
            effects: Effects::default(),
            touched: Vec::new(),
            commit,
            persisted,
            disk_reports: 0,
            fed: commit.min(persisted),
            fed_moved: true,
            deferred: Vec::new(),
            writes: Writes::default(),
            rules_told: None,
        }
    }

    /// Steps the core and carries the effects out. A member whose log has failed hears nothing.
    pub fn step(&mut self, member: &Member, event: Event) -> Result<(), StepError> {
        if member.has_failed() {
            return Err(StepError::NotLeader { leader: None });
        }
        self.step_unchecked(member, event)
    }

    /// A sync has ended. What it covers is asked of the log here, under the core's lock: between
    /// the sync and now an entry may have been cut off and appended again under the same term and
    /// index, and that one is not on disk.
    pub fn persisted(&mut self, member: &Member) {
        self.disk_reports += 1;
        let position = member.wal.persisted();
        if member.wal.term_at(position.index) == Some(position.term) {
            self.persisted = position.index;
        }
        self.ignore_refusal(member, Event::Persisted(position));
    }

    /// The log has failed: lead no more.
    pub fn step_down(&mut self, member: &Member) {
        let stepped = self.step_unchecked(member, Event::StepDown);
        debug_assert!(stepped.is_ok());
    }

    /// For events that the core cannot refuse in a way that matters to the caller.
    pub fn ignore_refusal(&mut self, member: &Member, event: Event) {
        if let Err(refusal) = self.step(member, event) {
            member.log(LogLevel::Debug, format!("not now: {refusal}"));
        }
    }

    /// Proposals of other members. Dropped if this member does not lead: their origin sends them
    /// again to whoever does.
    pub fn propose_for_others(&mut self, member: &Member, batch: Vec<Proposal>) {
        let event = Event::Propose(batch.clone());
        if let Err(StepError::Transferring { .. }) = self.step(member, event) {
            self.deferred.extend(batch);
        }
    }

    /// Proposes, or forwards to the leader, what waits. Called before the lock is released.
    pub fn drain_proposals(&mut self, member: &Member) {
        while member.pending.take_fresh() {
            match self.leadership.leader {
                Some(_) if self.leadership.is_leader => self.propose_pending(member),
                Some(leader) => self.forward_pending(member, leader),
                None => {}
            }
        }
    }

    /// Tries again what a transfer of leadership held up.
    pub fn retry_deferred(&mut self, member: &Member) {
        if !self.deferred.is_empty() {
            let batch = std::mem::take(&mut self.deferred);
            self.propose_for_others(member, batch);
        }
        if self.leadership.is_leader && member.pending.has_queued() {
            member.pending.set_fresh();
        }
    }

    pub fn send(&mut self, to: MemberId, packet: Packet) {
        let Some(peer) = self.peers.get(&to) else { return };
        if peer.push(packet) && !self.touched.iter().any(|touched| touched.id == to) {
            self.touched.push(peer.clone());
        }
    }

    pub fn take_touched(&mut self) -> Vec<Arc<Peer>> {
        std::mem::take(&mut self.touched)
    }

    /// How far the sequencer may read, if that has moved.
    pub fn take_fed(&mut self) -> Option<Index> {
        std::mem::take(&mut self.fed_moved).then_some(self.fed)
    }

    fn step_unchecked(&mut self, member: &Member, event: Event) -> Result<(), StepError> {
        let mut effects = std::mem::take(&mut self.effects);
        let stepped = self.consensus.step(member.now_ms(), event, &mut effects);
        if let Err(error) = self.carry_out(member, &mut effects) {
            member.log_failed(self, &error);
        }
        effects.clear();
        self.effects = effects;
        stepped
    }

    fn carry_out(&mut self, member: &Member, effects: &mut Effects) -> Result<(), Arc<WalError>> {
        if let Some(state) = effects.hard_state {
            member.wal.save_hard_state(state)?;
        }
        if let Some(meta) = &effects.reset_log {
            member.progress.install(meta.last.index);
            member.wal.reset(meta.last);
            self.persisted = 0;
        }
        if let Some(from) = effects.truncate_from {
            member.wal.truncate(from);
            self.persisted = self.persisted.min(from.saturating_sub(1));
        }
        if !effects.append.is_empty() {
            member.wal.append(&effects.append);
        }
        for message in effects.messages.drain(..) {
            self.send_message(message);
        }
        if let Some(commit) = effects.commit {
            self.commit = self.commit.max(commit);
        }
        let fed = self.commit.min(self.persisted);
        if fed > self.fed {
            self.fed = fed;
            self.fed_moved = true;
        }
        if let Some(index) = effects.altered {
            member.altered(self, &format!("log index {index}"));
        }
        for fetch in effects.fetches.drain(..) {
            if let Some(peer) = self.peers.get(&fetch.to) {
                peer.request_fetch(fetch);
            }
        }
        for to in effects.snapshots.drain(..) {
            if let Some(peer) = self.peers.get(&to) {
                peer.request_snapshot();
            }
        }
        for read in effects.reads.drain(..) {
            member.reads.answer(read.ctx, read.index);
        }
        for id in effects.lost_entries.drain(..) {
            self.lost_entries(member, id);
        }
        if let Some(config) = effects.config.take() {
            self.config_changed(member, config);
        }
        if let Some(role) = effects.role {
            self.role_changed(member, role);
        }
        Ok(())
    }

    /// A member whose log was rolled back is heard no more.
    fn lost_entries(&mut self, member: &Member, id: MemberId) {
        if member.lineage.lost_entries(id) {
            let line = format!(
                "member {id} has less on disk than it had acknowledged: its log was rolled back or \
                 lost writes; it does not count any more, and is told so"
            );
            member.log(LogLevel::Error, line);
        }
        if let Some(peer) = self.peers.get(&id) {
            peer.cut();
        }
    }

    fn send_message(&mut self, message: Message) {
        self.send(message.to, Packet::Consensus(message));
    }

    fn role_changed(&mut self, member: &Member, role: RoleState) {
        let (term, leader, is_leader) = match role {
            RoleState::Leader { term } => (term, Some(member.id), true),
            RoleState::Follower { term, leader } => (term, leader, false),
            RoleState::PreCandidate { term } | RoleState::Candidate { term } => (term, None, false),
        };
        let before = self.leadership;
        if (before.term, before.leader) == (term, leader) {
            return;
        }
        self.log_leader(member, term, leader);
        self.leadership = Leadership { term, leader, is_leader, since: Instant::now() };
        self.deferred.clear();
        self.writes = Writes::default();
        if leader.is_some() {
            member.pending.requeue();
        }
        member.membership.leader_changed();
        member.notices.push(Notice::Leader(term, leader));
    }

    /// One line for each leader, and one when there is none any more.
    fn log_leader(&self, member: &Member, term: Term, leader: Option<MemberId>) {
        let line = match leader {
            Some(id) if id == member.id => format!("this node leads the group now (term {term})"),
            Some(id) => {
                let configured = self.config.members.get(&id).map(|info| info.name.clone());
                let announced = || Some(self.peers.get(&id)?.known().identity?.name);
                let name = configured.or_else(announced).unwrap_or_default();
                format!("node {name} leads the group now (term {term}, member {id})")
            }
            None if self.leadership.leader.is_some() => {
                "the group has no leader at present: one is being elected".to_owned()
            }
            None => return,
        };
        member.log(LogLevel::Info, line);
    }

    pub fn config_changed(&mut self, member: &Member, config: Config) {
        for (id, info) in &config.members {
            if *id != member.id {
                let peer = member.peer(self, *id);
                peer.set_config_addr(Some(info.addr.clone()));
            }
        }
        for (id, peer) in &self.peers {
            if !config.members.contains_key(id) {
                peer.set_config_addr(None);
            }
        }
        let rules = config.rules;
        self.config = config;
        if self.rules_told.replace(rules) != Some(rules) {
            member.notices.push(Notice::Rules(rules));
        }
        member.membership.changed(self.config.members.contains_key(&member.id));
        member.notices.wake();
    }

    fn propose_pending(&mut self, member: &Member) {
        loop {
            let batch = member.pending.take(BATCH_BYTES);
            if batch.is_empty() {
                return;
            }
            self.writes.note(member.id, batch.len(), member.now_ms());
            let event = Event::Propose(batch.iter().map(|(_, item)| item.clone()).collect());
            match self.step(member, event) {
                Ok(()) => {}
                Err(StepError::Transferring { .. }) => {
                    // For the next leader, or for `retry_deferred` if none comes.
                    member.pending.put_back(&batch);
                    return;
                }
                // Leadership has just ended: the next leader gets everything.
                Err(_) => return,
            }
        }
    }

    fn forward_pending(&mut self, member: &Member, leader: MemberId) {
        let Some(peer) = self.peers.get(&leader).cloned() else { return };
        while peer.is_connected() {
            if peer.queued_bytes() >= FORWARD_BYTES {
                member.pending.set_starved();
                return;
            }
            let batch = member.pending.take(BATCH_BYTES);
            if batch.is_empty() {
                return;
            }
            // What the leader would refuse, again and again.
            if let Some((serial, _)) = batch.iter().find(|(_, item)| !item.is_intact()) {
                return member.altered(self, &format!("its own proposal {serial}"));
            }
            let batch = batch.into_iter().map(|(_, item)| item).collect();
            self.send(leader, Packet::Forward(batch));
        }
    }
}

/// After a flush: whether forwarding may go on that had stopped for a full outbox.
pub(crate) fn has_forward_room(peer: &Peer) -> bool {
    peer.queued_bytes() < FORWARD_BYTES
}
