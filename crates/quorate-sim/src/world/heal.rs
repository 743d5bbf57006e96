//! After the faults: everything must get going again, within bounded time, and agree.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use crate::oracle::Rule;
use quorate_consensus::{Index, MemberId};

/// Election timeouts that a healed group may take until everything is decided everywhere.
const PATIENCE: u64 = 60;

impl World {
    /// Ends the faults; later, looks whether the group is well.
    pub(super) fn heal_check(&mut self) {
        match self.phase {
            Phase::Faults => self.end_faults(),
            Phase::WithoutMinority if self.is_converged() => self.bring_back_minority(),
            Phase::Healed if self.is_converged() => {
                self.check_acknowledged();
                if !self.begin_modes() && !self.begin_lame() {
                    self.phase = Phase::Done;
                }
            }
            Phase::Lame => self.check_lame(),
            Phase::Modes => self.check_modes(),
            Phase::WithoutMinority | Phase::Healed if self.schedule.now() > self.phase_ends => {
                let why = self.unfinished().unwrap_or_default();
                let phase = self.phase;
                self.oracle.fail(Rule::Progress, || {
                    format!("{phase:?} for {PATIENCE} election timeouts, but {why}")
                });
            }
            Phase::WithoutMinority | Phase::Healed | Phase::Done => {}
        }
        if self.phase != Phase::Done {
            self.schedule.after(self.scenario.election_us() / 4, Event::HealCheck);
        }
    }

    fn end_faults(&mut self) {
        self.net.heal();
        self.away = if self.scenario.minority_stays_away { self.draw_minority() } else { 0 };
        let cut_off = self.rng.chance(500);
        self.away_is_down = !cut_off;
        if self.tells() {
            let how = if cut_off { "cut off" } else { "down" };
            self.note(format!("the faults end; {:#b} stay away, {how}", self.away));
        }
        self.phase = if self.away == 0 { Phase::Healed } else { Phase::WithoutMinority };
        for m in 0..self.slots() {
            if self.stays_down(m) {
                self.stop(m);
            } else {
                self.make_well(m);
            }
        }
        if cut_off {
            self.net.split(self.away);
        }
        self.begin_stage();
    }

    fn bring_back_minority(&mut self) {
        if self.tells() {
            self.note("the group is well without the minority, which now comes back".into());
        }
        self.mark(Mark::WithoutMinority);
        self.away = 0;
        self.net.join_all();
        self.phase = Phase::Healed;
        for m in 0..self.slots() {
            self.make_well(m);
        }
        self.begin_stage();
    }

    pub(super) fn make_well(&mut self, m: usize) {
        let member = &mut self.members[m];
        member.crash_at = None;
        member.apply_lag_us = 0;
        if member.gone {
            return;
        }
        if member.disk.failed {
            self.stop(m);
        }
        let run = self.members[m].run;
        self.resume(m, run);
        self.restart(m, run);
        self.apply_soon(m);
    }

    /// Everybody present writes and reads something new, and has so long for it.
    pub(super) fn begin_stage(&mut self) {
        self.phase_ends = self.schedule.now() + PATIENCE * self.scenario.election_us();
        for m in 0..self.slots() {
            if self.members[m].is_up() && !self.is_away(m) {
                self.write(m, 0);
                self.read(m, 0);
            }
        }
    }

    /// A random set of members without whom every membership still has its majority.
    ///
    /// Nobody stays away while a membership change is unfinished: two logs with different
    /// memberships may each need the vote of a member that has the better log but is no voter by
    /// it. That is how Raft is, and ends when the member that led comes back.
    fn draw_minority(&mut self) -> u16 {
        let mut away = 0u16;
        if self.has_unfinished_change() || self.without_majority {
            return away;
        }
        for m in 0..self.slots() {
            let with = away | 1 << m;
            if self.rng.chance(400) && self.quorums_survive(|slot| with & (1 << slot) != 0) {
                away = with;
            }
        }
        away
    }

    pub(super) fn stays_down(&self, m: usize) -> bool {
        self.is_away(m) && self.away_is_down
    }

    fn is_away(&self, m: usize) -> bool {
        self.away & (1 << m) != 0
    }

    fn is_converged(&self) -> bool {
        self.unfinished().is_none()
    }

    /// The first reason found why the group is not well yet.
    fn unfinished(&self) -> Option<String> {
        let leaders: Vec<usize> = (0..self.slots())
            .filter(|m| !self.is_away(*m) && self.members[*m].is_leader())
            .collect();
        let &[leader] = leaders.as_slice() else {
            return Some(format!("these lead: {leaders:?}"));
        };
        let leader_log = &self.members[leader].disk.live;
        let (config_at, config) = leader_log.config();
        if !config.may_lead(self.members[leader].id) {
            return Some(format!("m{leader} leads, which only may hand over"));
        }
        let commit = self.oracle.commit();
        if config.is_joint() || config_at > commit {
            return Some(format!("the membership change at {config_at} is not finished"));
        }
        if leader_log.last().index != commit {
            let last = leader_log.last().index;
            return Some(format!("m{leader} leads with a log up to {last}, committed is {commit}"));
        }
        config.members.keys().find_map(|id| self.lagging(*id, commit))
    }

    fn lagging(&self, id: MemberId, commit: Index) -> Option<String> {
        let m = self.slot(id)?;
        let member = &self.members[m];
        if member.gone || self.is_away(m) {
            return None;
        }
        let (last, durable) = (member.disk.live.last().index, member.disk.durable.last().index);
        let applied = member.machine.applied;
        if [last, durable, member.commit, applied] != [commit; 4] {
            return Some(format!(
                "m{m} has a log up to {last}, on disk up to {durable}, committed {}, applied \
                 {applied}, where {commit} is committed",
                member.commit
            ));
        }
        let (writes, reads) = (member.pending.len(), member.reads.len());
        (!member.is_idle()).then(|| format!("m{m} has {writes} writes and {reads} reads open"))
    }

    /// Everything that a client was told is in the log, where it was told.
    fn check_acknowledged(&mut self) {
        let Some(leader) = self.any_leader() else { return };
        let log = &self.members[leader].disk.durable;
        let lost = self.oracle.ops().iter().enumerate().find_map(|(op, fate)| {
            let index = fate.index.filter(|i| fate.acknowledged && *i > log.base.index)?;
            let entry = log.get(index);
            let there = entry.and_then(|e| crate::machine::op_of(&e.data));
            (there != Some(op as u32)).then_some((op, index))
        });
        if let Some((op, index)) = lost {
            self.oracle.fail(Rule::AcknowledgedSurvives, || {
                format!("operation {op} was acknowledged at {index}, where m{leader} has another")
            });
        }
    }
}
