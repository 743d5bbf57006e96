//! What the people who run the group do of their own accord: one appointment after the other.

use super::{Event, World};
use crate::coverage::Mark;
use crate::schedule::Micros;
use quorate_group::Order;

#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Somebody leaves, or is isolated.
    Depart,
    Reconnect {
        m: usize,
        run: u32,
    },
    Stop {
        m: usize,
        run: u32,
    },
    /// Whoever has no quorum is told to go on alone.
    Alone,
    Disaster,
    Force,
    /// An older image of a disk is restored.
    RollBack {
        tries: u32,
    },
}

impl World {
    pub(super) fn schedule_operators(&mut self) {
        self.schedule_departures();
        self.schedule_alone();
        self.schedule_disaster();
    }

    pub(super) fn act(&mut self, act: Act) {
        match act {
            Act::Depart => self.depart(),
            Act::Reconnect { m, run } if self.nodes[m].run == run => self.reconnect(m),
            Act::Stop { m, run } if self.nodes[m].run == run => self.stop(m),
            Act::Reconnect { .. } | Act::Stop { .. } => {}
            Act::Alone => self.order_alone(),
            Act::Disaster => self.disaster(),
            Act::Force => self.force(),
            Act::RollBack { tries } => self.roll_back_some(tries),
        }
    }

    /// In a quarter of `most` at the least.
    pub(super) fn act_later(&mut self, act: Act, most: Micros) {
        let delay = self.rng.range(most / 4, most);
        self.schedule.after(delay, Event::Act(act));
    }

    pub(super) fn tell(&mut self, m: usize, what: &'static str, order: Order) {
        if self.tells() {
            self.note(format!("m{m} is told: {order:?}"));
        }
        self.give_order(m, what, order);
    }

    /// Who gives away another vote now may have none left.
    pub(super) fn is_somebody_lost(&self) -> bool {
        self.nodes.iter().any(|node| {
            let known = self.committed_config.1.members.contains_key(&node.id);
            node.damage.is_some() || node.refused.is_some() || !known
        })
    }

    /// What came of an order, for each kind of it that may be refused.
    pub(super) fn mark_order(&mut self, what: &str, done: bool) {
        let (yes, no) = match what {
            "switchover" => (Mark::SwitchoverDone, Mark::SwitchoverRefused),
            "alter" => (Mark::AlterDone, Mark::AlterRefused),
            "remove" => (Mark::RemoveDone, Mark::RemoveRefused),
            "rules" => (Mark::RulesDone, Mark::RulesRefused),
            "force" => (Mark::ForceDone, Mark::ForceRefused),
            "leave" => (Mark::LeaveDone, Mark::LeaveRefused),
            "join" => (Mark::JoinDone, Mark::JoinRefused),
            "alone" => (Mark::AloneDone, Mark::AloneRefused),
            _ => return,
        };
        self.mark(if done { yes } else { no });
    }
}
