//! Who is ready, until when the others wait, and whose turn it is.

use super::Process;
use quorate_seeds::Rng;
use simulated_node::blocking::simulated::{Place, Task};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The first thread, which builds the world and looks at it.
pub(super) const MAIN: Task = 0;
/// A step takes that long, so that who never waits does not stop the clock.
const STEP: Duration = Duration::from_micros(1);

pub(super) struct Thread {
    pub(super) name: String,
    pub(super) process: Process,
    pub(super) ready: bool,
    /// It was woken since it last blocked.
    pub(super) token: bool,
    pub(super) until: Option<Instant>,
    pub(super) at: Option<Place>,
    pub(super) unwinding: bool,
    pub(super) ended: bool,
}

pub(super) struct Table {
    pub(super) threads: Vec<Thread>,
    pub(super) ready: Vec<Task>,
    pub(super) timed: BTreeSet<(Instant, Task)>,
    pub(super) current: Task,
    pub(super) next: Task,
    pub(super) killed: Vec<bool>,
    pub(super) now: Instant,
    pub(super) epoch: Instant,
    pub(super) rng: Rng,
    /// How often a thread that could go on does so, of a thousand times.
    pub(super) stays: u32,
    pub(super) steps: u64,
    pub(super) steps_max: u64,
    pub(super) digest: u64,
    pub(super) stuck: bool,
}

impl Table {
    pub(super) fn make_ready(&mut self, task: Task) {
        let thread = &mut self.threads[task];
        if thread.ended || thread.ready {
            return;
        }
        thread.ready = true;
        if let Some(until) = thread.until.take() {
            self.timed.remove(&(until, task));
        }
        self.ready.push(task);
    }

    fn wake_due(&mut self) {
        while let Some(&(until, task)) = self.timed.first() {
            if until > self.now {
                break;
            }
            self.make_ready(task);
        }
    }

    /// Who runs next.
    pub(super) fn choose(&mut self) {
        self.steps += 1;
        self.now += STEP;
        self.wake_due();
        if self.steps == self.steps_max {
            self.stuck = true;
            self.make_ready(MAIN);
        }
        if self.ready.is_empty() {
            self.pass_time();
        }
        let stays = self.threads[self.current].ready && self.rng.chance(self.stays);
        if !stays {
            let at = self.rng.index(self.ready.len());
            self.next = self.ready[at];
        }
    }

    /// Nobody is ready: the next one whose time comes is, or the world is stuck.
    fn pass_time(&mut self) {
        match self.timed.first() {
            Some(&(until, _)) => {
                self.now = self.now.max(until);
                self.wake_due();
            }
            None => {
                self.stuck = true;
                self.make_ready(MAIN);
            }
        }
    }
}

impl Thread {
    pub(super) fn new(name: String, process: Process) -> Self {
        Self {
            name,
            process,
            ready: false,
            token: false,
            until: None,
            at: None,
            unwinding: false,
            ended: false,
        }
    }
}
