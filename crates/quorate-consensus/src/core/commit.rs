//! What is committed, and who is told.
//!
//! Invariants:
//! - A leader commits an index when a quorum has *persisted* it, and only if the entry there is of
//!   its own term; what lies before it is committed with it. Its own disk counts like any other.
//!   Where the group's rules say so, the quorum must also reach over a number of zones.
//! - A follower commits what its leader says, as far as its log is known to equal the leader's.

use super::{Consensus, Leadership, Role};
use crate::effects::Effects;
use crate::message::{Message, MessageBody};
use crate::quorum;
use crate::types::Index;

impl Consensus {
    /// Somebody persisted more.
    pub(super) fn advance_commit(&mut self, fx: &mut Effects) {
        let Role::Leader(leadership) = &self.role else {
            return;
        };
        let index = self.commit_reached(leadership);
        if index <= self.commit || self.log.term_at(index) != Some(self.hard.term) {
            return;
        }
        self.set_commit(index, fx);
        self.tell_commit(fx);
        self.release_early_reads(fx);
        self.on_config_committed(fx);
    }

    /// What a quorum has persisted, in as many zones as the rules ask for.
    fn commit_reached(&self, leadership: &Leadership) -> Index {
        let own = self.log.persisted();
        let by_majority = self.reached(leadership, own, |peer| peer.matched);
        if self.config().rules.zones_min <= 1 {
            return by_majority;
        }
        let of_voter = |id| match leadership.peers.get(&id) {
            Some(peer) => peer.matched,
            None if id == self.options.id => own,
            None => 0,
        };
        by_majority.min(quorum::zones_reached(self.config(), of_voter))
    }

    pub(super) fn follow_commit(&mut self, leader_commit: Index, fx: &mut Effects) {
        let index = leader_commit.min(self.verified_end());
        if index > self.commit {
            self.set_commit(index, fx);
        }
    }

    /// Up to where the log is known to equal that of this term's leader. An entry of this term can
    /// only be the leader's, and so is everything before it.
    pub(super) fn verified_end(&self) -> Index {
        let last = self.log.last();
        if last.term == self.hard.term {
            last.index
        } else {
            self.verified.min(last.index)
        }
    }

    /// Tells the commit index to all that can use it and did not learn it with an Append.
    pub(super) fn tell_commit(&mut self, fx: &mut Effects) {
        let (from, term, commit) = (self.options.id, self.hard.term, self.commit);
        let Some(leadership) = self.leadership() else {
            return;
        };
        for peer in leadership.peers.values_mut() {
            let commit = commit.min(peer.matched);
            if commit > peer.commit_sent {
                peer.commit_sent = commit;
                let body = MessageBody::Heartbeat { commit, round: 0 };
                fx.messages.push(Message { from, to: peer.id, term, body });
            }
        }
    }

    pub(super) fn set_commit(&mut self, index: Index, fx: &mut Effects) {
        debug_assert!(index > self.commit && index <= self.log.last().index);
        let before = self.commit;
        self.commit = index;
        fx.commit = Some(index);
        if (before + 1..=index).contains(&self.configs.index()) {
            fx.config = Some(self.config().clone());
        }
    }
}
