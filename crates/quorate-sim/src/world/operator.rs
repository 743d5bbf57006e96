//! The people who run the group: membership changes, hand-overs, replacing lost members.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use quorate_consensus::{
    Config, ConfigChange, Event as CoreEvent, MemberId, MemberInfo, MemberRole,
};
use std::rc::Rc;

#[derive(Clone, Copy)]
enum Act {
    AddLearner,
    AddVoter,
    Promote,
    Demote,
    Remove,
    Swap,
    Exchange,
    Several,
    Readmit,
    Replace,
    Alter,
    Rules,
    Transfer,
}

impl World {
    /// An act of the operator, and the appointment for the next.
    pub(super) fn operate(&mut self) {
        if self.phase != Phase::Faults {
            return;
        }
        let election = self.scenario.election_us();
        let delay = self.rng.range(election / 4, election * 3);
        self.schedule.after(delay, Event::Operate);
        self.operate_now();
    }

    /// One act of the operator, at whoever leads.
    pub(super) fn operate_now(&mut self) {
        if self.phase != Phase::Faults {
            return;
        }
        let Some(leader) = self.any_leader() else { return };
        if !self.members[leader].runs() {
            return;
        }
        let faults = &self.scenario.faults;
        let change = |priority: u32| if faults.membership { priority } else { 0 };
        let varied = self.scenario.staff.varied;
        let acts = [
            (Act::AddLearner, change(8)),
            (Act::AddVoter, change(4)),
            (Act::Promote, change(10)),
            (Act::Demote, change(4)),
            (Act::Remove, change(8)),
            (Act::Swap, change(5)),
            (Act::Exchange, change(6)),
            (Act::Several, change(4)),
            (Act::Readmit, change(4)),
            (Act::Replace, if faults.wipe { 30 } else { 0 }),
            (Act::Alter, if varied { change(12) } else { 0 }),
            (Act::Rules, if varied || self.scenario.modes.on { 6 } else { 0 }),
            (Act::Transfer, if faults.transfer { 12 } else { 0 }),
        ];
        match self.rng.weighted(&acts) {
            Some(Act::Transfer) => self.transfer(leader),
            Some(Act::Rules) => self.change_rules(leader),
            Some(act) => self.change(leader, act),
            None => {}
        }
    }

    fn transfer(&mut self, leader: usize) {
        let voters: Vec<_> = self.members[leader].disk.live.config().1.voters().collect();
        let Some(to) = self.rng.pick(&voters).copied() else { return };
        if self.tells() {
            self.note(format!("operator: m{leader} shall hand over to {to:?}"));
        }
        self.ask(leader, CoreEvent::TransferLeadership(to), Mark::Transfer);
    }

