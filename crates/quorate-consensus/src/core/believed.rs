//! From whom a message counts. Connections are authenticated, so who said it is known; here it is judged
//! whether that member may have said it. Everything else is counted and dropped ([`Effects::rejected`]).
//!
//! Invariants:
//! - an answer counts only from a member of a configuration that may be in force, or that this leader sends
//!   its log to;
//! - an answer leads on to another term only if a voter gives it: who has no vote deposes nobody
//!   ([`super::outgrown`] has those that are ahead follow again);
//! - while a leader is in office, as far as this member knows, and for some election timeouts afterwards or after its
//!   own start ([`UNKNOWN_WAIT`]), only voters begin another term, and only voters, or whom this member has voted for,
//!   lead in one that has no leader yet. Later anybody may who was let in: a member that was away does not know who was
//!   admitted meanwhile, and the leader it waits for may be one of those;
//! - a term has one leader: the first that this member heard in it;
//! - terms grow by elections, one by one, and by leaps only when a majority is given up by force. So nobody
//!   leads this member to the last term there is, not even in many steps.

use super::forced::TERM_USED_UP;
use super::{Consensus, Role};
use crate::effects::{Effects, Objection, Rejected};
use crate::message::{
    Message, MessageBody, ELECTIONS_MAX, LEAPS_AT_ONCE, LEAP_PAUSE_MS, TERM_JUMP_MAX, TERM_LEAP_MAX,
};
use crate::types::{MemberId, Term};

/// Election timeouts in which those that a member knows can show that they elect a leader, before it takes one that it
/// does not know: somebody who was removed, and still has what lets it in, may pretend.
const UNKNOWN_WAIT: u64 = 10;

impl Consensus {
    /// Whether it counts; what does not is noted.
    pub(super) fn believes(&mut self, message: &Message, fx: &mut Effects) -> bool {
        match self.objection(message) {
            Some(objection) => {
                if objection == Objection::Ahead {
                    self.note_ahead(message.term);
                }
                fx.rejected.push(Rejected { from: message.from, objection });
                false
            }
            None => true,
        }
    }

    /// Why `from` cannot be the leader of `term`, if that is known.
    pub fn objects_to_leader(&self, from: MemberId, term: Term) -> Option<Objection> {
        if self.is_too_far(term) {
            return Some(Objection::Leap);
        }
        if self.contradicts == Some((term, from)) {
            return Some(Objection::Contradicts);
        }
        if term == self.hard.term && self.leader.is_some_and(|leader| leader != from) {
            return Some(Objection::SecondLeader);
        }
        let is_stale = term < self.hard.term;
        (!is_stale && self.is_unasked(from, term)).then_some(Objection::NoVoter)
    }

    /// A leader of a former term learns from the answer that it is one.
    pub(super) fn answer_stale(&mut self, from: MemberId, body: &MessageBody, fx: &mut Effects) {
        match body {
            MessageBody::Append { .. } | MessageBody::Heartbeat { .. } => {
                let persisted_last = self.log.persisted();
                self.send(from, MessageBody::HeartbeatReply { round: 0, persisted_last }, fx);
            }
            MessageBody::Vote { .. } => {
                self.send(from, MessageBody::VoteReply { granted: false }, fx);
            }
            _ => {}
        }
    }

    fn objection(&self, message: &Message) -> Option<Objection> {
        let Message { from, term, body, .. } = message;
        if !message.is_sound() {
            return Some(Objection::Unsound);
        }
        match body {
            MessageBody::Append { .. }
            | MessageBody::Heartbeat { .. }
            | MessageBody::TimeoutNow => self.objects_to_leader(*from, *term),
            _ if self.is_too_far(*term) => Some(Objection::Leap),
            MessageBody::Vote { .. } if self.is_unasked(*from, *term) => Some(Objection::NoVoter),
            MessageBody::ForcedVote { .. } if self.is_unasked_to_force(*from, *term) => {
                Some(Objection::NoVoter)
            }
            // Leads to no other term by itself.
            MessageBody::PreVote { .. }
            | MessageBody::Vote { .. }
            | MessageBody::ForcedVote { .. } => None,
            MessageBody::ReadIndexReply { .. } => self.objection_to_term(message),
            // Whose it is matters where it is counted.
            MessageBody::AppendReply { .. } if !self.is_leader() => None,
            MessageBody::PreVoteReply { .. }
            | MessageBody::VoteReply { .. }
            | MessageBody::ForcedVoteReply { .. }
            | MessageBody::AppendReply { .. }
            | MessageBody::AppendReject { .. }
            | MessageBody::HeartbeatReply { .. }
            | MessageBody::ReadIndex { .. }
            | MessageBody::SnapshotReply { .. } => self.objection_to_answer(message),
        }
    }

