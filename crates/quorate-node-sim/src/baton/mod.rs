//! Threads of which one runs at a time, with a clock that is moved when all of them wait.
//!
//! `shuttle` gives each simulated thread a stack of its own and changes between them. What it would
//! model itself is not used: its locks know no time-outs, a thread of it cannot be killed, and its
//! time does not pass. Here is what takes their place: who is ready, until when the others wait, to
//! which process they belong, and what the time is.
//!
//! Invariants:
//! - the choice of the next thread and the time depend on the seed alone;
//! - a thread of a killed process is unwound at its next call, and runs nothing else of the node;
//! - if nobody is ready and nobody waits for a time, the world is stuck, and its main thread is told.

mod conduct;
mod table;

pub use self::conduct::run;
use self::table::{Table, Thread};
use quorate_seeds::Rng;
use simulated_node::blocking::simulated::{Killed, Place, Scheduler, Task};
use std::cell::RefCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe, Location};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What runs and dies together: one start of one server.
pub type Process = usize;

/// The process of the world itself.
pub const WORLD: Process = 0;

/// Why a world's schedule ended before its main thread did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halt {
    /// Nobody can go on, ever.
    Stuck,
    /// So many steps that somebody must run in circles.
    Endless,
}

#[derive(Clone)]
pub struct Baton(Rc<RefCell<Table>>);

/// The last part of a path.
fn short(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

impl Baton {
    /// Lets others run, if the choice falls on another.
    fn switch(&self) {
        let same = self.table(|table| {
            table.choose();
            table.next == table.current
        });
        if !same {
            // Its only meaning to shuttle is that it asks who runs next.
            shuttle::thread::sleep(Duration::ZERO);
        }
    }

    fn table<R>(&self, body: impl FnOnce(&mut Table) -> R) -> R {
        body(&mut self.0.borrow_mut())
    }

    /// A new process; threads are started in it by [`Baton::start`].
    pub fn new_process(&self) -> Process {
        self.table(|table| {
            table.killed.push(false);
            table.killed.len() - 1
        })
    }

    /// Ends a process, as a power cut would: none of its threads does anything more.
    pub fn kill(&self, process: Process) {
        self.table(|table| {
            table.killed[process] = true;
            let its: Vec<Task> = (0..table.threads.len())
                .filter(|task| table.threads[*task].process == process)
                .collect();
            its.into_iter().for_each(|task| table.make_ready(task));
        });
        self.die_if_killed();
    }

    /// Starts a thread in a process.
    pub fn start(&self, process: Process, name: &str, body: impl FnOnce() + Send + 'static) {
        self.launch(process, name.to_string(), Box::new(body));
    }

    fn launch(&self, process: Process, name: String, body: Box<dyn FnOnce() + Send>) {
        let thread = shuttle::thread::spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                installed().die_if_killed();
                body();
            }));
            installed().end_current();
            match outcome {
                Err(panic) if !panic.is::<Killed>() => resume_unwind(panic),
                _ => {}
            }
        });
        let task = usize::from(thread.thread().id());
        self.table(|table| {
            assert_eq!(task, table.threads.len(), "shuttle counts its threads");
            table.threads.push(Thread::new(name, process));
            table.make_ready(task);
        });
    }

    fn end_current(&self) {
        self.table(|table| {
            let current = table.current;
            table.threads[current].ended = true;
            table.threads[current].ready = false;
            table.ready.retain(|task| *task != current);
        });
    }

    fn die_if_killed(&self) {
        let dies = self.table(|table| {
            let thread = &mut table.threads[table.current];
            let dies = table.killed[thread.process] && !thread.unwinding;
            thread.unwinding |= dies;
            dies
        });
        if dies {
            resume_unwind(Box::new(Killed));
        }
    }

    /// Lets this thread sleep.
    #[track_caller]
    pub fn sleep(&self, time: Duration) {
        let here = Location::caller();
        let until = self.now() + time;
        while self.now() < until {
            self.block(here, Some(until));
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.table(|table| table.now - table.epoch)
    }

    pub fn halted(&self) -> Option<Halt> {
        self.table(|table| match (table.stuck, table.steps >= table.steps_max) {
            (true, true) => Some(Halt::Endless),
            (true, false) => Some(Halt::Stuck),
            (false, _) => None,
        })
    }

    pub fn process(&self) -> Process {
        self.table(|table| table.threads[table.current].process)
    }

    pub fn steps(&self) -> u64 {
        self.table(|table| table.steps)
    }

    pub fn digest(&self) -> u64 {
        self.table(|table| table.digest)
    }

    /// Who waits, and for what.
    pub fn waiting(&self) -> Vec<String> {
        self.table(|table| {
            let alive = table.threads.iter().filter(|t| !t.ended && !table.killed[t.process]);
            let waits = |t: &Thread| match t.at {
                Some(at) => format!("{} waits at {}:{}", t.name, short(at.file()), at.line()),
                None => format!("{} is ready", t.name),
            };
            alive.map(waits).collect()
        })
    }

    /// A random choice of the world, from the seed that the schedule has too.
    pub fn random<R>(&self, body: impl FnOnce(&mut Rng) -> R) -> R {
        self.table(|table| body(&mut table.rng))
    }
}

impl Scheduler for Baton {
    fn current(&self) -> Task {
        self.table(|table| table.current)
    }

    fn interrupt(&self) {
        if self.table(|table| table.threads[table.current].unwinding) {
            return;
        }
        self.switch();
        self.die_if_killed();
    }

    fn block(&self, at: Place, until: Option<Instant>) {
        let blocked = self.table(|table| {
            let current = table.current;
            let thread = &mut table.threads[current];
            thread.at = Some(at);
            if std::mem::take(&mut thread.token) || until.is_some_and(|at| at <= table.now) {
                return false;
            }
            thread.ready = false;
            thread.until = until;
            if let Some(until) = until {
                table.timed.insert((until, current));
            }
            table.ready.retain(|task| *task != current);
            true
        });
        self.switch();
        self.table(|table| {
            let thread = &mut table.threads[table.current];
            thread.at = None;
            if blocked {
                thread.token = false;
            }
        });
        self.die_if_killed();
    }

    fn wake(&self, task: Task) {
        self.table(|table| {
            table.threads[task].token = true;
            table.make_ready(task);
        });
    }

    fn now(&self) -> Instant {
        self.table(|table| table.now)
    }

    fn unix_nanos(&self) -> u64 {
        self.elapsed().as_nanos() as u64
    }

    fn spawn(&self, name: String, body: Box<dyn FnOnce() + Send>) {
        self.launch(self.process(), name, body);
    }
}

thread_local! {
    static BATON: RefCell<Option<Baton>> = const { RefCell::new(None) };
}

/// The baton of the world that runs on this thread of the operating system.
pub fn installed() -> Baton {
    BATON.with_borrow(|baton| baton.clone()).expect("a world runs here")
}
