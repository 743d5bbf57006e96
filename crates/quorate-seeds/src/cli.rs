//! The command line: looks for seeds that break a rule, and tells the story of one.

use crate::sweep::{sweep, Outcome, Simulator};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Between two lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(15);

#[derive(Parser)]
#[command(version, after_help = "Exit codes: 0 no rule was broken, 1 a rule was broken, 2 usage.")]
struct Cli<S: Args> {
    #[command(subcommand)]
    command: Command<S>,
}

#[derive(Subcommand)]
enum Command<S: Args> {
    /// Run seeds and stop at the first that breaks a rule.
    Run {
        /// Seeds to run, the last one excluded.
        #[arg(long, value_name = "A..B", value_parser = parse_range)]
        seeds: Range<u64>,
        /// Threads; each run uses one.
        #[arg(long, default_value_t = default_jobs())]
        jobs: usize,
        /// Stop only after so many seeds that break a rule.
        #[arg(long, value_name = "N", default_value_t = 1)]
        violations: usize,
        /// Say how often the interesting things happened.
        #[arg(long)]
        coverage: bool,
        #[command(flatten)]
        simulator: S,
    },
    /// Run one seed again.
    Replay {
        seed: u64,
        /// Tell the whole story, an event a line.
        #[arg(long)]
        trace: bool,
        #[command(flatten)]
        simulator: S,
    },
}

/// The program of this name; `about` says what it simulates.
pub fn main<S: Simulator>(name: &'static str, about: &'static str) -> ExitCode {
    let matches = Cli::<S>::command().name(name).bin_name(name).about(about).get_matches();
    let cli = Cli::<S>::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Run { seeds, jobs, violations, coverage, simulator } => {
            run(name, &simulator, seeds, (jobs, violations.max(1)), coverage)
        }
        Command::Replay { seed, trace, simulator } => {
            let outcome = match trace {
                true => simulator.run(seed, usize::MAX),
                false => simulator.run_seed(seed),
            };
            if outcome.violation().is_none() {
                outcome.story().iter().for_each(|line| println!("{line}"));
            }
            let figures = figures(&outcome.figures(), 1);
            println!("seed {seed}: digest {:016x}, {figures}", outcome.digest());
            conclude(name, &simulator, &[outcome])
        }
    }
}

fn run<S: Simulator>(
    name: &str,
    simulator: &S,
    seeds: Range<u64>,
    (jobs, violations_max): (usize, usize),
    coverage: bool,
) -> ExitCode {
    let count = seeds.end - seeds.start;
    let started = Instant::now();
    let told = Mutex::new(started);
    let total = sweep(simulator, seeds, jobs, violations_max, &|done| {
        let Ok(mut told) = told.try_lock() else { return };
        if told.elapsed() >= LINE_EVERY {
            *told = Instant::now();
            let rate = done as f64 / started.elapsed().as_secs_f64();
            eprintln!("{done} of {count} seeds, {rate:.0} seeds/s");
        }
    });
    let seconds = started.elapsed().as_secs_f64().max(1e-9);
    let seeds = total.seeds.max(1);
    println!(
        "{} seeds in {seconds:.1} s: {:.0} seeds/s, {} a seed, digest {:016x}, {} broken",
        total.seeds,
        total.seeds as f64 / seconds,
        figures(&total.figures, seeds),
        total.digest,
        total.broken.len(),
    );
    if coverage {
        for (mark, count) in &total.coverage {
            println!("  {mark:40} {count:>10}  {:>8.3} a seed", *count as f64 / seeds as f64);
        }
    }
    conclude(name, simulator, &total.broken)
}

/// How much of what, on average.
fn figures(sums: &[(&'static str, u64)], seeds: u64) -> String {
    let each = sums.iter().map(|(what, sum)| format!("{:.0} {what}", *sum as f64 / seeds as f64));
    each.collect::<Vec<_>>().join(", ")
}

/// Tells of every seed that broke a rule; says with the exit code whether there was one.
fn conclude<S: Simulator>(name: &str, simulator: &S, outcomes: &[S::Outcome]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for outcome in outcomes {
        let (seed, Some(violation)) = (outcome.seed(), outcome.violation()) else { continue };
        code = ExitCode::FAILURE;
        outcome.story().iter().for_each(|line| println!("{line}"));
        let arguments = simulator.arguments();
        println!("seed {seed} breaks a rule\n  {violation}");
        println!("  the whole story: {name} replay {seed} --trace{arguments}");
    }
    code
}

fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("seeds are given as A..B, such as 0..5000")?;
    let number = |s: &str| s.replace('_', "").parse::<u64>().map_err(|e| format!("{s:?}: {e}"));
    let (from, to) = (number(from)?, number(to)?);
    if from >= to {
        return Err(format!("{from}..{to} holds no seed (the last one is excluded)"));
    }
    Ok(from..to)
}