    fn objection_to_answer(&self, message: &Message) -> Option<Objection> {
        if !self.knows(message.from) {
            return Some(Objection::Stranger);
        }
        if let Some(objection) = self.objection_to_term(message) {
            return Some(objection);
        }
        let Role::Leader(leadership) = &self.role else { return None };
        let beyond = match message.body {
            MessageBody::AppendReply { matched } | MessageBody::SnapshotReply { matched } => {
                matched > self.log.last().index
            }
            MessageBody::HeartbeatReply { round, .. } => round > leadership.rounds.current,
            _ => false,
        };
        (message.term == self.hard.term && beyond).then_some(Objection::NeverSent)
    }

    /// To an answer that would lead on to another term.
    fn objection_to_term(&self, message: &Message) -> Option<Objection> {
        let is_voter = |config: &crate::Config| config.is_voter(message.from);
        if message.term <= self.hard.term || self.configs.possible(self.commit).any(is_voter) {
            return None;
        }
        // Who was removed may still be sent the log that says so, and is awaited by nobody.
        Some(if self.is_among(message.from) { Objection::Ahead } else { Objection::Stranger })
    }

    /// Whether this is no voter, as far as this member knows any, and those that it knows are to come first: it hears a
    /// leader, or did not long ago, or has not run for long. The leader itself, and whom it has voted for, may be a voter
    /// without its knowledge.
    pub(super) fn is_unasked(&self, from: MemberId, term: Term) -> bool {
        let has_its_vote = term == self.hard.term && self.hard.voted_for == Some(from);
        if has_its_vote || self.leader == Some(from) {
            return false;
        }
        let mut possible = self.configs.possible(self.commit);
        (self.lease_refuses_votes() || self.was_in_office_within(UNKNOWN_WAIT))
            && self.config().voters().next().is_some()
            && !possible.any(|config| config.is_voter(from))
    }

    /// The same of who forces a quorum: all that are kept may, learners too, once no leader is there.
    fn is_unasked_to_force(&self, from: MemberId, term: Term) -> bool {
        let is_late = !self.lease_refuses_votes() && !self.was_in_office_within(1);
        self.is_unasked(from, term) && !(is_late && self.is_among(from))
    }

    /// Whether a leader was, or may have been, in so many election timeouts.
    fn was_in_office_within(&self, timeouts: u64) -> bool {
        let wait_ms = timeouts.saturating_mul(self.options.election_timeout_ms);
        self.now_ms < self.in_office_ms.saturating_add(wait_ms)
    }

    fn knows(&self, from: MemberId) -> bool {
        let sent_to = match &self.role {
            Role::Leader(leadership) => leadership.peers.contains_key(&from),
            _ => false,
        };
        sent_to || self.is_among(from)
    }

    fn is_among(&self, id: MemberId) -> bool {
        let has = |config: &crate::Config| config.everybody().any(|other| other == id);
        self.configs.possible(self.commit).any(has)
    }

    /// A term that nothing since this member's own can have led to.
    fn is_too_far(&self, term: Term) -> bool {
        if term > TERM_USED_UP {
            return true;
        }
        let ahead = term.saturating_sub(self.hard.term);
        if self.hard.term == 0 {
            return ahead > TERM_JUMP_MAX;
        }
        let many = self.leaps_due_ms > self.now_ms.saturating_add(LEAPS_AT_ONCE * LEAP_PAUSE_MS);
        ahead > TERM_LEAP_MAX || (ahead > ELECTIONS_MAX && many)
    }

    /// Another member's term is taken over.
    pub(super) fn note_leap(&mut self, term: Term) {
        if self.hard.term > 0 && term.saturating_sub(self.hard.term) > ELECTIONS_MAX {
            let after = self.leaps_due_ms.max(self.now_ms);
            self.leaps_due_ms = after.saturating_add(LEAP_PAUSE_MS);
        }
    }
}

#[cfg(test)]
mod tests;