    fn change(&mut self, leader: usize, act: Act) {
        let config = Rc::clone(self.members[leader].disk.live.config().1);
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        match act {
            Act::AddLearner => put.extend(self.newcomer(MemberRole::Learner)),
            Act::AddVoter => put.extend(self.newcomer(MemberRole::Voter)),
            Act::Promote => put.extend(self.some(&config, MemberRole::Learner, MemberRole::Voter)),
            Act::Demote => put.extend(self.some(&config, MemberRole::Voter, MemberRole::Learner)),
            Act::Remove => remove.extend(self.any_of(&config)),
            Act::Swap => {
                remove.extend(self.any_of(&config));
                put.extend(
                    self.some(&config, MemberRole::Learner, MemberRole::Voter)
                        .or_else(|| self.newcomer(MemberRole::Voter)),
                );
            }
            Act::Exchange => {
                for _ in 0..self.rng.range(1, 3) {
                    put.extend(self.newcomer(MemberRole::Voter));
                }
                let voters: Vec<_> = config.voters().collect();
                remove.extend(voters.into_iter().filter(|_| self.rng.chance(500)));
            }
            Act::Several => {
                for (id, info) in &config.members {
                    match self.rng.below(4) {
                        0 => put.push((*id, flipped(info))),
                        1 if remove.is_empty() => remove.push(*id),
                        _ => {}
                    }
                }
            }
            Act::Readmit => put.extend(self.outsider(&config)),
            Act::Replace => {
                remove.extend(config.members.keys().filter(|id| self.is_gone(**id)));
                if !remove.is_empty() {
                    let role =
                        if self.rng.chance(500) { MemberRole::Voter } else { MemberRole::Learner };
                    put.extend(self.newcomer(role));
                }
            }
            Act::Alter => {
                let found: Vec<_> = config.members.iter().collect();
                if let Some((id, info)) = self.rng.pick(&found).copied() {
                    put.push((*id, self.scenario.staff.altered(&mut self.rng, info)));
                }
            }
            Act::Rules | Act::Transfer => unreachable!("not a change of members"),
        }
        put.retain(|(id, _)| !remove.contains(id));
        if (put.is_empty() && remove.is_empty()) || !self.can_live_with(&config, &put, &remove) {
            return;
        }
        if self.tells() {
            self.note(format!("operator: m{leader} shall put {put:?} and remove {remove:?}"));
        }
        if self.scenario.faults.partition && self.rng.chance(300) {
            self.part_along_change(leader, &put);
        }
        for id in &remove {
            if let Some(m) = self.slot(*id) {
                let delay = self.rng.below(self.scenario.election_us() * 8);
                self.schedule.after(delay, Event::Retire { m });
            }
        }
        let newcomers: Vec<MemberId> =
            put.iter().map(|(id, _)| *id).filter(|id| !config.members.contains_key(id)).collect();
        let change = CoreEvent::ChangeMembership(ConfigChange::Update { put, remove });
        self.ask(leader, change, Mark::MembershipChange);
        self.welcome(leader, &newcomers);
    }

    /// Some of those who have nothing are rather sent a snapshot.
    fn welcome(&mut self, leader: usize, newcomers: &[MemberId]) {
        for id in newcomers {
            if self.rng.chance(500) && self.members[leader].is_up() {
                self.welcomed.insert(*id);
                self.must_accept(leader, CoreEvent::SnapshotWelcome(*id));
            }
        }
    }

    fn change_rules(&mut self, leader: usize) {
        let rules = self.scenario.staff.rules(&mut self.rng);
        let rules = self.scenario.modes.rules(&mut self.rng, rules);
        let mut after = (**self.members[leader].disk.live.config().1).clone();
        after.rules = rules;
        if !self.is_governed(&after, &|_| false) {
            return;
        }
        if self.tells() {
            self.note(format!("operator: m{leader} shall go by {rules:?}"));
        }
        let change = CoreEvent::ChangeMembership(ConfigChange::Rules(rules));
        self.ask(leader, change, Mark::RulesChange);
    }

    /// The links break just when a change begins: the leader and those it brings in are on one
    /// side, so that two memberships could each go on by itself, were they not made to overlap.
    fn part_along_change(&mut self, leader: usize, put: &[(MemberId, MemberInfo)]) {
        let mut side = 1 << leader;
        for (id, _) in put {
            side |= self.slot(*id).map_or(0, |m| 1 << m);
        }
        for m in 0..self.slots() {
            side |= u16::from(self.rng.chance(150)) << m;
        }
        self.partition_off(side);
    }

    pub(super) fn ask(&mut self, m: usize, event: CoreEvent, accepted: Mark) {
        match self.step(m, event) {
            Ok(()) => {
                self.mark(accepted);
                self.provoke();
            }
            Err(refusal) if self.tells() => self.note(format!("m{m} refuses: {refusal}")),
            Err(_) => {}
        }
    }

    /// Whether enough of the voters after the change still have their disks.
    fn can_live_with(
        &self,
        config: &Config,
        put: &[(MemberId, MemberInfo)],
        remove: &[MemberId],
    ) -> bool {
        let mut after = config.clone();
        after.outgoing.clear();
        after.members.extend(put.iter().cloned());
        after.members.retain(|id, _| !remove.contains(id));
        self.is_governed(&after, &|_| false) && self.quorums_survive(|_| false)
    }

