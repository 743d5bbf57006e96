//! Links that are broken for good: as long as one member, with a log as good as any, reaches a
//! majority, the group must go on working, whoever else stands, is elected, or is handed leadership
//! to in vain. (A connection needs both directions, so nobody is reached who does not reach.)
//!
//! That one is the leader, or, all logs being equal, anybody while the leader is down. Where the
//! only one that reaches a majority lacks what others have, nobody can be elected: that is how Raft
//! is. So nobody that takes no acknowledgements may add to the logs meanwhile: here everybody may
//! lead, and no rule asks for more than a majority.

use super::check::changes;
use super::{mix, Mark, Phase, Profile, Rng, Rule, World};
use quorate_consensus::Index;
use quorate_wal::sim::Crash;

/// Commits that have to be seen, one after the other.
const ROUNDS: u32 = 6;
/// Election timeouts they may take together.
const PATIENCE: u64 = 90;
/// Links cut, in a thousand.
const CUT: u32 = 450;

/// How far the group got with its broken links.
pub struct Broken {
    /// The links of this run are still to break.
    due: bool,
    rng: Rng,
    rounds: u32,
    goal: Index,
    /// Stopped for so long.
    down: Option<usize>,
}

impl Broken {
    /// Drawn apart from the rest, so that other seeds keep their meaning.
    pub fn draw(seed: u64, profile: Profile) -> Self {
        let mut rng = Rng::new(mix(seed, 0x4272_6f6b_656e));
        let possible = matches!(profile, Profile::Swarm | Profile::Network);
        let due = rng.chance(200) && possible;
        Broken { due, rng, rounds: 0, goal: 0, down: None }
    }
}

impl World {
    /// Breaks links of a group that is well. False if there is nobody the group could rely on.
    pub(super) fn begin_broken(&mut self) -> bool {
        if !std::mem::replace(&mut self.broken.due, false) {
            return false;
        }
        let Some((hub, reached)) = self.draw_hub() else { return false };
        if let Some(leader) = self.broken.down {
            self.crash(leader, Crash::Kill);
        }
        for a in self.slots() {
            for b in 0..a {
                let kept =
                    (a == hub && reached & (1 << b) != 0) || (b == hub && reached & (1 << a) != 0);
                if !kept && self.broken.rng.chance(CUT) {
                    self.break_link(a, b);
                }
            }
        }
        note!(self, "m{hub} keeps its links with {reached:#b}");
        self.mark(Mark::BrokenLinks);
        self.enter(Phase::Broken, PATIENCE);
        self.broken.goal = self.oracle.commit() + 1;
        true
    }

    fn break_link(&mut self, a: usize, b: usize) {
        let one_way = self.broken.rng.chance(500);
        self.net.cut(a, b);
        if !one_way {
            self.net.cut(b, a);
        }
        note!(self, "m{a} and m{b} are cut off from each other for good");
    }

    /// Looks for the next commit; true when there were enough.
    fn goes_on(&mut self) -> bool {
        if self.oracle.commit() >= self.broken.goal {
            self.broken.rounds += 1;
            self.broken.goal = self.oracle.commit() + 1;
        }
        if self.broken.rounds >= ROUNDS {
            return true;
        }
        if let Some(leader) = self.leader() {
            self.write(leader, 0);
        }
        false
    }

    pub(super) fn check_broken(&mut self) {
        if self.goes_on() {
            self.join_links();
            if let Some(leader) = self.broken.down.take() {
                self.make_well(leader);
            }
            self.mark(Mark::WentOnBroken);
            self.begin_stage(Phase::Healed);
        } else if self.schedule.now() > self.phase_ends {
            let rounds = self.broken.rounds;
            self.oracle.fail(Rule::Progress, || {
                format!("{rounds} commits of {ROUNDS} in {PATIENCE} election timeouts")
            });
        }
    }

    /// Somebody to rely on, and a set of members that decides with it. Nobody while a member waits for
    /// the votes that it wants: with others, the set may decide nothing.
    fn draw_hub(&mut self) -> Option<(usize, u16)> {
        let config = self.committed_config.1.clone();
        let plain = config.voters().all(|id| config.may_lead(id)) && config.rules.zones_min <= 1;
        if !plain || changes(&config) || !self.has_its_votes(&config) || self.somebody_waits() {
            return None;
        }
        let leader = self.leader()?;
        let without_leader = self.broken.rng.chance(500);
        let rng = &mut self.broken.rng;
        let nodes = &self.nodes;
        let slot = |id| nodes.iter().position(|node| node.id == id);
        let mut rest: Vec<usize> =
            config.voters().filter_map(slot).filter(|m| *m != leader).collect();
        let hub = match without_leader {
            true if !rest.is_empty() => rest.swap_remove(rng.index(rest.len())),
            _ => leader,
        };
        for at in (1..rest.len()).rev() {
            rest.swap(at, rng.index(at + 1));
        }
        let mut reached = 1 << hub;
        let decides =
            |set: u16| config.is_quorum(|id| slot(id).is_some_and(|m| set & (1 << m) != 0));
        while !decides(reached) {
            reached |= 1 << rest.pop()?;
        }
        self.broken.down = (hub != leader).then_some(leader);
        Some((hub, reached))
    }
}
