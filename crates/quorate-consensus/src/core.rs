//! The state machine: what a member remembers, and which event goes where.
//!
//! One file per concern beside this one: [`election`] (timers, pre-vote, votes), [`heartbeat`]
//! (rounds, check-quorum, lease), [`replicate`] (a leader sending), [`follower`] (everybody else
//! receiving), [`believed`] (from whom a message counts), [`commit`], [`held`] (a commit that a
//! follower counts), [`awaited`] (who is told of a commit at once), [`lags`] (of the databases above),
//! [`read`], [`round_trips`], [`membership`], [`transfer`], [`transfer_target`], [`alone`] (one of two
//! alone), [`forced`] (a majority given up for lost), [`status`] (a look inside).
//!
//! Invariants:
//! - `hard` never goes back (but for [`forced`]), and `Effects::hard_state` leaves with the first effects after a change.
//! - `commit` never goes back and is at most the end of the log.
//! - A member that was told to step down (`retired`) promises nothing any more: it sends neither
//!   votes nor acknowledgements, so it need not remember terms either.

mod alone;
mod awaited;
mod believed;
mod commit;
mod election;
mod follower;
mod forced;
mod heartbeat;
mod held;
mod lags;
mod membership;
mod outgrown;
mod read;
mod replicate;
mod round_trips;
mod status;
mod transfer;
mod transfer_target;

#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::effects::{Effects, RoleState};
use crate::event::{Event, Options, Restored, StepError};
use crate::history::ConfigHistory;
use crate::log::Log;
use crate::message::{Message, MessageBody, TERM_MAX};
use crate::progress::Progress;
use crate::rng::Rng;
use crate::types::{HardState, Index, LogPosition, MemberId, Term};
use election::Poll;
use heartbeat::Rounds;
use held::Held;
use lags::Lags;
use outgrown::Ahead;
use read::{ForwardedReads, LeaderReads};
use round_trips::RoundTrips;
use std::collections::BTreeMap;
use transfer::Transfer;
use transfer_target::Transfers;

/// One member of the group. See the crate documentation for how to drive it.
pub struct Consensus {
    options: Options,
    rng: Rng,
    now_ms: u64,
    hard: HardState,
    /// What the driver was last told to persist.
    hard_reported: HardState,
    log: Log,
    configs: ConfigHistory,
    commit: Index,
    role: Role,
    role_reported: RoleState,
    leader: Option<MemberId>,
    /// A leader whose log has other entries than those that are committed here, and its term: nobody to follow.
    contradicts: Option<(Term, MemberId)>,
    /// When a leader was last heard: until an election timeout later nobody else gets a vote.
    leader_heard_ms: Option<u64>,
    /// When a leader was last heard or voted for, or this member last led with a majority, or began.
    in_office_ms: u64,
    /// When to stand for election, unless a leader is heard before.
    election_due_ms: u64,
    /// The leader is probably dead: until then, repeat lost pre-votes quickly.
    hurry_until_ms: u64,
    /// The last pre-vote that ran for its whole turn was not decided: no quorum answered.
    out_of_reach: bool,
    /// End of the part of the log that this term's leader has shown to equal its own.
    verified: Index,
    /// The highest index acknowledged to this term's leader.
    acknowledged: Index,
    /// What this term's leader said to be committed.
    told: Index,
    held: Held,
    /// When a member without a vote may next lead this one on to another term, if it leads.
    outgrow_due_ms: u64,
    /// Until when the leaps of others' terms that were taken over so far would last, one after each pause.
    leaps_due_ms: u64,
    reads: ForwardedReads,
    transfers: Transfers,
    lags: Lags,
    /// Clients wait somewhere until other members have applied what is committed.
    applying_awaited: bool,
    round_trips: RoundTrips,
    retired: bool,
}

enum Role {
    Follower,
    PreCandidate(Poll),
    Candidate(Poll),
    Leader(Box<Leadership>),
}