    /// Whether every membership that may be in force somewhere keeps a majority of its disks
    /// without the members that are `lost`.
    pub(super) fn quorums_survive(&self, lost: impl Fn(usize) -> bool) -> bool {
        let holds = |config: &Config| {
            self.is_governed(config, &lost)
                && (!config.is_joint() || self.has_majority(&config.outgoing, &lost))
        };
        !self.without_majority
            && holds(&self.committed_config.1)
            && self.uncommitted_configs().all(holds)
    }

    /// Whether a membership was made that is not known to be committed, nor overtaken by one.
    pub(super) fn has_unfinished_change(&self) -> bool {
        self.committed_config.1.is_joint() || self.uncommitted_configs().next().is_some()
    }

    fn uncommitted_configs(&self) -> impl Iterator<Item = &Config> {
        let committed_at = self.committed_config.0;
        self.configs_made.iter().filter(move |(at, _)| *at > committed_at).map(|(_, config)| config)
    }

    /// Whether a majority of the voters is left, in as many zones as the rules ask for, and
    /// somebody among them that may lead.
    fn is_governed(&self, config: &Config, lost: &impl Fn(usize) -> bool) -> bool {
        let mut left = config.clone();
        left.members.retain(|id, _| self.is_kept(*id, lost));
        self.has_majority(&config.votes().collect::<Vec<_>>(), lost)
            && left.zones().len() >= usize::from(config.rules.zones_min)
            && left.members.values().any(MemberInfo::may_lead)
    }

    fn is_kept(&self, id: MemberId, lost: &impl Fn(usize) -> bool) -> bool {
        self.slot(id).is_some_and(|m| !self.members[m].gone && !lost(m))
    }

    fn has_majority(&self, voters: &[MemberId], lost: &impl Fn(usize) -> bool) -> bool {
        let kept = |id: &&MemberId| self.is_kept(**id, lost);
        voters.iter().filter(kept).count() * 2 > voters.len()
    }

    pub(super) fn is_gone(&self, id: MemberId) -> bool {
        self.slot(id).is_some_and(|m| self.members[m].gone)
    }

    /// A member of `role`, with another one.
    fn some(
        &mut self,
        config: &Config,
        role: MemberRole,
        becomes: MemberRole,
    ) -> Option<(MemberId, MemberInfo)> {
        let found: Vec<_> = config.members.iter().filter(|(_, info)| info.role == role).collect();
        let (id, info) = *self.rng.pick(&found)?;
        Some((*id, MemberInfo { role: becomes, ..info.clone() }))
    }

    fn any_of(&mut self, config: &Config) -> Option<MemberId> {
        let ids: Vec<_> = config.members.keys().copied().collect();
        self.rng.pick(&ids).copied()
    }

    fn newcomer(&mut self, role: MemberRole) -> Option<(MemberId, MemberInfo)> {
        let m = self.spawn_newcomer()?;
        Some(self.described(m, role))
    }

    fn described(&mut self, m: usize, role: MemberRole) -> (MemberId, MemberInfo) {
        let info = self.scenario.staff.member(&mut self.rng, m, role);
        (self.members[m].id, info)
    }

    /// Somebody who was removed before comes back with the log it had.
    fn outsider(&mut self, config: &Config) -> Option<(MemberId, MemberInfo)> {
        let outside = |m: &usize| {
            !self.members[*m].gone && !config.members.contains_key(&self.members[*m].id)
        };
        let outsiders: Vec<usize> = (0..self.slots()).filter(outside).collect();
        let m = *self.rng.pick(&outsiders)?;
        let run = self.members[m].run;
        self.schedule.after(1, Event::Restart { m, run });
        let role = if self.rng.chance(500) { MemberRole::Voter } else { MemberRole::Learner };
        Some(self.described(m, role))
    }
}

fn flipped(info: &MemberInfo) -> MemberInfo {
    let role = match info.role {
        MemberRole::Voter | MemberRole::Logger => MemberRole::Learner,
        MemberRole::Learner => MemberRole::Voter,
    };
    MemberInfo { role, ..info.clone() }
}
