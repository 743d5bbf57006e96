//! What is committed, and who is told.
//!
//! Invariants:
//! - A leader commits an index when a quorum has *persisted* it, and only if the entry there is of
//!   its own term; what lies before it is committed with it. Its own disk counts like any other.
//!   Where the group's rules say so, the quorum must also reach over a number of zones.
//! - A follower commits what its leader says, as far as its log is known to equal the leader's; and what it
//!   counts itself ([`super::held`]).
//! - What is shown to the layer above ([`Consensus::showable`]) is committed, and in this log. Where the own disk
//!   does not have it yet, what the disk has is the beginning of it: a crash leaves a log that ends before what was
//!   shown, or contains it, and never one that contradicts it.

use super::{awaited, held, Consensus, Leadership, Role};
use crate::effects::Effects;
use crate::message::{Message, MessageBody};
use crate::quorum;
use crate::types::{Index, AHEAD_MAX};

impl Consensus {
    /// Up to where the layer above may see the log: as far as it is committed, though the own disk may be the last
    /// one to have it. But until that has an entry of the present term, it may hold others' entries in the place of
    /// those that were taken over since: so far only what it has is shown.
    pub fn showable(&self) -> Index {
        let persisted = self.log.persisted();
        let is_in_step = self.log.term_at(persisted) == Some(self.hard.term);
        let end = match is_in_step {
            true => self.log.unsynced_end(AHEAD_MAX, self.options.inflight_bytes_max),
            false => persisted,
        };
        self.commit.min(end)
    }

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
        self.settle_reads(fx);
        self.release_early_reads(fx);
        self.on_config_committed(fx);
    }

    /// What a quorum has persisted, in as many zones as the rules ask for.
    fn commit_reached(&self, leadership: &Leadership) -> Index {
        let (own, persisted) = (self.options.id, self.log.persisted());
        quorum::held(self.config(), |id| match leadership.peers.get(&id) {
            Some(peer) => peer.matched,
            None if id == own => persisted,
            None => 0,
        })
    }

    /// The leader has said that it is committed up to here: whatever this member has, or will have, of it.
    pub(super) fn follow_commit(&mut self, leader_commit: Index, fx: &mut Effects) {
        self.told = self.told.max(leader_commit);
        let index = self.told.min(self.verified_end());
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

    /// Tells the commit index to all that were sent the entries, and neither learned it with those nor count it
    /// themselves, or will in a moment with nobody waiting there; unless they may wait for the next ones (see
    /// [`awaited`]). Where a client waits, its member's own disk may be later than a majority's.
    pub(super) fn tell_commit(&mut self, fx: &mut Effects) {
        let (from, term, commit) = (self.options.id, self.hard.term, self.commit);
        let (config, config_index) = (self.configs.current(), self.configs.index());
        let (may_withhold, last) = (self.may_withhold(), self.log.last().index);
        let Role::Leader(leadership) = &mut self.role else { return };
        // By an older configuration a follower may count otherwise, and at first it does not.
        let settled = config_index.max(leadership.noop);
        for peer in leadership.peers.values_mut() {
            let counts = peer.commit_sent >= settled
                && peer.disk_shown >= commit
                && (peer.matched >= commit || may_withhold && !awaited::is_awaited(peer))
                && held::counts_with(config, from, peer.id);
            let told = commit.min(peer.end_sent());
            if told <= peer.commit_sent || counts {
                continue;
            }
            if may_withhold && awaited::may_wait_for(peer, commit, last, &self.options) {
                peer.commit_owed = commit;
            } else {
                peer.commit_sent = told;
                let body = MessageBody::Heartbeat { commit: told, round: 0 };
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
