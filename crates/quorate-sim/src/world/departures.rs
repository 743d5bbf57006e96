//! Members that leave by order, and come back later; and members that are cut off by order for a
//! while, alone or with their whole process.

use super::{Mark, World};
use quorate_group::Order;

impl World {
    pub(super) fn depart(&mut self) {
        self.act_in_faults(self.scenario.fault_every_us * 2, World::depart);
        let m = self.rng.index(self.nodes.len());
        if !self.nodes[m].runs() {
            return;
        }
        match self.rng.chance(500) {
            true if !self.is_somebody_lost() => {
                self.tell(m, "leave", Order::Leave);
            }
            true => {}
            false => self.isolate(m),
        }
    }

    fn isolate(&mut self, m: usize) {
        self.mark(Mark::Isolate);
        self.note_cut(m, false);
        if self.rng.chance(500) {
            self.tell(m, "isolate", Order::Isolate(true));
        } else if let Some(process) = &mut self.nodes[m].process {
            process.isolated = true;
            self.mark(Mark::IsolateProcess);
        }
        let delay = self.rng.range(1_000, self.scenario.election_us() * 10);
        self.later_even_paused(m, delay, move |w| w.reconnect(m));
    }

    pub(super) fn reconnect(&mut self, m: usize) {
        let Some(process) = &mut self.nodes[m].process else { return };
        process.isolated = false;
        let told = process.member.is_isolated();
        self.note_cut(m, true);
        if told {
            self.tell(m, "isolate", Order::Isolate(false));
        }
    }

    /// `m` has left, or gave that up: either way its process ends, in order, and starts again later.
    pub(super) fn departed(&mut self, m: usize, left: bool) {
        note!(self, "m{m} ends, as it was told; it has left: {left}");
        self.later_even_paused(m, 0, move |w| w.stop(m));
    }
}
