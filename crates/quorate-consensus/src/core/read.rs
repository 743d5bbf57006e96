//! Linearizable read points.
//!
//! A leader answers once it knows that it still led after the question came: a quorum answered a heartbeat
//! round sent later, or (with `lease_reads`) its lease holds. Followers forward to the leader.
//!
//! Where followers count commits themselves ([`super::held`]), one may know of a commit before the leader does,
//! and have told a client. A quorum has that entry on disk, so somebody who answers the round has it, or the leader
//! itself: the answer waits until whatever those have is committed.
//!
//! Invariants:
//! - Every local question gets exactly one answer: an index, or `None` when leadership is lost or
//!   an election timeout has passed.
//! - Questions are told apart by a number of their own, never by the caller's `ctx`, which may
//!   come again: a late reply to an old question cannot answer a new one.

use super::{Consensus, Role};
use crate::effects::{Effects, ReadReady};
use crate::message::MessageBody;
use crate::types::{Index, MemberId};
use std::collections::VecDeque;

/// Questions that wait at one member at a time; more are turned away at once.
const READS_MAX: usize = 1 << 16;

/// Questions asked here that another member must answer.
pub(super) struct ForwardedReads {
    /// No leader is known.
    queued: VecDeque<Local>,
    /// Under way to the leader, by number.
    forwarded: VecDeque<(u64, Local)>,
    next_number: u64,
}

#[derive(Clone, Copy)]
struct Local {
    ctx: u64,
    expires_ms: u64,
}

/// Questions that wait for this leader's confirmation, oldest first.
#[derive(Default)]
pub(super) struct LeaderReads {
    /// Asked before an entry of this term was committed: the commit index may still be behind
    /// what the leader before acknowledged.
    early: VecDeque<Question>,
    waiting: VecDeque<Waiting>,
    /// Confirmed: each is answered when the log is committed up to its point.
    settling: VecDeque<(Question, Index)>,
}

#[derive(Clone, Copy)]
struct Question {
    asker: Asker,
    expires_ms: u64,
}

#[derive(Clone, Copy)]
enum Asker {
    Local { ctx: u64 },
    Remote { member: MemberId, number: u64 },
}

struct Waiting {
    question: Question,
    /// What may have been committed when it was asked, as far as this leader knew.
    index: Index,
    /// A quorum's answer to this round (or a later one) confirms it.
    round: u64,
}

impl Consensus {
    pub(super) fn read_index(&mut self, ctx: u64, fx: &mut Effects) {
        if self.retired || self.reads.len() >= READS_MAX {
            return fx.reads.push(ReadReady { ctx, index: None });
        }
        let expires_ms = self.now_ms.saturating_add(self.options.election_timeout_ms);
        self.reads.queued.push_back(Local { ctx, expires_ms });
        self.forward_reads(fx);
    }

    /// Passes on what was asked while no leader was known.
    pub(super) fn forward_reads(&mut self, fx: &mut Effects) {
        let Some(leader) = self.leader else {
            return;
        };
        while let Some(local) = self.reads.queued.pop_front() {
            let Local { ctx, expires_ms } = local;
            if self.is_leader() {
                self.take_question(Question { asker: Asker::Local { ctx }, expires_ms }, fx);
            } else {
                let number = self.reads.next_number;
                self.reads.next_number = number.wrapping_add(1);
                self.reads.forwarded.push_back((number, local));
                self.send(leader, MessageBody::ReadIndex { ctx: number }, fx);
            }
        }
    }

    pub(super) fn on_remote_read(&mut self, member: MemberId, number: u64, fx: &mut Effects) {
        // It will have to apply about as much: it is to hear of that meanwhile.
        self.reads_await(member, self.log.last().index, fx);
        let expires_ms = self.now_ms.saturating_add(self.options.election_timeout_ms);
        self.take_question(Question { asker: Asker::Remote { member, number }, expires_ms }, fx);
    }

    pub(super) fn on_read_reply(
        &mut self,
        from: MemberId,
        number: u64,
        index: Index,
        fx: &mut Effects,
    ) {
        let forwarded = &mut self.reads.forwarded;
        if self.leader != Some(from) {
            return;
        }
        if let Some(at) = forwarded.iter().position(|(known, _)| *known == number) {
            if let Some((_, Local { ctx, .. })) = forwarded.remove(at) {
                fx.reads.push(ReadReady { ctx, index: Some(index) });
            }
        }
    }

    /// An entry of this leader's own term is committed, so the commit index is up to date.
    pub(super) fn release_early_reads(&mut self, fx: &mut Effects) {
        while let Some(question) = self.leadership().and_then(|l| l.reads.early.pop_front()) {
            self.take_question(question, fx);
        }
    }

    /// A round was answered (or started): answer what it confirms; start the next one if somebody
    /// waits for it.
    pub(super) fn confirm_reads(&mut self, fx: &mut Effects) {
        let Role::Leader(leadership) = &self.role else {
            return;
        };
        if leadership.reads.waiting.is_empty() {
            return;
        }
        let confirmed = self.confirmed_round(leadership);
        let idle = confirmed >= leadership.rounds.current;
        loop {
            let Some(leadership) = self.leadership() else {
                return;
            };
            match leadership.reads.waiting.front() {
                Some(waiting) if waiting.round <= confirmed => {
                    let Some(waiting) = leadership.reads.waiting.pop_front() else { return };
                    let index = waiting.index.max(self.on_disk_at(waiting.round));
                    self.answer_at(waiting.question, index, fx);
                }
                Some(_) if idle => return self.start_round(fx),
                _ => return,
            }
        }
    }

