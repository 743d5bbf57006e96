//! Running seeds: one, or a range of them on several threads.

use crate::coverage::Coverage;
use crate::oracle::{Rule, Violation};
use crate::plant::Plant;
use crate::scenario::Profile;
use crate::trace::Trace;
use crate::world::{Report, World};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

/// Lines of the story that a report of a violation carries.
const STORY_LINES: usize = 40;

/// Seeds a thread takes at a time.
const CHUNK: u64 = 16;

/// Which seeds, and how.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    pub seeds: Range<u64>,
    pub jobs: usize,
    pub profile: Profile,
    pub plant: Option<Plant>,
    /// Go on after a violation, up to this many.
    pub violations_max: usize,
}

/// What a range of seeds came to.
#[derive(Debug, Default)]
pub struct Sweep {
    pub seeds: u64,
    pub events: u64,
    pub committed: u64,
    /// Sum of the digests of all histories: the same for the same range and build.
    pub digest: u64,
    pub coverage: Coverage,
    /// Reports of the seeds that broke a rule, lowest seed first.
    pub broken: Vec<Report>,
}

/// Runs one seed; if it breaks a rule, runs it again to tell how it came to that.
pub fn run_seed(seed: u64, profile: Profile, plant: Option<Plant>) -> Report {
    let report = guarded(seed, profile, plant, 0);
    match report.violation {
        Some(_) => guarded(seed, profile, plant, STORY_LINES),
        None => report,
    }
}

/// Runs one seed and keeps its whole story.
pub fn replay(seed: u64, profile: Profile, plant: Option<Plant>) -> Report {
    guarded(seed, profile, plant, usize::MAX)
}

/// Runs a range of seeds. `progress` is called now and then with how many are done.
pub fn sweep(options: &SweepOptions, progress: &(dyn Fn(u64) + Sync)) -> Sweep {
    let next = AtomicU64::new(options.seeds.start);
    let enough = AtomicBool::new(false);
    let total = Mutex::new(Sweep::default());
    let work = || loop {
        let first = next.fetch_add(CHUNK, Ordering::Relaxed);
        if first >= options.seeds.end || enough.load(Ordering::Relaxed) {
            return;
        }
        let chunk = first..(first + CHUNK).min(options.seeds.end);
        let run = |seed| run_seed(seed, options.profile, options.plant);
        let reports: Vec<Report> = chunk.map(run).collect();
        let mut total = total.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        reports.into_iter().for_each(|report| total.add(report));
        enough.store(total.broken.len() >= options.violations_max, Ordering::Relaxed);
        progress(total.seeds);
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut total = total.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    total.broken.sort_by_key(|report| report.seed);
    total.broken.truncate(options.violations_max);
    total
}

impl Sweep {
    fn add(&mut self, report: Report) {
        self.seeds += 1;
        self.events += report.events;
        self.committed += report.committed;
        self.digest = self.digest.wrapping_add(report.digest);
        self.coverage.add(&report.coverage);
        if report.violation.is_some() {
            self.broken.push(report);
        }
    }
}

thread_local! {
    /// A run is on this thread: a panic is its result, not to be printed.
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A run in which a panic, of the core or of the simulator, counts as a violation.
fn guarded(seed: u64, profile: Profile, plant: Option<Plant>, lines: usize) -> Report {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| match RUNNING.get() {
            true => PANIC.with(|message| *message.borrow_mut() = Some(info.to_string())),
            false => usual(info),
        }));
    });
    let mut world = World::new(seed, profile, plant, Trace::last(lines));
    RUNNING.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| world.run()));
    RUNNING.set(false);
    let mut report = world.report();
    if outcome.is_err() {
        let detail = PANIC.with(|message| message.borrow_mut().take()).unwrap_or_default();
        report.violation = Some(Violation { rule: Rule::Panic, detail });
    }
    report
}
