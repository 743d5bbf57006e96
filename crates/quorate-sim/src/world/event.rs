//! What happens at some time: to the world, or to a process in one life of it.

use super::{Mark, Micros, World};
use quorate_wal::sim::Crash;

/// Where a process runs, and which of its lives there this is.
pub type Life = (usize, u32);

pub type Action = Box<dyn FnOnce(&mut World)>;

pub struct Event {
    /// To this process: not once it has ended, and not while it is paused.
    to: Option<Life>,
    what: Action,
}

impl World {
    pub(super) fn later(&mut self, delay: Micros, what: impl FnOnce(&mut World) + 'static) {
        self.schedule.after(delay, Event { to: None, what: Box::new(what) });
    }

    /// To the process that runs at `m` now.
    pub fn later_at(&mut self, m: usize, delay: Micros, what: impl FnOnce(&mut World) + 'static) {
        self.later_to(self.life(m), delay, what);
    }

    pub fn later_to(&mut self, to: Life, delay: Micros, what: impl FnOnce(&mut World) + 'static) {
        self.schedule.after(delay, Event { to: Some(to), what: Box::new(what) });
    }

    /// The same, but it does not wait until a pause is over.
    pub(super) fn later_even_paused(
        &mut self,
        m: usize,
        delay: Micros,
        what: impl FnOnce(&mut World) + 'static,
    ) {
        let life = self.life(m);
        self.later(delay, move |w| {
            if w.is_alive(life) {
                what(w);
            }
        });
    }

    pub(super) fn life(&self, m: usize) -> Life {
        (m, self.nodes[m].run)
    }

    pub(super) fn is_alive(&self, (m, run): Life) -> bool {
        self.nodes[m].is_up() && self.nodes[m].run == run
    }

    pub(super) fn handle(&mut self, Event { to, what }: Event) {
        if let Some(life) = to {
            if !self.is_alive(life) {
                return;
            }
            if self.nodes[life.0].paused {
                return self.nodes[life.0].backlog.push_back(what);
            }
        }
        what(self);
        // Whoever it was that lost its power by that: it does nothing any more.
        self.slots().for_each(|m| self.bury(m));
    }

    /// A machine whose disk died in the middle of an operation lost its power.
    pub(super) fn bury(&mut self, m: usize) {
        if self.nodes[m].is_up() && self.nodes[m].disk.is_dead() {
            self.mark(Mark::CrashInsideWrite);
            let crash = if self.rng.chance(500) { Crash::Power } else { Crash::Kill };
            self.end_process(m, crash);
        }
    }
}
