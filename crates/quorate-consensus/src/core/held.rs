//! Everybody counts the majority: a member that does not lead learns of a commit from the acknowledgements
//! themselves, without the way back from the leader.
//!
//! Who may have clients of its own (every member but a logger) is sent what voters have on disk: by the leader,
//! when its own sync is done, and by the others, where leader and receiver are no quorum by themselves. The leader
//! then need not tell those a commit that they count.
//!
//! Why that is safe. A follower counts by the leader's own rule ([`quorum::held`]), and only more strictly:
//! - only an entry of the present term, in its own log: it is the leader's, and so is all before it;
//! - only acknowledgements that carry this term, and for itself only what is on its own disk;
//! - under *every* configuration of its log that may be in force. The leader's newest one, if this log does not
//!   have it yet, stands behind the entry that is counted: whoever has it in its log has the entry, too, and
//!   whoever has not needs a quorum of one that was counted;
//! - only once the leader has said that an entry of its term is committed: then so is a configuration that was
//!   installed by force, which is the first one of its term.

use super::{Consensus, Role};
use crate::config::{Config, MemberInfo, MemberRole};
use crate::effects::Effects;
use crate::level::EVERYBODY_COUNTS;
use crate::message::{Message, MessageBody};
use crate::quorum;
use crate::types::{Index, MemberId};
use std::collections::BTreeMap;

/// What others have on disk of this term's log, as they said in this term.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<MemberId, Index>);

impl Held {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Its process may be another one from now on.
    pub fn forget(&mut self, member: MemberId) {
        self.0.remove(&member);
    }

    fn note(&mut self, member: MemberId, matched: Index) {
        let known = self.0.entry(member).or_default();
        *known = matched.max(*known);
    }

    fn of(&self, member: MemberId) -> Index {
        self.0.get(&member).copied().unwrap_or(0)
    }
}

impl Consensus {
    pub(super) fn everybody_counts(&self) -> bool {
        counts(self.config())
    }

    /// Another member's acknowledgement, where this one does not lead.
    pub(super) fn on_held(&mut self, from: MemberId, matched: Index, fx: &mut Effects) {
        if self.configs.possible(self.commit).any(|config| config.is_voter(from)) {
            self.held.note(from, matched);
            self.count_held(fx);
        }
    }

    /// Commits what a quorum has, as far as this member can know.
    pub(super) fn count_held(&mut self, fx: &mut Effects) {
        let term = self.hard.term;
        // At an earlier level a leader answers reads without a look at what others have.
        if self.is_leader()
            || !self.everybody_counts()
            || self.log.term_at(self.commit) != Some(term)
        {
            return;
        }
        let (own, verified) = (self.options.id, self.verified_end());
        let persisted = verified.min(self.log.persisted());
        let has = |id| if id == own { persisted } else { self.held.of(id) };
        let reached = self.configs.possible(self.commit).map(|config| quorum::held(config, has));
        let index = reached.fold(verified, Index::min);
        if index > self.commit && self.log.term_at(index) == Some(term) {
            self.set_commit(index, fx);
        }
    }

    /// Tells others than the leader what this follower has on disk, where that helps them.
    pub(super) fn show_held(&self, matched: Index, fx: &mut Effects) {
        let (own, config) = (self.options.id, self.config());
        let Some(leader) = self.leader.filter(|_| counts(config) && config.is_voter(own)) else {
            return;
        };
        for to in with_clients(config).filter(|to| *to != own && *to != leader) {
            if !decide_together(config, leader, to) {
                self.send(to, MessageBody::AppendReply { matched }, fx);
            }
        }
    }

    /// The leader tells what it has on disk itself, unless the receiver knows that to be committed. While more is on its
    /// way to the disk, it tells only those whose clients wait: that will tell, or the commit (see [`super::awaited`]).
    pub(super) fn show_own_disk(&mut self, fx: &mut Effects) {
        let (from, term, matched) = (self.options.id, self.hard.term, self.log.persisted());
        let config = self.configs.current();
        let may_withhold = self.may_withhold() && self.log.last().index > matched;
        let Role::Leader(leadership) = &mut self.role else { return };
        if !counts(config) || !config.is_voter(from) {
            return;
        }
        for to in with_clients(config) {
            let Some(peer) = leadership.peers.get_mut(&to) else { continue };
            let known = peer.commit_sent.max(peer.disk_shown);
            let waits = !may_withhold || peer.awaited > known;
            if peer.end_sent() >= matched && known < matched && waits {
                peer.disk_shown = matched;
                let body = MessageBody::AppendReply { matched };
                fx.messages.push(Message { from, to, term, body });
            }
        }
    }
}

/// Whether `member` commits what the leader has shown it, and it has itself, without being told.
pub(super) fn counts_with(config: &Config, leader: MemberId, member: MemberId) -> bool {
    counts(config)
        && config.members.get(&member).is_some_and(has_clients)
        && decide_together(config, leader, member)
}

fn counts(config: &Config) -> bool {
    config.level >= EVERYBODY_COUNTS
}

fn with_clients(config: &Config) -> impl Iterator<Item = MemberId> + '_ {
    config.members.iter().filter(|(_, info)| has_clients(info)).map(|(id, _)| *id)
}

fn has_clients(info: &MemberInfo) -> bool {
    info.role != MemberRole::Logger
}

/// Whether what these two have is committed.
fn decide_together(config: &Config, one: MemberId, other: MemberId) -> bool {
    let are = |id| id == one || id == other;
    config.is_quorum(are)
        && (config.rules.zones_min <= 1 || quorum::held(config, |id| Index::from(are(id))) > 0)
}

#[cfg(test)]
mod tests;
