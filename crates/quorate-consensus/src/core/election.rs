//! Elections: when to stand, who gets a vote.
//!
//! A member stands an election timeout after it last heard a leader, and a little at random; if it
//! does not get through, soon again: what asks for pre-votes costs nobody anything, and a voter that
//! heard the leader a moment later than the others refuses only for that moment. An election
//! proper, which waits for disks, has a whole election timeout.
//!
//! Invariants:
//! - At most one vote a term, on disk before it leaves (`Effects::hard_state`).
//! - Nobody stands for real before a quorum has said that it would vote (pre-vote), except at the
//!   leader's own request.
//! - Only voters stand. A member whose removal is in its log, but not known to be committed, is
//!   still one: its log may be the only one that can be elected (Ongaro's thesis, 4.2.2). It wins
//!   by the votes of the configuration that removes it.

use super::{Consensus, Role};
use crate::config::Config;
use crate::effects::Effects;
use crate::message::MessageBody;
use crate::quorum::{self, Tally};
use crate::types::{HardState, LogPosition, MemberId, Term};
use std::collections::BTreeMap;

/// Answers so far, the own one included.
pub(super) struct Poll {
    pub answers: BTreeMap<MemberId, bool>,
    opened_ms: u64,
    /// The membership to be installed by force, if that is what this election is about.
    pub forced: Option<Config>,
}

impl Consensus {
    /// Draws the next wait for a leader. The spread is small, for it is time without a leader: of
    /// two that stand at the same moment one gives way, so nothing depends on it.
    pub(super) fn wait_for_leader(&mut self) {
        let base = self.options.election_timeout_ms.max(1);
        // Voters that heard the leader last a moment later than this member do not refuse.
        let moment = base / 16;
        let spread = self.rng.between(moment, moment + (base / 4).max(2));
        // Those who could lead for long go first.
        let behind = match self.is_unfit() {
            true => base,
            false if self.lags_behind_others() => base / 2,
            false => 0,
        };
        let wait = base.saturating_add(spread).saturating_add(behind);
        self.election_due_ms = self.now_ms.saturating_add(wait);
    }

    /// A leader of this term spoke.
    pub(super) fn hear_leader(&mut self, leader: MemberId, fx: &mut Effects) {
        if !matches!(self.role, Role::Follower) {
            self.become_follower(self.hard.term, Some(leader), fx);
        }
        self.set_leader(Some(leader), fx);
        self.leader_heard_ms = Some(self.now_ms);
        self.in_office_ms = self.now_ms;
        self.hurry_until_ms = 0;
        self.out_of_reach = false;
        self.wait_for_leader();
    }

    /// The leader of an earlier term told somebody to stand, so nobody owes it anything any more.
    pub(super) fn leader_took_leave(&mut self) {
        self.leader_heard_ms = None;
    }

    /// Whether a leader is in office, as far as this member knows. With `lease_reads` it has
    /// promised so much to the leader it heard last, even if it lost sight of it since.
    pub(super) fn lease_refuses_votes(&self) -> bool {
        if self.is_leader() {
            return true;
        }
        let within =
            |heard: u64| self.now_ms < heard.saturating_add(self.options.election_timeout_ms);
        (self.leader.is_some() || self.options.lease_reads)
            && self.leader_heard_ms.is_some_and(within)
    }

    /// Stands for election if it may.
    pub(super) fn stand(&mut self, fx: &mut Effects) {
        self.wait_for_leader();
        if !self.is_leader() {
            // Nor has one who does not stand.
            self.set_leader(None, fx);
        }
        if !self.may_stand() {
            return;
        }
        self.election_due_ms = self.now_ms + self.next_try();
        self.round_trips.ask(self.now_ms);
        if let Role::PreCandidate(poll) = &self.role {
            self.out_of_reach |= self.now_ms >= poll.opened_ms.saturating_add(self.turn_ms());
        }
        self.role = Role::PreCandidate(Poll::open(self.options.id, self.now_ms));
        let body = MessageBody::PreVote { last: self.log.last() };
        self.ask_voters(self.hard.term + 1, body, fx);
        self.count_pre_votes(fx);
    }