/// What only a leader has.
struct Leadership {
    /// Everybody else that gets the log.
    peers: BTreeMap<MemberId, Progress>,
    started_ms: u64,
    /// The first entry of this term; once it is committed, so is everything before.
    noop: Index,
    rounds: Rounds,
    reads: LeaderReads,
    transfer: Option<Transfer>,
    ahead: Option<Ahead>,
    /// Somebody was allowed to stand in spite of the lease.
    lease_given_up: bool,
}

impl Consensus {
    /// A member as the disk left it. With an empty config it waits to be added by a leader.
    pub fn new(options: Options, restored: Restored, now_ms: u64) -> Self {
        let base = restored.snapshot.last;
        let last = restored.last.max(base);
        let log = Log::new(base, last, &restored.term_runs, options.recent_bytes_max);
        let hard_reported = restored.hard_state;
        // A log that is ahead of the term file (which cannot be, unless a file was replaced) must
        // not make the member vote twice in a term it has seen.
        let mut hard = hard_reported;
        if log.last().term > hard.term {
            hard = HardState { term: log.last().term, voted_for: None };
        }
        let mut rng = Rng::new(options.seed);
        let reads = ForwardedReads::new(rng.next() ^ now_ms.rotate_left(32));
        let configs = ConfigHistory::new(restored.snapshot.config, base.index, restored.configs);
        let mut member = Self {
            rng,
            now_ms,
            hard,
            hard_reported,
            configs,
            commit: restored.commit.clamp(base.index, log.last().index),
            log,
            role: Role::Follower,
            role_reported: RoleState::Follower { term: hard.term, leader: None },
            leader: None,
            contradicts: None,
            // Before its restart it may have promised a leader not to vote.
            leader_heard_ms: options.lease_reads.then_some(now_ms),
            in_office_ms: now_ms,
            election_due_ms: now_ms,
            hurry_until_ms: 0,
            out_of_reach: false,
            verified: 0,
            acknowledged: 0,
            told: 0,
            held: Held::default(),
            outgrow_due_ms: 0,
            leaps_due_ms: 0,
            reads,
            transfers: Transfers::new(now_ms),
            lags: Lags::default(),
            applying_awaited: false,
            round_trips: RoundTrips::default(),
            retired: false,
            options,
        };
        // Whoever decides alone need not wait, unless it may have made that promise: to a leader
        // that has just removed itself.
        if !member.config().is_sole_voter(member.options.id) || member.options.lease_reads {
            member.wait_for_leader();
        }
        member
    }

    /// Takes one event at `now_ms` (never goes back) and adds what is to be done to `effects`,
    /// which may hold the effects of earlier steps.
    pub fn step(
        &mut self,
        now_ms: u64,
        event: Event,
        effects: &mut Effects,
    ) -> Result<(), StepError> {
        self.now_ms = self.now_ms.max(now_ms);
        let outcome = self.dispatch(event, effects);
        self.tell_changes(effects);
        outcome
    }

    pub fn id(&self) -> MemberId {
        self.options.id
    }

    pub fn term(&self) -> Term {
        self.hard.term
    }

    /// The end of the log.
    pub fn last(&self) -> LogPosition {
        self.log.last()
    }

    /// How far the log is on disk, as far as this member was told.
    pub fn persisted(&self) -> Index {
        self.log.persisted()
    }

    pub fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    pub fn leader(&self) -> Option<MemberId> {
        self.leader
    }

