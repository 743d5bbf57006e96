//! The transfer target: whom a leader hands over to that should not lead, or that somebody else should
//! rather.
//!
//! Reasons, and what they cost:
//! - it may not lead (a logger, or priority 0) and was elected because nobody else could be: it takes
//!   no proposals, only waits for a member that may lead to catch up;
//! - its disk has something to write and got nowhere for [`crate::Options::disk_stall_ms`], or its
//!   host says that it hangs: it hands over to somebody who is ahead of its own disk. The others
//!   commit without that disk meanwhile, so until such a one is found it goes on leading;
//! - a member of higher priority is there: see [`PriorityRule`].
//!
//! Whoever is not fit to lead stands later than the others, and grants as ever: its vote and its
//! log count like any.
//!
//! Invariants:
//! - This only chooses *whom* to hand over to. The rest is a transfer like one asked for, and
//!   an election like any other, so nothing here can cost an entry.
//! - A member that was offered leadership and did not take it is not offered it again for a while,
//!   longer each time. So a member that the leader hears, but that can reach no majority, cannot
//!   keep the group changing leaders.

use super::{Consensus, Role};
use crate::config::PriorityRule;
use crate::effects::Effects;
use crate::progress::{has_caught_up, Progress};
use crate::types::MemberId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Election timeouts for which a member that did not take leadership is passed over.
const PASSED_OVER_TIMEOUTS: u64 = 8;
/// How often that doubles.
const DOUBLINGS_MAX: u32 = 6;
/// Election timeouts after which a caretaker that found nobody makes room for another election:
/// somebody out of its sight may be able to lead.
const CARETAKER_TIMEOUTS: u64 = 8;
/// Election timeouts after its election during which a leader waits for others to be heard before
/// it makes room for one of higher priority.
const SETTLING_TIMEOUTS: u64 = 2;

/// What a member remembers of transfers of leadership, over terms.
pub(super) struct Transfers {
    /// Who was told to stand, and has not been seen to lead since.
    offered: Option<MemberId>,
    passed_over: BTreeMap<MemberId, PassedOver>,
    /// When the log was last seen to be on disk as far as it goes, or to get further.
    disk_moved_ms: u64,
    host_hangs: bool,
}

#[derive(Clone, Copy, Default)]
struct PassedOver {
    times: u32,
    until_ms: u64,
}

impl Transfers {
    pub fn new(now_ms: u64) -> Self {
        let (offered, passed_over) = (None, BTreeMap::new());
        Self { offered, passed_over, disk_moved_ms: now_ms, host_hangs: false }
    }
}

impl Consensus {
    /// At each tick of any member.
    pub(super) fn watch_disk(&mut self) {
        if self.log.persisted() == self.log.last().index {
            self.disk_moved();
        }
    }

    pub(super) fn disk_moved(&mut self) {
        self.transfers.disk_moved_ms = self.now_ms;
    }

    pub(super) fn host_hangs(&mut self, hangs: bool) {
        self.transfers.host_hangs = hangs;
    }

    /// Whether others should lead rather than this member.
    pub(super) fn is_unfit(&self) -> bool {
        !self.config().may_lead(self.options.id) || self.is_handicapped()
    }

    /// A leader that only waits to hand over.
    pub(super) fn is_caretaker(&self) -> bool {
        let (config, own) = (self.config(), self.options.id);
        self.is_leader() && config.is_incoming_voter(own) && !config.may_lead(own)
    }

    /// Who of those that stand at the same moment should win: the greater.
    pub(super) fn claim(&self, id: MemberId) -> (bool, (u8, Reverse<u8>), MemberId) {
        let fit = if id == self.options.id { !self.is_unfit() } else { true };
        (fit && self.config().may_lead(id), self.preference(id), id)
    }

    /// Who should lead, of those that can: by priority, then who lags least.
    fn preference(&self, id: MemberId) -> (u8, Reverse<u8>) {
        (self.config().priority(id), Reverse(self.lags.of(id)))
    }

    /// At each tick of a leader; of a caretaker also when it hears that others caught up.
    pub(super) fn choose_transfer_target(&mut self, fx: &mut Effects) {
        let Role::Leader(leadership) = &self.role else {
            return;
        };
        let term_ms = self.options.election_timeout_ms.saturating_mul(CARETAKER_TIMEOUTS);
        if self.is_caretaker() && self.now_ms >= leadership.started_ms.saturating_add(term_ms) {
            self.become_follower(self.hard.term, None, fx);
        } else if let Some(to) = self.transfer_target() {
            self.begin_transfer(to, fx);
        }
    }

