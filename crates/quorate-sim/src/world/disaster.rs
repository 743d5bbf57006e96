//! A majority loses its disks for good, and an operator makes what is left the group.
//!
//! What was committed is lost as far as nobody left has it; nothing else may be. The operator keeps
//! its word: whoever is not kept never comes back.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use crate::oracle::Rule;
use quorate_consensus::{Config, Event as CoreEvent, Index, MemberId, MemberInfo};
use std::rc::Rc;

/// What the operator writes into the membership it installs.
pub(super) const AUDIT: &str = "disaster";

impl World {
    pub(super) fn schedule_disaster(&mut self) {
        if self.scenario.staff.disaster {
            let at = self.rng.below(self.scenario.chaos_us);
            self.schedule.at(at, Event::Disaster);
        }
    }

    pub(super) fn disaster(&mut self) {
        if self.phase != Phase::Faults {
            return;
        }
        let Some(survivors) = self.draw_survivors() else {
            let delay = self.scenario.election_us() * 2;
            return self.schedule.after(delay, Event::Disaster);
        };
        if self.tells() {
            self.note(format!("disaster: only {survivors:#b} keep their disks"));
        }
        for m in (0..self.slots()).filter(|m| survivors & (1 << m) == 0) {
            self.wipe(m);
        }
        self.mark(Mark::Disaster);
        self.without_majority = true;
        self.force_later();
    }

    /// The operator asks one of those left.
    pub(super) fn force(&mut self) {
        if self.is_group_again() {
            self.without_majority = false;
            return;
        }
        self.force_later();
        let left: Vec<usize> = (0..self.slots()).filter(|m| self.members[*m].runs()).collect();
        let Some(m) = self.rng.pick(&left).copied() else { return };
        let config = Rc::clone(self.members[m].disk.live.config().1);
        let keep = config.members.keys().filter(|id| !self.is_gone(**id)).copied().collect();
        if self.tells() {
            self.note(format!("operator: m{m} shall make the group of {keep:?}"));
        }
        self.ask(m, CoreEvent::ForceQuorum { keep, audit: AUDIT.into() }, Mark::Force);
    }

    /// `m` leads by force, with a log of which `upto` is the last entry that was committed.
    pub(super) fn forced(&mut self, m: usize, upto: Index, at: Index, config: Config) {
        if self.tells() {
            self.note(format!("m{m} leads by force; committed and left is what goes up to {upto}"));
        }
        let ahead = self
            .members
            .iter()
            .position(|other| config.members.contains_key(&other.id) && other.commit_seen > upto);
        if let Some(other) = ahead {
            let commit = self.members[other].commit_seen;
            self.oracle.fail(Rule::CommittedNeverChanges, || {
                format!("m{m} leads by force, left is {upto}, but m{other} committed {commit}")
            });
        }
        self.oracle.forced(upto);
        for read in self.members.iter_mut().flat_map(|member| &mut member.reads) {
            read.floor = read.floor.min(upto);
            // What the lost leader answered may stand for what is lost with it.
            read.point = read.point.map(|point| point.min(upto));
        }
        self.configs_made.clear();
        self.committed_config = (at, Rc::new(config));
        self.mark(Mark::Forced);
    }

    /// The membership installed by force is committed: until then a crash may undo it.
    fn is_group_again(&self) -> bool {
        let (at, config) = &self.committed_config;
        config.audit == AUDIT && self.oracle.commit() >= *at
    }

    fn force_later(&mut self) {
        let election = self.scenario.election_us();
        let delay = self.rng.range(election, election * 3);
        self.schedule.after(delay, Event::Force);
    }

    /// Members without a majority, one of which may lead, as a set of bits.
    fn draw_survivors(&mut self) -> Option<u16> {
        if self.has_unfinished_change() {
            return None;
        }
        let config = Rc::clone(&self.committed_config.1);
        let slots: Vec<usize> = config.members.keys().filter_map(|id| self.slot(*id)).collect();
        let left: Vec<usize> = slots.into_iter().filter(|_| self.rng.chance(450)).collect();
        let ids: Vec<MemberId> = left.iter().map(|m| self.members[*m].id).collect();
        let mut infos = ids.iter().filter_map(|id| config.members.get(id));
        // A snapshot may stand for more than the log beside it; such a one knows too much. And
        // each must know who belongs to the group.
        let sound = |m: &usize| {
            let member = &self.members[*m];
            let snapshot = member.disk.snapshot.as_ref().map_or(0, |s| s.last.index);
            !member.gone
                && member.disk.durable.config().1 == &config
                && snapshot <= member.disk.durable.last().index
        };
        let votes = config.votes().any(|id| ids.contains(&id));
        let fit = votes
            && !config.is_quorum(|id| ids.contains(&id))
            && infos.any(MemberInfo::may_lead)
            && left.iter().all(sound);
        fit.then(|| left.iter().fold(0, |set, m| set | 1 << m))
    }
}
