//! A majority given up for lost: an operator installs a membership of those that are left.
//!
//! It is an election, of a member that runs, in a term that nobody else can have had, which asks
//! *every* member kept and needs each to agree; so the one with the most log is to be told. All that
//! are kept vote from then on, learners too: what is on any of them can be carried on by it, also if
//! the new leader crashes at once. The first entry of the new leader is the membership,
//! with an audit text: so that it stands in the log who gave up whom, and nothing is proposed under
//! a membership that is not in the log.
//!
//! Invariants:
//! - Nothing committed that a member kept has in its log is lost, and nothing it knows to be so is
//!   contradicted: each agrees only if the candidate's log is at least as good as its own, and the
//!   candidate counts that only if its log holds what that one knows to be committed. What was
//!   committed on none of those kept is lost; only the operator can decide that.
//! - While a member kept hears a leader, a majority lives: it does not even answer.
//! - Nobody is given up who is not named: whoever belongs to a configuration that may be in force is
//!   kept or given up. Not to the newest one alone: that may be a change that was never committed, and
//!   those whom it removes decide by the one before it, and may have what those kept have not. (Changes of members wait
//!   for one another; changes of the rules wait for nothing.)
//! - Where the terms of a member are used up (its file of term and vote says so; from the network such a term is
//!   not taken over), the forced election begins them anew, above those in its log and in no term that anybody can
//!   have voted in. Only so does a term ever go back, and only by a new membership that each member kept agrees to,
//!   or that nobody hears of: so it cannot meet those who voted in the terms that are forgotten. Members kept whose
//!   terms are used up go back with it, if they can vote for it.
//! - A log given up never comes back into the group (`Config::lost`): it may hold what the others
//!   lost. So may that of a member that left before, and was still sent what the last ones of the majority
//!   committed. A member whose disk was emptied has another id.
//!
//! - Nothing that the group was set up for stands in its way: where those kept were never to lead
//!   (priority 0), or to have a vote, they get both. Loggers alone are refused: they have no data.
//!
//! What it cannot know is whether those given up live, out of sight: together they still are a
//! majority of the old membership. That they never run again is the operator's word.

use super::election::Poll;
use super::membership::{check_governable, TEXT_BYTES_MAX};
use super::{Consensus, Role};
use crate::config::{Config, MemberInfo, MemberRole};
use crate::effects::Effects;
use crate::event::StepError;
use crate::message::{MessageBody, TERM_MAX};
use crate::types::{HardState, Index, LogPosition, MemberId, Term};
use std::collections::{BTreeMap, BTreeSet};

/// A forced term is so far beyond the last one (at least, and up to twice that, at random) that
/// neither those given up nor another forced election get there.
const TERM_LEAP: u64 = 1 << 32;
/// Beyond it there is no room for another leap. Nobody stands there, lest the log gets such terms, too; and a
/// member whose file says one waits for an operator.
pub(super) const TERM_USED_UP: Term = TERM_MAX - 4 * TERM_LEAP;

impl Consensus {
    pub(super) fn force_quorum(
        &mut self,
        keep: Vec<MemberId>,
        audit: String,
        fx: &mut Effects,
    ) -> Result<(), StepError> {
        let config = self.forced_config(keep, audit).map_err(StepError::BadChange)?;
        let (own, now_ms) = (self.options.id, self.now_ms);
        let leap = self.rng.between(TERM_LEAP, 2 * TERM_LEAP);
        let term = match self.terms_are_used_up() {
            true => {
                let term = self.log.last().term + leap;
                self.go_back(term);
                term
            }
            false => self.hard.term + leap,
        };
        self.become_follower(term, None, fx);
        self.hard = HardState { term, voted_for: Some(own) };
        let last = self.log.last();
        for id in config.members.keys().filter(|id| **id != own) {
            self.send(*id, MessageBody::ForcedVote { last }, fx);
        }
        self.role = Role::Candidate(Poll::open(own, now_ms).about(config));
        self.count_forced_votes(fx);
        Ok(())
    }

    /// Whether no leader can be elected in the terms that are left.
    pub fn terms_are_used_up(&self) -> bool {
        self.hard.term > TERM_USED_UP
    }

    /// Begins terms anew with one that nobody has voted in.
    fn go_back(&mut self, term: Term) {
        self.hard = HardState { term, voted_for: None };
        self.forget_term();
    }

    /// Somebody whose terms were used up, too, begins them anew, with a log that is as good.
    pub(super) fn goes_back_with(&self, term: Term, last: LogPosition) -> bool {
        self.terms_are_used_up()
            && (self.log.last().term + 1..self.hard.term).contains(&term)
            && last >= self.log.last()
    }

    pub(super) fn go_back_with(&mut self, term: Term, fx: &mut Effects) {
        self.go_back(term);
        self.become_follower(term, None, fx);
    }

    pub(super) fn on_forced_vote(&mut self, from: MemberId, last: LogPosition, fx: &mut Effects) {
        let granted = !self.is_leader() && self.grant_vote(from, last);
        let commit = self.log.position(self.commit).unwrap_or(self.log.base());
        self.send(from, MessageBody::ForcedVoteReply { granted, commit }, fx);
    }

