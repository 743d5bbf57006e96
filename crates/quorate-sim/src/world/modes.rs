//! Single-primary mode and leadership that follows the writes, as what stands above the group keeps
//! them; and a stage in the end in which both must show that they work.
//!
//! A single primary must get a write through. Where leadership follows writes it must reach the one
//! member that writes, if that one may lead and is not lighter than the leader, and stay there;
//! where two write, or the writer is none to follow, it must stay where it is.

use super::{Mark, Micros, Phase, Plant, Process, Rule, World};
use quorate_consensus::placement::Pace;
use quorate_consensus::{Config, MemberRole, Primaries};

/// Election timeouts in which the group must get there.
const PATIENCE: u64 = 80;
/// Election timeouts for which nothing may move in the end: longer than any pace of following.
const REST: u64 = 8;
/// Changes of leadership on the way to that: what the faults left, priorities, the writer.
const CHANGES_MAX: usize = 6;

/// How far the group has shown that it is well in its mode.
#[derive(Default)]
pub struct Settling {
    over: bool,
    terms_led: usize,
    primary_writes: u64,
    writers: Vec<usize>,
    /// Who leads, as it should be, and since when.
    rests: Option<(usize, Micros)>,
}

impl Process {
    /// What it holds for true, not what is: until its next look it may take writes as the primary
    /// that it was.
    pub fn look_who_writes(&mut self) {
        self.writing_term = match (self.rules.primaries, self.leads) {
            (Primaries::Multi, _) => Some(0),
            (Primaries::Single, true) => Some(self.term),
            (Primaries::Single, false) => None,
        };
    }
}

impl World {
    pub(super) fn keep_modes(&mut self, m: usize) {
        let modes = &self.scenario.modes;
        let Some(process) = &mut self.nodes[m].process else { return };
        process.ticks += 1;
        if modes.on && process.ticks % modes.look_ticks == 0 {
            process.look_who_writes();
        }
    }

    /// The term to write in as the primary, or 0 where everybody writes; `None`: not now.
    pub(super) fn writing_term(&mut self, m: usize) -> Option<u64> {
        let at_once = !self.scenario.modes.on;
        let process = self.nodes[m].process.as_mut()?;
        if self.plant == Some(Plant::RestampTerm) && process.rules.primaries == Primaries::Single {
            return Some(process.term);
        }
        if at_once {
            process.look_who_writes();
        }
        process.writing_term
    }

    /// As slowly as this run can wait for.
    pub(super) fn pace(&self) -> Pace {
        let modes = &self.scenario.modes;
        match self.plant {
            Some(Plant::RestlessFollow) => {
                Pace { settled_ms: 0, writes_min: 1, hold_ms: 0, ..modes.pace }
            }
            _ => modes.pace,
        }
    }

    /// Whether the clients of `m` write now: where leadership is to follow them, one member's at a
    /// time.
    pub(super) fn is_turn_of(&self, m: usize) -> bool {
        let turn_us = self.scenario.modes.turn_timeouts * self.scenario.election_us();
        let follows = |process: &Process| process.rules.moves_with_writes();
        turn_us == 0
            || !self.nodes[m].process.as_ref().is_some_and(follows)
            || (self.schedule.now() / turn_us) as usize % self.nodes.len() == m
    }

    // ---- the stage in the end ----

    /// False if there is nothing to show.
    pub(super) fn begin_modes(&mut self) -> bool {
        let config = self.committed_config.1.clone();
        let single = config.rules.primaries == Primaries::Single;
        let shows = self.scenario.modes.on && (single || config.rules.moves_with_writes());
        if !shows || std::mem::replace(&mut self.settling.over, true) {
            return false;
        }
        self.settling.terms_led = self.oracle.terms_led();
        self.settling.primary_writes = self.coverage.count(Mark::PrimaryWrite);
        self.settling.writers = self.draw_writers(&config);
        note!(self, "the group shows its mode; these write: {:?}", self.settling.writers);
        self.enter(Phase::Modes, PATIENCE);
        true
    }

    pub(super) fn check_modes(&mut self) {
        let config = self.committed_config.1.clone();
        let done = match config.rules.primaries {
            Primaries::Single => self.primary_gets_through(),
            Primaries::Multi => self.leadership_rests(&config),
        };
        if done {
            self.mark(match config.rules.primaries {
                Primaries::Single => Mark::PrimaryServes,
                Primaries::Multi => Mark::LeadershipRests,
            });
            self.begin_stage(Phase::Healed);
        } else if self.schedule.now() > self.phase_ends {
            let Settling { writers, rests, .. } = &self.settling;
            let state = format!("writers {writers:?}, leader at rest {rests:?}");
            self.oracle.fail(Rule::Progress, || {
                format!("not settled in its mode after {PATIENCE} election timeouts: {state}")
            });
        }
    }

    fn primary_gets_through(&mut self) -> bool {
        if self.coverage.count(Mark::PrimaryWrite) > self.settling.primary_writes {
            return true;
        }
        self.slots().for_each(|m| self.write_if_idle(m));
        false
    }

    fn leadership_rests(&mut self, config: &Config) -> bool {
        let changes = self.oracle.terms_led() - self.settling.terms_led;
        self.oracle.fail_if(changes > CHANGES_MAX, Rule::LeadershipRests, || {
            format!("{changes} changes of leadership while the same members write")
        });
        for m in self.settling.writers.clone() {
            self.write_if_idle(m);
        }
        let now = self.schedule.now();
        let leader = self.leader().filter(|leader| self.is_rightly_led(config, *leader));
        self.settling.rests = match (self.settling.rests, leader) {
            (Some((before, since)), Some(leader)) if before == leader => Some((leader, since)),
            (_, leader) => leader.map(|leader| (leader, now)),
        };
        let rest = REST * self.scenario.election_us();
        self.settling.rests.is_some_and(|(_, since)| now >= since + rest)
    }

    /// Whether leadership has no reason to go to the one that writes, or is there.
    fn is_rightly_led(&self, config: &Config, leader: usize) -> bool {
        let &[writer] = self.settling.writers.as_slice() else { return true };
        let info = |m: usize| config.members.get(&self.nodes[m].id);
        let (Some(leads), Some(writes)) = (info(leader), info(writer)) else { return false };
        leader == writer || !writes.may_lead() || writes.priority < leads.priority
    }

    fn write_if_idle(&mut self, m: usize) {
        let idle = |process: &Process| process.pending.is_empty();
        if self.nodes[m].runs() && self.nodes[m].process.as_ref().is_some_and(idle) {
            self.write(m, 0);
        }
    }

    /// One or two members with a database.
    fn draw_writers(&mut self, config: &Config) -> Vec<usize> {
        let has_data = |m: &usize| {
            let node = &self.nodes[*m];
            let info = config.members.get(&node.id);
            node.runs() && info.is_some_and(|info| info.role != MemberRole::Logger)
        };
        let mut found: Vec<usize> = self.slots().filter(has_data).collect();
        let most = if self.scenario.modes.two_write { 2 } else { 1 };
        while found.len() > most {
            found.swap_remove(self.rng.index(found.len()));
        }
        found
    }
}