    /// Stands for real in the next term; `transfer` at the leader's request.
    pub(super) fn campaign(&mut self, transfer: bool, fx: &mut Effects) {
        if !self.may_stand() {
            return;
        }
        let term = self.hard.term + 1;
        self.become_follower(term, None, fx);
        if transfer {
            self.leader_took_leave();
        }
        // Votes have to travel, too.
        self.election_due_ms = self.election_due_ms.saturating_add(2 * self.farthest_ms());
        self.hard = HardState { term, voted_for: Some(self.options.id) };
        self.role = Role::Candidate(Poll::open(self.options.id, self.now_ms));
        self.ask_voters(term, MessageBody::Vote { last: self.log.last(), transfer }, fx);
        self.count_votes(fx);
    }

    pub(super) fn on_pre_vote(
        &mut self,
        from: MemberId,
        term: Term,
        last: LogPosition,
        fx: &mut Effects,
    ) {
        let free = term > self.hard.term || (term == self.hard.term && self.vote_is_free(from));
        let granted = free
            && last >= self.log.last()
            && !self.lease_refuses_votes()
            && !self.is_unasked(from, term)
            && !self.outranks(from, last);
        if granted {
            if matches!(self.role, Role::PreCandidate(_)) {
                // One of two that stand at the same moment gives way, or they split the votes.
                self.role = Role::Follower;
                self.election_due_ms = self.election_due_ms.max(self.now_ms + self.hurried_wait());
            }
            self.send_in(term, from, MessageBody::PreVoteReply { granted }, fx);
        } else {
            if free && !self.lease_refuses_votes() && last < self.log.last() && self.is_unfit() {
                // Who stands lacks something that is here, so perhaps only this member can win.
                self.election_due_ms = self.election_due_ms.min(self.now_ms + self.hurried_wait());
            }
            self.send(from, MessageBody::PreVoteReply { granted }, fx);
        }
    }

    pub(super) fn on_pre_vote_reply(
        &mut self,
        from: MemberId,
        term: Term,
        granted: bool,
        fx: &mut Effects,
    ) {
        let Role::PreCandidate(poll) = &mut self.role else {
            return;
        };
        self.round_trips.answered(from, self.now_ms);
        let current = !granted || term == self.hard.term + 1;
        if current && self.configs.current().is_voter(from) {
            poll.answers.insert(from, granted);
            self.count_pre_votes(fx);
        }
    }

    pub(super) fn on_vote(
        &mut self,
        from: MemberId,
        last: LogPosition,
        transfer: bool,
        fx: &mut Effects,
    ) {
        let granted = self.grant_vote(from, last);
        if granted {
            // It is about to lead.
            self.in_office_ms = self.now_ms;
        }
        if transfer && !granted && self.vote_is_free(from) {
            // Whom the leader told to stand lacks something that the leader had sent here.
            self.election_due_ms = self.election_due_ms.min(self.now_ms + self.hurried_wait());
        }
        self.send(from, MessageBody::VoteReply { granted }, fx);
    }

    pub(super) fn grant_vote(&mut self, from: MemberId, last: LogPosition) -> bool {
        let granted = self.vote_is_free(from) && last >= self.log.last();
        if granted {
            self.hard.voted_for = Some(from);
            self.role = Role::Follower;
            self.wait_for_leader();
        }
        granted
    }

    pub(super) fn on_vote_reply(&mut self, from: MemberId, granted: bool, fx: &mut Effects) {
        let Role::Candidate(poll) = &mut self.role else {
            return;
        };
        if poll.forced.is_none() && self.configs.current().is_voter(from) {
            poll.answers.insert(from, granted);
            self.count_votes(fx);
        }
    }

    /// The connection to `peer` broke. A leader stops sending ahead; a follower takes it that the
    /// leader's process is gone and asks the others at once whether they think so too.
    pub(super) fn on_unreachable(&mut self, peer: MemberId, fx: &mut Effects) {
        if let Some(leadership) = self.leadership() {
            if let Some(progress) = leadership.peers.get_mut(&peer) {
                progress.connection_lost();
            }
            return;
        }
        if self.leader != Some(peer) || self.retired {
            return;
        }
        let timeout_ms = self.options.election_timeout_ms;
        if self.options.lease_reads {
            // The promise holds, but not a moment longer.
            let promised = self.leader_heard_ms.unwrap_or(self.now_ms).saturating_add(timeout_ms);
            self.election_due_ms = self.election_due_ms.min(promised);
            return;
        }
        self.leader_heard_ms = None;
        self.hurry_until_ms = self.now_ms.saturating_add(timeout_ms.saturating_mul(2));
        self.set_leader(None, fx);
        if self.is_unfit() {
            self.election_due_ms = self.now_ms + self.hurried_wait();
        } else {
            self.stand(fx);
        }
    }

