//! Links that are broken for good, in one direction or both: as long as one member, with a log as
//! good as any, reaches a majority and is reached by it, the group must go on working, whoever else
//! stands, is elected, or is handed leadership to in vain.
//!
//! That one is the leader, or, all logs being equal, anybody while the leader is down. Where the
//! only one that reaches a majority lacks what others have, nobody can be elected: that is how Raft
//! is. So nobody that takes no acknowledgements may add to the logs meanwhile: here everybody may
//! lead, and no rule asks for more than a majority.

use super::{Phase, World};
use crate::coverage::Mark;
use crate::oracle::Rule;
use quorate_consensus::Index;
use std::rc::Rc;

/// Commits that have to be seen, one after the other.
const ROUNDS: u32 = 6;
/// Election timeouts they may take together.
const PATIENCE: u64 = 90;
/// Links cut, in a thousand.
const CUT: u32 = 450;

/// How far the group got with its broken links.
#[derive(Default)]
pub struct Lame {
    pub over: bool,
    rounds: u32,
    goal: Index,
    /// Stopped for so long.
    down: Option<usize>,
}

impl World {
    /// Breaks links of a group that is well. False if there is nobody the group could rely on.
    pub(super) fn begin_lame(&mut self) -> bool {
        if !self.scenario.lame || std::mem::replace(&mut self.lame.over, true) {
            return false;
        }
        let Some((hub, reached)) = self.draw_hub() else { return false };
        if let Some(leader) = self.lame.down {
            self.stop(leader);
        }
        for from in 0..self.slots() {
            for to in 0..self.slots() {
                let kept = (from == hub && reached & (1 << to) != 0)
                    || (to == hub && reached & (1 << from) != 0);
                if from != to && !kept && self.rng.chance(CUT) {
                    self.net.cut(from, to);
                    if self.tells() {
                        self.note(format!("m{from} -> m{to} breaks for good"));
                    }
                }
            }
        }
        if self.tells() {
            self.note(format!("m{hub} keeps its links with {reached:#b}"));
        }
        self.mark(Mark::LameLinks);
        self.phase = Phase::Lame;
        self.phase_ends = self.schedule.now() + PATIENCE * self.scenario.election_us();
        self.lame.goal = self.oracle.commit() + 1;
        true
    }

    /// Looks for the next commit; true when there were enough.
    fn is_lame_but_well(&mut self) -> bool {
        if self.oracle.commit() >= self.lame.goal {
            self.lame.rounds += 1;
            self.lame.goal = self.oracle.commit() + 1;
        }
        if self.lame.rounds >= ROUNDS {
            return true;
        }
        if let Some(leader) = self.any_leader() {
            self.write(leader, 0);
        }
        false
    }

    pub(super) fn check_lame(&mut self) {
        if self.is_lame_but_well() {
            self.net.heal();
            if let Some(leader) = self.lame.down.take() {
                self.make_well(leader);
            }
            self.phase = Phase::Healed;
            self.begin_stage();
        } else if self.schedule.now() > self.phase_ends {
            let rounds = self.lame.rounds;
            self.oracle.fail(Rule::Progress, || {
                format!("{rounds} commits of {ROUNDS} in {PATIENCE} election timeouts")
            });
        }
    }

    /// Somebody to rely on, and a set of members that decides with it.
    fn draw_hub(&mut self) -> Option<(usize, u16)> {
        let config = Rc::clone(&self.committed_config.1);
        let plain = config.voters().all(|id| config.may_lead(id)) && config.rules.zones_min <= 1;
        if !plain || self.has_unfinished_change() {
            return None;
        }
        let leader = self.any_leader()?;
        let without_leader = self.rng.chance(500);
        let mut rest: Vec<usize> = config
            .voters()
            .filter_map(|id| self.slot(id))
            .filter(|m| !self.members[*m].gone && *m != leader)
            .collect();
        let hub = match without_leader {
            true if !rest.is_empty() => rest.swap_remove(self.rng.index(rest.len())),
            _ => leader,
        };
        for at in (1..rest.len()).rev() {
            rest.swap(at, self.rng.index(at + 1));
        }
        let mut reached = 1 << hub;
        let decides =
            |set: u16| config.is_quorum(|id| self.slot(id).is_some_and(|m| set & (1 << m) != 0));
        while !decides(reached) {
            reached |= 1 << rest.pop()?;
        }
        self.lame.down = (hub != leader).then_some(leader);
        Some((hub, reached))
    }
}
