//! Handing leadership over: on request, to a better leader (see [`super::transfer_target`]), on the
//! leader's own removal, or because its disk failed.
//!
//! The target is told to stand at once (`TimeoutNow`) when it has persisted the whole log. While
//! that is under way proposals are refused; after an election timeout the leader takes them again.
//! From the first `TimeoutNow` on the lease is void for the rest of the term: the message may
//! arrive, and be obeyed, at any time.

use super::{Consensus, Role};
use crate::effects::Effects;
use crate::event::StepError;
use crate::message::MessageBody;
use crate::progress::Progress;
use crate::types::MemberId;
use std::cmp::Reverse;

#[derive(Clone, Copy)]
pub(super) struct Transfer {
    pub to: MemberId,
    expires_ms: u64,
}

impl Consensus {
    pub(super) fn transfer_leadership(
        &mut self,
        to: MemberId,
        fx: &mut Effects,
    ) -> Result<(), StepError> {
        match self.check_leads_on() {
            Err(StepError::Transferring { to: Some(current) }) if current == to => return Ok(()),
            other => other?,
        }
        if to == self.options.id {
            return Ok(());
        }
        if !self.config().may_lead(to) {
            let reason =
                format!("leadership cannot go to {to}: it is no voter, a logger, or of priority 0");
            return Err(StepError::BadChange(reason));
        }
        self.begin_transfer(to, fx);
        Ok(())
    }

    pub(super) fn begin_transfer(&mut self, to: MemberId, fx: &mut Effects) {
        let patience_ms = self.options.election_timeout_ms.saturating_add(2 * self.farthest_ms());
        let expires_ms = self.now_ms.saturating_add(patience_ms);
        if let Some(leadership) = self.leadership() {
            leadership.transfer = Some(Transfer { to, expires_ms });
        }
        self.hand_over_if_ready(to, fx);
    }

    /// `peer` may have caught up, or not have got the word.
    pub(super) fn hand_over_if_ready(&mut self, peer: MemberId, fx: &mut Effects) {
        let last = self.log.last().index;
        let Some(leadership) = self.leadership() else {
            return;
        };
        let is_target = leadership.transfer.is_some_and(|transfer| transfer.to == peer);
        if is_target && leadership.peers.get(&peer).is_some_and(|p| p.matched == last) {
            leadership.lease_given_up = true;
            self.leadership_offered(peer);
            self.send(peer, MessageBody::TimeoutNow, fx);
        }
    }

    pub(super) fn expire_transfer(&mut self) {
        let now_ms = self.now_ms;
        let Some(leadership) = self.leadership() else {
            return;
        };
        if let Some(expired) = leadership.transfer.take_if(|t| now_ms >= t.expires_ms) {
            self.offer_failed(expired.to);
        }
    }

    pub(super) fn on_timeout_now(&mut self, from: MemberId, fx: &mut Effects) {
        // Who stands still itself declines, unless nobody leads for good otherwise.
        let declines = self.is_handicapped() && self.config().may_lead(from);
        if self.leader == Some(from) && !declines {
            self.campaign(true, fx);
        }
    }

    /// Gives up leadership for good reason; the voter with the most log is asked to take over.
    pub(super) fn abdicate(&mut self, fx: &mut Effects) {
        if let Some(to) = self.best_follower() {
            self.send(to, MessageBody::TimeoutNow, fx);
        }
        self.become_follower(self.hard.term, None, fx);
    }

    /// The disk failed: no promise can be kept any more, so none is made.
    pub(super) fn retire(&mut self, fx: &mut Effects) {
        if self.is_leader() {
            self.abdicate(fx);
        } else {
            self.become_follower(self.hard.term, None, fx);
        }
        self.reads.fail_all(fx);
        self.retired = true;
    }

    fn best_follower(&self) -> Option<MemberId> {
        let Role::Leader(leadership) = &self.role else {
            return None;
        };
        let recently_ms = self.now_ms.saturating_sub(self.options.election_timeout_ms);
        let voters = leadership.peers.values().filter(|p| self.config().is_incoming_voter(p.id));
        let rank = |p: &&Progress| {
            let complete = p.matched >= self.commit;
            let lag = Reverse(self.lags.of(p.id));
            let log = (p.matched, p.end_sent());
            (p.heard_ms >= Some(recently_ms), complete, self.claim(p.id).0, log, lag)
        };
        voters.max_by_key(rank).map(|p| p.id)
    }
}
