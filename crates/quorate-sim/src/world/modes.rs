//! Single-primary mode and leadership that follows the writes, as a live member's layers above the
//! core keep them; and a stage in the end in which both must show that they work.
//!
//! A single primary must get a write through. Where leadership follows writes it must reach the one
//! member that writes, if that one may lead and is not lighter than the leader, and stay there;
//! where two write, or the writer is none to follow, it must stay where it is.

use super::{Phase, World};
use crate::coverage::Mark;
use crate::oracle::Rule;
use crate::plant::Plant;
use crate::schedule::Micros;
use quorate_consensus::placement::{self, Pace, Writes};
use quorate_consensus::{
    Config, Event as CoreEvent, MemberId, MemberInfo, MemberRole, Primaries, RoleState, StepError,
};
use std::rc::Rc;

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

impl World {
    pub(super) fn keep_modes(&mut self, m: usize, ticks: u64) {
        if ticks % self.scenario.modes.look_ticks == 0 {
            self.look_who_writes(m);
        }
        if ticks % 2 == 0 {
            self.follow_writes(m);
        }
    }

    /// What `m` holds for true, not what is: until its next look it may take writes as the primary
    /// that it was.
    pub(super) fn look_who_writes(&mut self, m: usize) {
        let member = &mut self.members[m];
        member.writing_term = match (member.config.rules.primaries, member.role) {
            (Primaries::Multi, _) => Some(0),
            (Primaries::Single, RoleState::Leader { term }) => Some(term),
            (Primaries::Single, _) => None,
        };
    }

    /// Nobody has written yet, under this leader.
    pub(super) fn no_writes(&self) -> Writes {
        Writes::new(match self.plant {
            Some(Plant::RestlessFollow) => {
                Pace { settled_ms: 0, writes_min: 1, hold_ms: 0, ..self.scenario.modes.pace }
            }
            _ => self.scenario.modes.pace,
        })
    }

    /// Hands leadership to whom all writes come from, where the rules want that.
    fn follow_writes(&mut self, m: usize) {
        let plant = self.plant;
        let now = self.schedule.now();
        let member = &mut self.members[m];
        if !member.is_leader() || !member.config.rules.moves_with_writes() {
            return;
        }
        let Some(core) = member.core.as_ref() else { return };
        let now_ms = member.clock.millis(now);
        let may = |id| {
            plant == Some(Plant::FollowAnybody) || placement::may_follow(&core.status(now_ms), id)
        };
        // A leader's stream of proposals begins with its term.
        let led_ms = (now - member.session.since) / 1000;
        let Some(to) = member.writes.follow(member.id, led_ms, now_ms, may) else { return };
        self.lead_follows(m, to);
    }

    fn lead_follows(&mut self, m: usize, to: MemberId) {
        let config = Rc::clone(&self.members[m].config);
        let result = self.step(m, CoreEvent::TransferLeadership(to));
        if self.tells() {
            self.note(format!("m{m} follows the writes to {to:?}: {result:?}"));
        }
        let refused = matches!(result, Err(StepError::BadChange(_)));
        if refused || !config.members.get(&to).is_some_and(is_followed) {
            let info = config.members.get(&to).cloned();
            self.oracle.fail(Rule::FollowsOnlyWhoMayLead, || {
                format!("m{m} makes room for {to:?}, which is {info:?}")
            });
        }
        if result.is_ok() {
            self.mark(Mark::Followed);
        }
    }

    /// Whether the clients of `m` write now: where leadership is to follow them, one member's at a
    /// time.
    pub(super) fn is_turn_of(&self, m: usize) -> bool {
        let turn_us = self.scenario.modes.turn_timeouts * self.scenario.election_us();
        let rules = self.members[m].config.rules;
        turn_us == 0
            || !rules.moves_with_writes()
            || (self.schedule.now() / turn_us) as usize % self.slots() == m
    }

    // ---- the stage in the end ----

    /// False if there is nothing to show.
    pub(super) fn begin_modes(&mut self) -> bool {
        let config = Rc::clone(&self.committed_config.1);
        let single = config.rules.primaries == Primaries::Single;
        let shows = self.scenario.modes.on && (single || config.rules.moves_with_writes());
        if !shows || std::mem::replace(&mut self.settling.over, true) {
            return false;
        }
        self.settling.terms_led = self.oracle.terms_led();
        self.settling.primary_writes = self.coverage.count(Mark::PrimaryWrite);
        self.settling.writers = self.draw_writers(&config);
        if self.tells() {
            let writers = &self.settling.writers;
            self.note(format!("the group shows its mode; these write: {writers:?}"));
        }
        self.phase = Phase::Modes;
        self.phase_ends = self.schedule.now() + PATIENCE * self.scenario.election_us();
        true
    }

    pub(super) fn check_modes(&mut self) {
        let config = Rc::clone(&self.committed_config.1);
        let done = match config.rules.primaries {
            Primaries::Single => self.primary_gets_through(),
            Primaries::Multi => self.leadership_rests(&config),
        };
        if done {
            self.mark(Mark::ModeSettled);
            self.phase = Phase::Healed;
            self.begin_stage();
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
        for m in 0..self.slots() {
            self.write_if_idle(m);
        }
        false
    }

    fn leadership_rests(&mut self, config: &Config) -> bool {
        let changes = self.oracle.terms_led() - self.settling.terms_led;
        if changes > CHANGES_MAX {
            self.oracle.fail(Rule::LeadershipRests, || {
                format!("{changes} changes of leadership while the same members write")
            });
        }
        for m in self.settling.writers.clone() {
            self.write_if_idle(m);
        }
        let now = self.schedule.now();
        let leader = self.any_leader().filter(|leader| self.is_rightly_led(config, *leader));
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
        let info = |m: usize| config.members.get(&self.members[m].id);
        let (Some(leads), Some(writes)) = (info(leader), info(writer)) else { return false };
        leader == writer || !is_followed(writes) || writes.priority < leads.priority
    }

    fn write_if_idle(&mut self, m: usize) {
        if self.members[m].runs() && self.members[m].pending.is_empty() {
            self.write(m, 0);
        }
    }

    /// One or two members with a database.
    fn draw_writers(&mut self, config: &Config) -> Vec<usize> {
        let has_data = |m: &usize| {
            let member = &self.members[*m];
            let info = config.members.get(&member.id);
            member.runs() && info.is_some_and(|info| info.role != MemberRole::Logger)
        };
        let mut found: Vec<usize> = (0..self.slots()).filter(has_data).collect();
        let most = if self.scenario.modes.two_write { 2 } else { 1 };
        while found.len() > most {
            found.swap_remove(self.rng.index(found.len()));
        }
        found
    }
}

/// Whether leadership may ever follow the writes of such a member.
fn is_followed(info: &MemberInfo) -> bool {
    info.role == MemberRole::Voter && !info.joining && info.priority > 0
}
