//! A leader's heartbeats: numbered rounds that prove, when a quorum has answered one, that nobody
//! else led when it was sent. Check-quorum, the lease and linearizable reads rest on them.
//!
//! Invariant: the lease ends no later than an election timeout (less clock drift) after the *send*
//! time of a round that a quorum answered; those that answered refuse votes for longer.

use super::{Consensus, Leadership, Role};
use crate::effects::Effects;
use crate::message::{Message, MessageBody};
use crate::progress::Progress;
use crate::quorum;
use crate::types::{Index, MemberId};
use std::collections::VecDeque;

/// The rounds of one term, from 1 on.
#[derive(Default)]
pub(super) struct Rounds {
    pub current: u64,
    /// Number and send time of recent rounds.
    sent: VecDeque<(u64, u64)>,
    pub due_ms: u64,
}

/// Rounds whose send time is remembered; an answer to an older one proves too little to matter.
const ROUNDS_KEPT: usize = 256;

impl Rounds {
    fn start(&mut self, now_ms: u64, interval_ms: u64) -> u64 {
        self.current += 1;
        if self.sent.len() == ROUNDS_KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back((self.current, now_ms));
        self.due_ms = now_ms.saturating_add(interval_ms);
        self.current
    }

    fn sent_ms(&self, round: u64) -> Option<u64> {
        let first = self.sent.front()?.0;
        self.sent.get(round.checked_sub(first)? as usize).map(|(_, sent_ms)| *sent_ms)
    }
}

impl Consensus {
    pub(super) fn tick_leader(&mut self, fx: &mut Effects) {
        if !self.quorum_heard() {
            let term = self.hard.term;
            return self.become_follower(term, None, fx);
        }
        self.in_office_ms = self.now_ms;
        self.expire_transfer();
        if self.outgrows(fx) {
            return;
        }
        self.dismiss_departed();
        self.choose_transfer_target(fx);
        let now_ms = self.now_ms;
        if self.leadership().is_some_and(|leadership| leadership.rounds.due_ms <= now_ms) {
            self.start_round(fx);
        }
    }

    /// Sends a new round of heartbeats to everybody.
    pub(super) fn start_round(&mut self, fx: &mut Effects) {
        let (now_ms, interval_ms) = (self.now_ms, self.options.heartbeat_interval_ms);
        let (from, term, commit) = (self.options.id, self.hard.term, self.commit);
        let Some(leadership) = self.leadership() else {
            return;
        };
        let round = leadership.rounds.start(now_ms, interval_ms);
        for peer in leadership.peers.values_mut() {
            peer.round_leaves(round);
            let commit = commit.min(peer.end_sent());
            peer.commit_sent = peer.commit_sent.max(commit);
            let body = MessageBody::Heartbeat { commit, round };
            fx.messages.push(Message { from, to: peer.id, term, body });
        }
        // Alone, a leader proves itself to itself.
        self.confirm_reads(fx);
    }

    pub(super) fn on_heartbeat(
        &mut self,
        from: MemberId,
        commit: Index,
        round: u64,
        fx: &mut Effects,
    ) {
        if self.is_leader() {
            return;
        }
        self.hear_leader(from, fx);
        self.follow_commit(commit, fx);
        if round > 0 {
            let persisted_last = self.log.persisted();
            self.send(from, MessageBody::HeartbeatReply { round, persisted_last }, fx);
        }
    }

    pub(super) fn on_heartbeat_reply(
        &mut self,
        from: MemberId,
        round: u64,
        persisted_last: Index,
        fx: &mut Effects,
    ) {
        let now_ms = self.now_ms;
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        let Some(peer) = leadership.peers.get_mut(&from) else {
            return;
        };
        if round > leadership.rounds.current {
            return;
        }
        peer.heard_ms = Some(now_ms);
        let sent_ms = leadership.rounds.sent_ms(round);
        peer.round_acknowledged(round, sent_ms, persisted_last);
        if let Some(sent_ms) = sent_ms {
            self.round_trips.learn(from, now_ms.saturating_sub(sent_ms));
        }
        if peer.lost_entries(round, persisted_last) {
            peer.forget_acknowledged(persisted_last);
            fx.lost_entries.push(from);
        } else {
            peer.prove(round, persisted_last);
            peer.ask_further_back(round);
        }
        let stalled = peer.stalled();
        self.resume(from, stalled, fx);
        self.hand_over_if_ready(from, fx);
        self.confirm_reads(fx);
    }

    /// Neither a heartbeat of the leader nor the answer of a follower may get through while a long
    /// message fills the connection: its parts stand for them. They prove no round.
    pub(super) fn on_heard(&mut self, peer: MemberId, fx: &mut Effects) {
        if self.retired {
            return;
        }
        let now_ms = self.now_ms;
        if let Some(progress) = self.peer_mut(peer) {
            progress.heard_ms = Some(now_ms);
        } else if self.leader == Some(peer) && matches!(self.role, Role::Follower) {
            self.hear_leader(peer, fx);
            let persisted_last = self.log.persisted();
            self.send(peer, MessageBody::HeartbeatReply { round: 0, persisted_last }, fx);
        }
    }

    /// The newest round that a quorum has answered.
    pub(super) fn confirmed_round(&self, leadership: &Leadership) -> u64 {
        let own = leadership.rounds.current;
        self.reached(leadership, own, |peer| peer.acked_round)
    }

    pub(super) fn lease_valid(&self, now_ms: u64) -> bool {
        let Role::Leader(leadership) = &self.role else {
            return false;
        };
        if leadership.lease_given_up || self.retired {
            return false;
        }
        // Shifted by one, so that 0 is "never".
        let proven = self.reached(leadership, now_ms.saturating_add(1), |peer| {
            peer.acked_round_sent_ms.map_or(0, |sent_ms| sent_ms.saturating_add(1))
        });
        let length = self.options.election_timeout_ms.saturating_sub(self.options.clock_drift_ms);
        proven > 0 && now_ms < (proven - 1).saturating_add(length)
    }

    /// Check-quorum: whether a majority spoke within the last election timeout.
    fn quorum_heard(&self) -> bool {
        let Role::Leader(leadership) = &self.role else {
            return false;
        };
        let heard = self.reached(leadership, self.now_ms.saturating_add(1), |peer| {
            peer.heard_ms.map_or(0, |heard_ms| heard_ms.saturating_add(1))
        });
        let started = leadership.started_ms.saturating_add(1);
        let patience_ms = self.options.election_timeout_ms.saturating_add(self.farthest_ms());
        let limit = heard.max(started).saturating_add(patience_ms);
        self.now_ms.saturating_add(1) < limit
    }

    /// The greatest value a quorum has reached; `own` is this member's, if it votes.
    pub(super) fn reached(
        &self,
        leadership: &Leadership,
        own: u64,
        of_peer: impl Fn(&Progress) -> u64,
    ) -> u64 {
        quorum::reached(self.config(), |id| {
            if id == self.options.id {
                own
            } else {
                leadership.peers.get(&id).map_or(0, &of_peer)
            }
        })
    }
}