    /// What those have on disk that answered this round, or a later one.
    fn on_disk_at(&self, round: u64) -> Index {
        let Role::Leader(leadership) = &self.role else { return 0 };
        if !self.everybody_counts() {
            return 0;
        }
        let voters = leadership.peers.values().filter(|peer| self.config().is_voter(peer.id));
        let answered = voters.filter(|peer| peer.acked_round >= round);
        let most = answered.map(|peer| peer.persisted_last).max().unwrap_or(0);
        most.min(self.log.last().index)
    }

    /// At once, if all up to there is committed.
    fn answer_at(&mut self, question: Question, index: Index, fx: &mut Effects) {
        if index <= self.commit {
            return self.answer(question, Some(index), fx);
        }
        if let Some(leadership) = self.leadership() {
            leadership.reads.settling.push_back((question, index));
        }
    }

    /// More is committed.
    pub(super) fn settle_reads(&mut self, fx: &mut Effects) {
        let Some(leadership) = self.leadership() else { return };
        for (question, index) in std::mem::take(&mut leadership.reads.settling) {
            self.answer_at(question, index, fx);
        }
    }

    pub(super) fn expire_reads(&mut self, fx: &mut Effects) {
        let now_ms = self.now_ms;
        self.reads.expire(now_ms, fx);
        if let Some(leadership) = self.leadership() {
            leadership.reads.expire(now_ms, fx);
        }
    }

    fn take_question(&mut self, question: Question, fx: &mut Effects) {
        let by_lease = self.options.lease_reads && self.lease_valid(self.now_ms);
        let (commit, counted) = (self.commit, self.everybody_counts());
        // Without a round nobody tells what others have: all that they were sent.
        let (persisted, last) = (self.log.persisted(), self.log.last().index);
        let Some(leadership) = self.leadership() else {
            return;
        };
        if leadership.reads.len() >= READS_MAX {
            self.answer(question, None, fx);
        } else if commit < leadership.noop {
            leadership.reads.early.push_back(question);
        } else if by_lease {
            self.answer_at(question, if counted { last } else { commit }, fx);
        } else {
            // Only a round that leaves after the question proves anything about it.
            let round = leadership.rounds.current + 1;
            let index = if counted { commit.max(persisted) } else { commit };
            leadership.reads.waiting.push_back(Waiting { question, index, round });
            self.confirm_reads(fx);
        }
    }

    fn answer(&mut self, question: Question, index: Option<Index>, fx: &mut Effects) {
        match (question.asker, index) {
            (Asker::Local { ctx }, index) => fx.reads.push(ReadReady { ctx, index }),
            (Asker::Remote { member, number }, Some(index)) => {
                self.send(member, MessageBody::ReadIndexReply { ctx: number, index }, fx);
                self.reads_await(member, index, fx);
            }
            // The asker's own clock turns it away.
            (Asker::Remote { .. }, None) => {}
        }
    }
}

impl ForwardedReads {
    pub fn new(first_number: u64) -> Self {
        Self { queued: VecDeque::new(), forwarded: VecDeque::new(), next_number: first_number }
    }

    /// The leader that was asked is gone.
    pub fn fail_forwarded(&mut self, fx: &mut Effects) {
        let failed = self.forwarded.drain(..);
        fx.reads.extend(failed.map(|(_, local)| ReadReady { ctx: local.ctx, index: None }));
    }

    pub fn fail_all(&mut self, fx: &mut Effects) {
        self.fail_forwarded(fx);
        let failed = self.queued.drain(..);
        fx.reads.extend(failed.map(|local| ReadReady { ctx: local.ctx, index: None }));
    }

    fn len(&self) -> usize {
        self.queued.len() + self.forwarded.len()
    }

    fn expire(&mut self, now_ms: u64, fx: &mut Effects) {
        while let Some(local) = pop_if(&mut self.queued, |local| local.expires_ms <= now_ms) {
            fx.reads.push(ReadReady { ctx: local.ctx, index: None });
        }
        while let Some((_, local)) = pop_if(&mut self.forwarded, |(_, l)| l.expires_ms <= now_ms) {
            fx.reads.push(ReadReady { ctx: local.ctx, index: None });
        }
    }
}

impl LeaderReads {
    fn len(&self) -> usize {
        self.early.len() + self.waiting.len() + self.settling.len()
    }

    /// Leadership is lost. Remote askers notice by themselves.
    pub fn fail_all(&mut self, fx: &mut Effects) {
        let waiting = self.waiting.drain(..).map(|waiting| waiting.question);
        let settling = self.settling.drain(..).map(|(question, _)| question);
        for question in self.early.drain(..).chain(waiting).chain(settling) {
            question.fail(fx);
        }
    }

    fn expire(&mut self, now_ms: u64, fx: &mut Effects) {
        while let Some(question) = pop_if(&mut self.early, |q| q.expires_ms <= now_ms) {
            question.fail(fx);
        }
        while let Some(old) = pop_if(&mut self.waiting, |w| w.question.expires_ms <= now_ms) {
            old.question.fail(fx);
        }
        self.settling.retain(|(question, _)| {
            let lives = question.expires_ms > now_ms;
            if !lives {
                question.fail(fx);
            }
            lives
        });
    }
}

impl Question {
    fn fail(&self, fx: &mut Effects) {
        if let Asker::Local { ctx } = self.asker {
            fx.reads.push(ReadReady { ctx, index: None });
        }
    }
}

fn pop_if<T>(queue: &mut VecDeque<T>, due: impl Fn(&T) -> bool) -> Option<T> {
    queue.front().is_some_and(due).then(|| queue.pop_front()).flatten()
}