    fn may_stand(&self) -> bool {
        !self.retired
            && !self.terms_are_used_up()
            && !self.is_leader()
            && self.configs.possible(self.commit).any(|c| c.is_voter(self.options.id))
    }

    /// Whether the vote of this term is `from`'s, or may still become it.
    fn vote_is_free(&self, from: MemberId) -> bool {
        self.leader.is_none() && self.hard.voted_for.is_none_or(|voted| voted == from)
    }

    /// Whether this member is in the same pre-vote with a better claim (a log as good, more
    /// priority, less lag, or a higher id) and may still get `other`'s vote. Only for a moment, and not while it
    /// hears no quorum, lest it stand in the way for good.
    fn outranks(&self, other: MemberId, last: LogPosition) -> bool {
        let Role::PreCandidate(poll) = &self.role else {
            return false;
        };
        last == self.log.last()
            && !self.out_of_reach
            && self.claim(self.options.id) > self.claim(other)
            && poll.answers.get(&other) != Some(&false)
            && self.now_ms < poll.opened_ms.saturating_add(self.turn_ms())
    }

    fn ask_voters(&self, term: Term, body: MessageBody, fx: &mut Effects) {
        let config = self.config();
        for id in config.everybody().filter(|id| config.is_voter(*id) && *id != self.options.id) {
            self.send_in(term, id, body.clone(), fx);
        }
    }

    fn count_pre_votes(&mut self, fx: &mut Effects) {
        let Role::PreCandidate(poll) = &self.role else {
            return;
        };
        let tally = poll.tally(self.configs.current());
        self.out_of_reach &= tally == Tally::Pending;
        match tally {
            Tally::Won => self.campaign(false, fx),
            Tally::Lost => self.role = Role::Follower,
            Tally::Pending => {}
        }
    }

    fn count_votes(&mut self, fx: &mut Effects) {
        let Role::Candidate(poll) = &self.role else {
            return;
        };
        match poll.tally(self.configs.current()) {
            Tally::Won => self.become_leader(None, fx),
            Tally::Lost => {
                self.role = Role::Follower;
                if self.now_ms < self.hurry_until_ms {
                    self.election_due_ms = self.now_ms + self.hurried_wait();
                }
            }
            Tally::Pending => {}
        }
    }

    /// How long to leave it to somebody else.
    fn hurried_wait(&mut self) -> u64 {
        let turn_ms = self.turn_ms();
        self.rng.between(turn_ms / 2, turn_ms + turn_ms / 2)
    }

    /// From one pre-vote of this member to the next: as far as it knows, long enough for the
    /// answers.
    fn next_try(&mut self) -> u64 {
        if self.now_ms < self.hurry_until_ms {
            return self.hurried_wait();
        }
        let turn_ms = self.turn_ms();
        // Whoever is not fit to lead leaves the others more time, each time.
        let turns = if self.is_unfit() { 4 } else { 1 };
        self.rng.between(turn_ms * turns, 2 * turn_ms * turns + 1)
    }

    /// The time of one question and its answers: about a heartbeat interval, or more where members
    /// are far from each other.
    fn turn_ms(&self) -> u64 {
        self.options.heartbeat_interval_ms.max(2 * self.farthest_ms())
    }
}

impl Poll {
    pub fn open(own: MemberId, now_ms: u64) -> Self {
        Self { answers: BTreeMap::from([(own, true)]), opened_ms: now_ms, forced: None }
    }

    /// The same about a membership to be installed by force.
    pub fn about(self, config: Config) -> Self {
        Self { forced: Some(config), ..self }
    }

    fn tally(&self, config: &Config) -> Tally {
        quorum::tally(config, |voter| self.answers.get(&voter).copied())
    }
}