    fn dispatch(&mut self, event: Event, fx: &mut Effects) -> Result<(), StepError> {
        match event {
            Event::Tick => self.tick(fx),
            Event::Receive(message) => self.receive(message, fx),
            Event::Propose(batch) => return self.propose(self.options.id, batch, fx),
            Event::ProposeFor(member, batch) => return self.propose(member, batch, fx),
            Event::Persisted(position) => self.on_persisted(position, fx),
            Event::Fetched { to, from, entries } => self.on_fetched(to, from, entries, fx),
            Event::FetchUnavailable { to } => self.on_fetch_unavailable(to, fx),
            Event::InstallSnapshot { from, term, meta } => {
                self.install_snapshot(from, term, meta, fx);
            }
            Event::SnapshotSent { to, last, ok } => self.on_snapshot_sent(to, last, ok),
            Event::SnapshotWelcome(to) => self.welcome_snapshot(to),
            Event::ReadIndex { ctx } => self.read_index(ctx, fx),
            Event::ForceQuorum { keep, audit } => return self.force_quorum(keep, audit, fx),
            Event::ChangeMembership(change) => return self.change_membership(change, fx),
            Event::TransferLeadership(to) => return self.transfer_leadership(to, fx),
            Event::ContinueAlone(gone) => return self.continue_alone(gone, fx),
            Event::Connected(peer) => {
                self.held.forget(peer);
                self.send_again(peer, fx);
            }
            Event::Unreachable(peer) => self.on_unreachable(peer, fx),
            Event::Heard(peer) => self.on_heard(peer, fx),
            Event::Compacted(upto, _) => self.on_compacted(upto),
            Event::HostHangs(hangs) => self.host_hangs(hangs),
            Event::Lag { member, lag } => self.lags.set(member, lag),
            Event::Awaited(awaited) => self.set_applying_awaited(awaited, fx),
            Event::StepDown => self.retire(fx),
        }
        Ok(())
    }

    fn tick(&mut self, fx: &mut Effects) {
        self.expire_reads(fx);
        self.watch_disk();
        if self.is_leader() {
            self.tick_leader(fx);
        } else if self.now_ms >= self.election_due_ms {
            self.stand(fx);
        }
    }

    /// Rules on terms that hold for every message, then the message itself.
    fn receive(&mut self, message: Message, fx: &mut Effects) {
        let me = self.options.id;
        if self.retired || message.to != me || message.from == me || !self.believes(&message, fx) {
            return;
        }
        let Message { from, term, body, .. } = message;
        match body {
            MessageBody::PreVote { last } => return self.on_pre_vote(from, term, last, fx),
            MessageBody::PreVoteReply { granted: true } => {
                return self.on_pre_vote_reply(from, term, true, fx);
            }
            // A member that was cut off, or removed, must not depose a leader others hear.
            MessageBody::Vote { transfer: false, .. } | MessageBody::ForcedVote { .. }
                if self.lease_refuses_votes() =>
            {
                return;
            }
            // Not to this member as a leader: it tells of no other term but this.
            MessageBody::AppendReply { matched } if !self.is_leader() => {
                if term == self.hard.term {
                    self.on_held(from, matched, fx);
                }
                return;
            }
            _ => {}
        }
        if term > self.hard.term {
            self.note_leap(term);
            self.become_follower(term, None, fx);
            if matches!(body, MessageBody::Vote { transfer: true, .. }) {
                self.leader_took_leave();
            }
        } else if term < self.hard.term {
            match body {
                MessageBody::ForcedVote { last } if self.goes_back_with(term, last) => {
                    self.go_back_with(term, fx);
                }
                _ => return self.answer_stale(from, &body, fx),
            }
        }
        match body {
            MessageBody::PreVote { .. } => {}
            MessageBody::PreVoteReply { granted } => {
                self.on_pre_vote_reply(from, term, granted, fx)
            }
            MessageBody::Vote { last, transfer } => self.on_vote(from, last, transfer, fx),
            MessageBody::VoteReply { granted } => self.on_vote_reply(from, granted, fx),
            MessageBody::ForcedVote { last } => self.on_forced_vote(from, last, fx),
            MessageBody::ForcedVoteReply { granted, commit } => {
                self.on_forced_vote_reply(from, granted, commit, fx);
            }
            MessageBody::Append { prev, entries, commit } => {
                self.on_append(from, prev, entries, commit, fx);
            }
            MessageBody::AppendReply { matched } | MessageBody::SnapshotReply { matched } => {
                self.on_acknowledged(from, matched, fx);
            }
            MessageBody::AppendReject { rejected, hint } => {
                self.on_append_reject(from, rejected, hint, fx);
            }
            MessageBody::Heartbeat { commit, round } => self.on_heartbeat(from, commit, round, fx),
            MessageBody::HeartbeatReply { round, persisted_last } => {
                self.on_heartbeat_reply(from, round, persisted_last, fx);
            }
            MessageBody::ReadIndex { ctx } => self.on_remote_read(from, ctx, fx),
            MessageBody::ReadIndexReply { ctx, index } => {
                self.on_read_reply(from, ctx, index, fx);
            }
            MessageBody::TimeoutNow => self.on_timeout_now(from, fx),
        }
    }

