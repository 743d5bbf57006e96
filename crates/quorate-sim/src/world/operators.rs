//! What the people who run the group do of their own accord: one appointment after the other.

use super::faults::if_faults;
use super::{Micros, World};
use crate::staff::Staff;
use quorate_group::Order;

impl World {
    pub(super) fn schedule_operators(&mut self) {
        let Staff { departs, alone, disaster, .. } = self.scenario.staff;
        if departs {
            self.act_in_faults(self.scenario.fault_every_us, World::depart);
        }
        if alone {
            self.act_in_faults(self.scenario.election_us(), World::order_alone);
        }
        if disaster {
            self.act_in_faults(self.scenario.chaos_us, World::disaster);
        }
    }

    /// In a quarter of `most` at the least.
    pub(super) fn act_later(&mut self, most: Micros, act: impl FnOnce(&mut World) + 'static) {
        let delay = self.rng.range(most / 4, most);
        self.later(delay, act);
    }

    /// The same, if there are faults then.
    pub(super) fn act_in_faults(&mut self, most: Micros, act: fn(&mut World)) {
        self.act_later(most, if_faults(act));
    }

    pub(super) fn tell(&mut self, m: usize, what: &'static str, order: Order) {
        note!(self, "m{m} is told: {order:?}");
        let id = self.next_number();
        self.give_order(m, id, what, order);
    }

    /// Who gives away another vote now may have none left.
    pub(super) fn is_somebody_lost(&self) -> bool {
        self.nodes.iter().any(|node| !node.is_whole() || !self.is_member(node))
    }
}
