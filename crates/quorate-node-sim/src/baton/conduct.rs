//! A whole world's schedule: how shuttle is told who runs, from the first step to the end of the last
//! thread.

use super::table::{Table, Thread, MAIN};
use super::{installed, Baton, BATON, WORLD};
use quorate_seeds::Rng;
use shuttle::scheduler::{Schedule, Task as Runnable, TaskId};
use simulated_node::blocking::simulated::install;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Instant;

/// Chooses for shuttle, once a world.
struct Conductor {
    begun: bool,
}

impl shuttle::scheduler::Scheduler for Conductor {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.begun, true)).then(|| Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Runnable],
        _current: Option<TaskId>,
        _is_yielding: bool,
    ) -> Option<TaskId> {
        let chosen = installed().table(|table| {
            let current = table.current;
            let can_run =
                |task| runnable.binary_search_by_key(&task, |r| usize::from(r.id())).is_ok();
            if table.threads[current].ended {
                if can_run(current) {
                    // Its last step.
                    return current;
                }
                table.choose();
            }
            table.current = table.next;
            table.digest = (table.digest ^ table.next as u64).wrapping_mul(0x0000_0100_0000_01b3);
            table.next
        });
        Some(TaskId::from(chosen))
    }

    fn next_u64(&mut self) -> u64 {
        installed().random(Rng::next_u64)
    }
}

/// Runs a world: `body` is its main thread. Threads that are left at its end are killed.
pub fn run(seed: u64, steps_max: u64, body: impl Fn() + Send + Sync + 'static) {
    let mut rng = Rng::new(seed);
    let stays = [600, 900, 970][rng.index(3)];
    let epoch = Instant::now();
    let mut main = Thread::new("main".into(), WORLD);
    main.ready = true;
    let table = Table {
        threads: vec![main],
        ready: vec![MAIN],
        timed: BTreeSet::new(),
        current: MAIN,
        next: MAIN,
        killed: vec![false],
        now: epoch,
        epoch,
        rng,
        stays,
        steps: 0,
        steps_max,
        digest: 0,
        stuck: false,
    };
    let baton = Baton(Rc::new(RefCell::new(table)));
    BATON.set(Some(baton.clone()));
    install(Some(Rc::new(baton)));
    let mut config = shuttle::Config::new();
    config.stack_size = STACK;
    config.max_steps = shuttle::MaxSteps::None;
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;
    let world = move || {
        body();
        installed().end_all();
        installed().end_current();
    };
    shuttle::Runner::new(Conductor { begun: false }, config).run(world);
    install(None);
    BATON.set(None);
}

/// The node formats long messages, and unwinding needs room.
const STACK: usize = 256 << 10;

impl Baton {
    fn end_all(&self) {
        let processes = self.table(|table| {
            // The main thread ends by itself.
            table.threads[MAIN].unwinding = true;
            table.killed.len()
        });
        (0..processes).for_each(|process| self.kill(process));
        while self.table(|table| table.threads.iter().skip(1).any(|thread| !thread.ended)) {
            self.switch();
        }
    }
}