    pub(super) fn on_forced_vote_reply(
        &mut self,
        from: MemberId,
        granted: bool,
        commit: LogPosition,
        fx: &mut Effects,
    ) {
        let held = commit.index <= self.commit || self.log.contains(commit);
        if let Role::Candidate(poll) = &mut self.role {
            let asked = poll.forced.as_ref().is_some_and(|c| c.members.contains_key(&from));
            if asked {
                poll.answers.insert(from, granted && held);
                self.count_forced_votes(fx);
            }
        }
    }

    /// Everybody kept has to agree.
    fn count_forced_votes(&mut self, fx: &mut Effects) {
        let Role::Candidate(Poll { answers, forced: Some(config), .. }) = &mut self.role else {
            return;
        };
        if answers.values().any(|granted| !granted) {
            self.role = Role::Follower;
        } else if config.members.keys().all(|id| answers.contains_key(id)) {
            let config = std::mem::take(config);
            self.become_leader(Some(config), fx);
        }
    }

    /// Everybody who belongs to a configuration that may be in force and was not given up, with what
    /// the latest one says of them; `None` of an outgoing voter, if the log does not go back to where
    /// it was a member.
    pub fn who_may_decide(&self) -> impl Iterator<Item = (MemberId, Option<&MemberInfo>)> {
        let undecided: Vec<&Config> = self.configs.undecided(self.commit).collect();
        // Who was expelled decides as long as that is not committed.
        let by_force = undecided.iter().filter(|config| !config.audit.is_empty());
        let lost: BTreeSet<MemberId> = by_force.flat_map(|config| &config.lost).copied().collect();
        let everybody = undecided.iter().flat_map(|config| config.everybody());
        let everybody: BTreeSet<_> = everybody.filter(|id| !lost.contains(id)).collect();
        everybody.into_iter().map(|id| (id, self.configs.latest(id)))
    }

    /// Whether a membership that was installed after an index, with this audit text, is committed. Another one may have
    /// come after it.
    pub fn has_forced(&self, audit: &str, after: Index) -> bool {
        let is_it = |(index, config): (Index, &Config)| {
            (after + 1..=self.commit).contains(&index) && config.audit == audit
        };
        self.configs.all().any(is_it)
    }

    /// Why this member, told to keep those alone, would not begin. The others who are kept are asked only when it does.
    pub fn may_force(&self, keep: Vec<MemberId>, audit: String) -> Result<(), String> {
        self.forced_config(keep, audit).map(drop)
    }

    /// The membership of those kept, if there is reason for it.
    fn forced_config(&self, keep: Vec<MemberId>, audit: String) -> Result<Config, String> {
        let (current, keep) = (self.config(), BTreeSet::from_iter(keep));
        if self.retired {
            return Err("the log of this member has failed".into());
        }
        if self.lease_refuses_votes() {
            return Err("a leader is in office, so a majority lives".into());
        }
        if audit.is_empty() || audit.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "the reason is too long, or missing: the names of those given up and the reason have {} bytes in the \
                 log, of at most {TEXT_BYTES_MAX}",
                audit.len()
            ));
        }
        if !keep.contains(&self.options.id) {
            return Err("the member that is told must be among those kept".into());
        }
        let members: BTreeMap<_, _> = self.who_may_decide().collect();
        let known = |id: &&MemberId| members.get(id).is_some_and(Option::is_some);
        if let Some(stranger) = keep.iter().find(|id| !known(id)) {
            return Err(format!("{stranger} cannot be kept: it is not a member"));
        }
        if current.is_quorum(|id| keep.contains(&id)) && !self.terms_are_used_up() {
            return Err("those kept are a majority and elect a leader by themselves".into());
        }
        if self.log.last().term > TERM_USED_UP {
            return Err("there are no terms left, and the log itself has the last of them: found a new group \
                        on the database of the node that has most of it"
                .into());
        }
        let mut config = Config { audit, outgoing: Vec::new(), ..current.clone() };
        let info = |id: &MemberId| Some((*id, members.get(id).copied()??.clone()));
        config.members = keep.iter().filter_map(info).collect();
        for info in config.members.values_mut().filter(|info| !info.is_voter()) {
            (info.role, info.joining) = (MemberRole::Voter, false);
        }
        enable_those_kept(&mut config);
        let former = self.configs.all().flat_map(|(_, config)| config.everybody());
        let lost = former.chain(current.lost.iter().copied()).filter(|id| !keep.contains(id));
        config.lost = BTreeSet::from_iter(lost).into_iter().collect();
        config.rules.zones_min = config.rules.zones_min.min(config.zones().len() as u8);
        check_governable(&config)?;
        Ok(config)
    }
}

/// Servers that were to stay behind the others (priority 0, or no votes) get as little of both as it
/// takes, if the others are all gone. Who is added later leads rather than they do.
fn enable_those_kept(config: &mut Config) {
    let servers = |config: &mut Config, raise: fn(&mut MemberInfo)| {
        let kept = config.members.values_mut();
        kept.filter(|info| info.role == MemberRole::Voter).for_each(raise);
    };
    if !config.members.values().any(MemberInfo::may_lead) {
        servers(config, |info| info.priority = 1);
    }
    if config.votes().next().is_none() {
        servers(config, |info| info.votes = 1);
    }
}

#[cfg(test)]
mod tests;
