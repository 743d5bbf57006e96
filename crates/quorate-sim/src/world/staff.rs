//! What sets members apart: what each wishes to be, its votes, and those that only hand over.

use super::{show, Mark, Rule, World};
use quorate_consensus::{Config, Entry, EntryKind, MemberId, MemberInfo, MemberRole};
use quorate_group::Order;

impl World {
    /// In a group that founds itself. In others the first membership says it.
    pub(super) fn first_wish(&self, m: usize) -> (MemberRole, u8) {
        match m < self.scenario.voters {
            true => self.scenario.staff.wish(m),
            false => (MemberRole::Learner, 50),
        }
    }

    /// Whoever loses its disk wishes to be what it was.
    pub(super) fn keep_wishes(&mut self, config: &Config, ids: &[MemberId]) {
        for (node, id) in self.nodes.iter_mut().zip(ids) {
            if let Some(info) = config.members.get(id) {
                node.wish = (info.role, info.priority);
            }
        }
    }

    /// What each start of `m` is told, as by its options.
    pub(super) fn instruct(&mut self, m: usize) {
        if self.scenario.allow_alone {
            self.tell(m, "allow alone", Order::AllowAlone(true));
        }
        if let Some(votes) = self.scenario.staff.votes(m) {
            self.tell(m, "votes", Order::WantVotes(votes));
        }
        if !self.is_member(&self.nodes[m]) {
            self.tell(m, "join", Order::AwaitJoined);
        }
    }

    /// Whether everybody has the votes that it was told to want, when it started or since.
    pub(super) fn has_its_votes(&self, config: &Config) -> bool {
        let has = |(m, node): (usize, &crate::node::Node)| {
            let info = config.members.get(&node.id).filter(|info| info.is_voter());
            let at_a_start = self.scenario.staff.votes(m).unwrap_or(1);
            let wanted = node.process.as_ref().map_or(at_a_start, |process| process.wants_votes);
            info.is_none_or(|info| wanted == info.votes)
        };
        self.nodes.iter().enumerate().all(has)
    }

    /// `m` leads, by this membership.
    pub(super) fn leads_by(&mut self, m: usize, config: &Config) {
        let id = self.nodes[m].id;
        let Some(process) = &mut self.nodes[m].process else { return };
        let info = config.members.get(&id);
        process.caretaker = info.is_some_and(|info| info.is_voter() && !info.may_lead());
        if process.caretaker {
            self.mark(Mark::Caretaker);
            note!(self, "m{m} leads, and may only hand over");
        }
    }

    /// `m` made `entry` as the leader: one that only hands over takes nothing. (One on its way out of
    /// the voters serves to the end.)
    pub(super) fn check_caretaker(&mut self, m: usize, entry: &Entry) {
        let caretaker = self.nodes[m].process.as_ref().is_some_and(|p| p.caretaker);
        self.oracle.fail_if(
            caretaker && matches!(entry.kind, EntryKind::Data | EntryKind::View | EntryKind::Note),
            Rule::CaretakersOnlyHandOver,
            || {
                let at = show(entry.position());
                format!("m{m} may not lead, but makes entry {at}, {:?}", entry.kind)
            },
        );
    }

    /// What is in a membership that was committed.
    pub(super) fn mark_membership(&mut self, config: &Config) {
        let found = |which: fn(&MemberInfo) -> bool| config.members.values().any(which);
        let marks = [
            (Mark::Learner, found(|info| info.role == MemberRole::Learner)),
            (Mark::Logger, found(|info| info.role == MemberRole::Logger)),
            (Mark::Joining, found(|info| info.joining)),
            (Mark::WithoutVote, found(|info| info.is_voter() && info.votes == 0)),
            (Mark::SeveralVotes, found(|info| info.is_voter() && info.votes > 1)),
            (Mark::WithoutPriority, found(|info| info.is_voter() && info.priority == 0)),
            (Mark::ZoneRule, config.rules.zones_min > 1),
        ];
        marks.into_iter().filter(|(_, there)| *there).for_each(|(mark, _)| self.mark(mark));
    }
}