    /// `to` was told to stand.
    pub(super) fn leadership_offered(&mut self, to: MemberId) {
        self.transfers.offered = Some(to);
    }

    /// This member leads (again), or waited long enough: so nobody took what was offered.
    pub(super) fn offer_failed(&mut self, to: MemberId) {
        let timeout_ms = self.options.election_timeout_ms;
        let passed_over = self.transfers.passed_over.entry(to).or_default();
        let pause_ms = timeout_ms.saturating_mul(PASSED_OVER_TIMEOUTS << passed_over.times);
        passed_over.times = (passed_over.times + 1).min(DOUBLINGS_MAX);
        passed_over.until_ms = self.now_ms.saturating_add(pause_ms);
        self.transfers.offered = None;
    }

    pub(super) fn open_offer(&self) -> Option<MemberId> {
        self.transfers.offered
    }

    /// Somebody else leads.
    pub(super) fn offer_settled(&mut self, leader: MemberId) {
        self.transfers.offered = None;
        self.transfers.passed_over.remove(&leader);
    }

    /// Disk or host stand still.
    pub(super) fn is_handicapped(&self) -> bool {
        let waits = self.log.persisted() < self.log.last().index;
        let limit_ms = self.transfers.disk_moved_ms.saturating_add(self.options.disk_stall_ms);
        self.transfers.host_hangs || (waits && self.now_ms >= limit_ms)
    }

    /// Whom to hand over to, if to anybody.
    fn transfer_target(&self) -> Option<MemberId> {
        let Role::Leader(leadership) = &self.role else {
            return None;
        };
        let config = self.config();
        if leadership.transfer.is_some() || !config.is_incoming_voter(self.options.id) {
            return None;
        }
        let last = self.log.last().index;
        let caught_up = |peer: &&Progress| has_caught_up(peer.matched, last);
        let candidates = || leadership.peers.values().filter(|peer| self.may_succeed(peer));
        if self.is_caretaker() {
            // Nothing is lost by trying again and again; those who failed before come last.
            let failures = |peer: &Progress| {
                self.transfers.passed_over.get(&peer.id).map_or(0, |passed_over| passed_over.times)
            };
            let rank = |peer: &&Progress| {
                (Reverse(failures(peer)), peer.matched == last, self.preference(peer.id))
            };
            return candidates().max_by_key(rank).map(|peer| peer.id);
        }
        let mut candidates = candidates().filter(|peer| !self.is_passed_over(peer.id));
        if self.is_handicapped() {
            let persisted = self.log.persisted();
            let ahead = |peer: &&Progress| peer.matched > persisted || peer.matched == last;
            let rank = |peer: &&Progress| (peer.matched, self.preference(peer.id));
            return candidates.filter(ahead).max_by_key(rank).map(|peer| peer.id);
        }
        if config.rules.paused {
            return None;
        }
        let own = config.priority(self.options.id);
        let highest = match config.rules.priorities {
            PriorityRule::Forced => candidates.max_by_key(|peer| self.preference(peer.id)),
            PriorityRule::Optimistic => {
                let settling_ms =
                    self.options.election_timeout_ms.saturating_mul(SETTLING_TIMEOUTS);
                let settled = self.now_ms >= leadership.started_ms.saturating_add(settling_ms)
                    && self.commit >= leadership.noop;
                let ready = |peer: &&Progress| settled && caught_up(peer);
                candidates.by_ref().filter(ready).max_by_key(|peer| self.preference(peer.id))
            }
        };
        highest.filter(|peer| config.priority(peer.id) > own).map(|peer| peer.id)
    }

    /// Whether a peer may lead, lives, and takes the log.
    fn may_succeed(&self, peer: &Progress) -> bool {
        let recently_ms = self.now_ms.saturating_sub(self.options.election_timeout_ms);
        self.config().may_lead(peer.id)
            && peer.heard_ms.is_some_and(|heard_ms| heard_ms >= recently_ms)
            && peer.matched > 0
    }

    fn is_passed_over(&self, id: MemberId) -> bool {
        self.transfers
            .passed_over
            .get(&id)
            .is_some_and(|passed_over| self.now_ms < passed_over.until_ms)
    }
}
