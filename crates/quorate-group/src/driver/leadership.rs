//! Who leads, and what follows when that changes.

use super::deferred::Deferred;
use super::Driver;
use crate::output::{LogLevel, Notice, Output};
use quorate_consensus::placement::Writes;
#[cfg(doc)]
use quorate_consensus::Consensus;
use quorate_consensus::{Index, MemberId, RoleState, Term};

/// Who leads, as far as this member knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leadership {
    pub term: Term,
    pub leader: Option<MemberId>,
    pub is_leader: bool,
    pub since_ms: u64,
}

impl Driver {
    /// See [`Consensus::may_force`].
    pub fn may_force(&self, keep: Vec<MemberId>, audit: String) -> Result<(), String> {
        self.consensus.may_force(keep, audit)
    }

    /// See [`Consensus::has_forced`].
    pub fn has_forced(&self, audit: &str, after: Index) -> bool {
        self.consensus.has_forced(audit, after)
    }

    pub(super) fn role_changed(&mut self, role: RoleState, out: &mut Output) {
        let (term, leader, is_leader) = match role {
            RoleState::Leader { term } => (term, Some(self.id), true),
            RoleState::Follower { term, leader } => (term, leader, false),
            RoleState::PreCandidate { term } | RoleState::Candidate { term } => (term, None, false),
        };
        let before = self.leadership;
        if (before.term, before.leader) == (term, leader) {
            return;
        }
        self.log_leader(term, leader, out);
        self.note_leader(term, leader);
        self.leaderless_ms = match leader {
            Some(_) => None,
            None => self.leaderless_ms.or(before.leader.map(|_| self.now_ms)),
        };
        self.leadership = Leadership { term, leader, is_leader, since_ms: self.now_ms };
        self.deferred = Deferred::default();
        self.writes = Writes::new(self.options.pace);
        if leader.is_some() {
            self.disputed = None;
            self.pending.requeue();
        }
        self.changes += 1;
        self.due = true;
        out.notices.push(Notice::Leader(term, leader));
    }

    /// One line for each leader.
    fn log_leader(&self, term: Term, leader: Option<MemberId>, out: &mut Output) {
        let line = match leader {
            Some(id) if id == self.id => format!("this node leads the group now (term {term})"),
            Some(id) => {
                format!("node {} leads the group now (term {term}, member {id})", self.name_of(id))
            }
            None => return,
        };
        out.log(LogLevel::Info, line);
    }

    /// One line when there has been no leader for as long as a switchover may take at most, which is none of
    /// anybody's business before.
    pub fn miss_leader(&mut self, out: &mut Output) {
        let patience_ms = self.options.election_timeout_ms;
        let is_missed = |since_ms: &u64| self.now_ms.saturating_sub(*since_ms) >= patience_ms;
        if self.leaderless_ms.filter(is_missed).is_some() && !self.closed {
            self.leaderless_ms = None;
            let line = "this node knows of no leader at present: one is being elected, or it cannot be reached";
            out.log(LogLevel::Info, line.to_owned());
        }
    }
}
