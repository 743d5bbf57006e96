//! Running seeds: one, or a range of them on several threads.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

/// Lines of the story that the report of a violation carries.
const STORY_LINES: usize = 40;

/// Seeds a thread takes at a time.
const CHUNK: u64 = 16;

/// What turns a seed into a history; its fields are arguments of the command.
pub trait Simulator: clap::Args + Sync {
    type Outcome: Outcome;

    /// Runs one seed, and keeps the last `lines` lines of its story.
    fn run(&self, seed: u64, lines: usize) -> Self::Outcome;

    /// The arguments beside the seed that another run needs to be the same.
    fn arguments(&self) -> String;

    /// Runs one seed; if it breaks a rule, runs it again to tell how it came to that.
    fn run_seed(&self, seed: u64) -> Self::Outcome {
        let outcome = self.run(seed, 0);
        match outcome.violation() {
            Some(_) => self.run(seed, STORY_LINES),
            None => outcome,
        }
    }
}

/// ` --NAME VALUE`, as [`Simulator::arguments`] has it.
pub fn argument(name: &str, value: &impl clap::ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| format!(" --{name} {}", value.get_name()))
}

/// What one seed came to.
pub trait Outcome: Send {
    fn seed(&self) -> u64;
    /// The same for the same seed and build, always.
    fn digest(&self) -> u64;
    /// How much of what happened.
    fn figures(&self) -> Vec<(&'static str, u64)>;
    /// How often the interesting things happened, those that did not included.
    fn coverage(&self) -> Vec<(String, u64)>;
    /// The rule that was broken, and how.
    fn violation(&self) -> Option<String>;
    fn story(&self) -> &[String];
}

/// What a range of seeds came to.
#[derive(Debug)]
pub struct Sweep<O> {
    pub seeds: u64,
    /// Of all seeds together.
    pub figures: Vec<(&'static str, u64)>,
    /// Sum of the digests of all histories: the same for the same range and build.
    pub digest: u64,
    pub coverage: BTreeMap<String, u64>,
    /// The seeds that broke a rule, lowest first.
    pub broken: Vec<O>,
}

/// Runs seeds until so many have broken a rule. `progress` is called now and then with how many are
/// done.
pub fn sweep<S: Simulator>(
    simulator: &S,
    seeds: Range<u64>,
    jobs: usize,
    violations_max: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Sweep<S::Outcome> {
    let next = AtomicU64::new(seeds.start);
    let enough = AtomicBool::new(false);
    let total = Mutex::new(Sweep::default());
    let work = || loop {
        let first = next.fetch_add(CHUNK, Ordering::Relaxed);
        if first >= seeds.end || enough.load(Ordering::Relaxed) {
            return;
        }
        let chunk = first..(first + CHUNK).min(seeds.end);
        let outcomes: Vec<_> = chunk.map(|seed| simulator.run_seed(seed)).collect();
        let mut total = total.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        outcomes.into_iter().for_each(|outcome| total.add(outcome));
        enough.store(total.broken.len() >= violations_max, Ordering::Relaxed);
        progress(total.seeds);
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut total = total.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    total.broken.sort_by_key(Outcome::seed);
    total.broken.truncate(violations_max);
    total
}

impl<O> Default for Sweep<O> {
    fn default() -> Self {
        let (figures, coverage, broken) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { seeds: 0, figures, digest: 0, coverage, broken }
    }
}

impl<O: Outcome> Sweep<O> {
    fn add(&mut self, outcome: O) {
        self.seeds += 1;
        self.digest = self.digest.wrapping_add(outcome.digest());
        let figures = outcome.figures();
        match self.figures.is_empty() {
            true => self.figures = figures,
            false => self.figures.iter_mut().zip(figures).for_each(|(sum, one)| sum.1 += one.1),
        }
        for (mark, count) in outcome.coverage() {
            *self.coverage.entry(mark).or_default() += count;
        }
        if outcome.violation().is_some() {
            self.broken.push(outcome);
        }
    }
}