    fn on_persisted(&mut self, position: LogPosition, fx: &mut Effects) {
        // Even a report that gets no entry further says so: a long one takes several syncs.
        self.disk_moved();
        if self.retired || !self.log.mark_persisted(position) {
            return;
        }
        if self.is_leader() {
            self.advance_commit(fx);
            self.show_own_disk(fx);
        } else {
            self.count_held(fx);
            self.acknowledge(false, fx);
        }
    }

    fn on_compacted(&mut self, upto: LogPosition) {
        let durable = self.commit.min(self.log.persisted());
        if upto.index > self.log.base().index && upto.index <= durable && self.log.contains(upto) {
            self.log.compact(upto);
            self.configs.compact(upto.index);
        }
    }

    /// Follower of `leader` (or of nobody known yet) in `term`, which is not below the current.
    fn become_follower(&mut self, term: Term, leader: Option<MemberId>, fx: &mut Effects) {
        if term > self.hard.term {
            self.hard = HardState { term, voted_for: None };
            self.forget_term();
        }
        if let Role::Leader(leadership) = &mut self.role {
            leadership.reads.fail_all(fx);
            fx.stepped_down = true;
        }
        self.role = Role::Follower;
        self.set_leader(leader, fx);
        self.wait_for_leader();
    }

    /// What was heard in a term counts in no other.
    fn forget_term(&mut self) {
        (self.verified, self.acknowledged, self.told) = (0, 0, 0);
        self.held.clear();
    }

    fn set_leader(&mut self, leader: Option<MemberId>, fx: &mut Effects) {
        if self.leader == leader {
            return;
        }
        if self.leader.is_some() {
            self.reads.fail_forwarded(fx);
        }
        if leader.is_some() {
            self.round_trips.settle();
        }
        self.leader = leader;
        if let Some(leader) = leader.filter(|leader| *leader != self.options.id) {
            self.offer_settled(leader);
        }
        self.forward_reads(fx);
    }

    fn config(&self) -> &Config {
        self.configs.current()
    }

    fn leadership(&mut self) -> Option<&mut Leadership> {
        match &mut self.role {
            Role::Leader(leadership) => Some(leadership),
            _ => None,
        }
    }

    fn send(&self, to: MemberId, body: MessageBody, fx: &mut Effects) {
        self.send_in(self.hard.term, to, body, fx);
    }

    fn send_in(&self, term: Term, to: MemberId, body: MessageBody, fx: &mut Effects) {
        fx.messages.push(Message { from: self.options.id, to, term, body });
    }

    fn role_state(&self) -> RoleState {
        let term = self.hard.term;
        match self.role {
            Role::Follower => RoleState::Follower { term, leader: self.leader },
            Role::PreCandidate(_) => RoleState::PreCandidate { term },
            Role::Candidate(_) => RoleState::Candidate { term },
            Role::Leader(_) => RoleState::Leader { term },
        }
    }

    fn tell_changes(&mut self, fx: &mut Effects) {
        if self.hard != self.hard_reported {
            self.hard_reported = self.hard;
            fx.hard_state = Some(self.hard);
        }
        let role = self.role_state();
        if role != self.role_reported {
            self.role_reported = role;
            fx.role = Some(role);
        }
    }
}

// A term at the limit can neither be left nor be reached by honest elections.
const _: () = assert!(TERM_MAX < Term::MAX);
