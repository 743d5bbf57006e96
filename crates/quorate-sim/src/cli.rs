//! The command line: looks for seeds that break a rule, and tells the story of one.

use crate::seeds::{default_jobs, parse_range};
use crate::{replay, run_seed, sweep, Plant, Profile, Report, SweepOptions};
use clap::{Args, Parser, Subcommand};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Deterministic simulation of Quorate groups: seeds in, violations out.
///
/// Each seed is one history of a whole group with faults, checked at every step. A seed replays
/// exactly, on any machine, as long as the code is the same.
#[derive(Parser)]
#[command(version, after_help = "Exit codes: 0 no rule was broken, 1 a rule was broken, 2 usage.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run seeds and stop at the first that breaks a rule.
    Run {
        /// Seeds to run, the last one excluded.
        #[arg(long, value_name = "A..B", value_parser = parse_range, required_unless_present = "seed")]
        seeds: Option<Range<u64>>,
        /// Run this seed only.
        #[arg(long, conflicts_with = "seeds")]
        seed: Option<u64>,
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
        world: WorldArgs,
    },
    /// Run one seed again.
    Replay {
        seed: u64,
        /// Tell the whole story, an event a line.
        #[arg(long)]
        trace: bool,
        #[command(flatten)]
        world: WorldArgs,
    },
}

#[derive(Args)]
struct WorldArgs {
    /// Which faults the seeds may choose from.
    #[arg(long, value_enum, default_value_t = Profile::Swarm)]
    profile: Profile,
    /// Plant a bug on purpose, to see it found.
    #[arg(long, value_enum)]
    plant: Option<Plant>,
}

/// The program.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run { seeds, seed, jobs, violations, coverage, world } => {
            let seeds = seed.map(|s| s..s + 1).or(seeds).unwrap_or(0..0);
            let WorldArgs { profile, plant } = world;
            let violations_max = violations.max(1);
            run(SweepOptions { seeds, jobs, profile, plant, violations_max }, coverage)
        }
        Command::Replay { seed, trace, world } => {
            let report = if trace {
                replay(seed, world.profile, world.plant)
            } else {
                run_seed(seed, world.profile, world.plant)
            };
            if report.violation.is_none() {
                report.trace.iter().for_each(|line| println!("{line}"));
            }
            print_history(&report);
            conclude(&[report], &world.profile, world.plant)
        }
    }
}

fn run(options: SweepOptions, coverage: bool) -> ExitCode {
    let count = options.seeds.end.saturating_sub(options.seeds.start);
    let started = Instant::now();
    let told = Mutex::new(started);
    let total = sweep(&options, &|done| {
        let Ok(mut told) = told.try_lock() else { return };
        if told.elapsed() >= LINE_EVERY {
            *told = Instant::now();
            let rate = done as f64 / started.elapsed().as_secs_f64();
            eprintln!("{done} of {count} seeds, {rate:.0} seeds/s");
        }
    });
    let seconds = started.elapsed().as_secs_f64().max(1e-9);
    let each = total.seeds.max(1) as f64;
    if let ([], true) = (total.broken.as_slice(), count == 1) {
        println!("seed {}: no rule broken", options.seeds.start);
    }
    println!(
        "{} seeds in {seconds:.1} s: {:.0} seeds/s, {:.0} events and {:.0} committed entries a seed, \
         digest {:016x}, {} broken",
        total.seeds,
        total.seeds as f64 / seconds,
        total.events as f64 / each,
        total.committed as f64 / each,
        total.digest,
        total.broken.len(),
    );
    if coverage {
        for (mark, count) in total.coverage.iter() {
            let name = format!("{mark:?}");
            println!("  {name:18} {count:>10}  {:>8.3} a seed", count as f64 / each);
        }
    }
    conclude(&total.broken, &options.profile, options.plant)
}

/// Tells of every broken seed; says with the exit code whether there was one.
fn conclude(reports: &[Report], profile: &Profile, plant: Option<Plant>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for report in reports {
        let Some(violation) = &report.violation else { continue };
        code = ExitCode::FAILURE;
        report.trace.iter().for_each(|line| println!("{line}"));
        println!(
            "seed {} breaks a rule at {:.3} ms of virtual time\n  {violation}",
            report.seed,
            report.virtual_us as f64 / 1000.0
        );
        let mut command = format!("{} replay {} --trace", env!("CARGO_PKG_NAME"), report.seed);
        if *profile != Profile::Swarm {
            command += &format!(" --profile {}", value_name(profile));
        }
        if let Some(plant) = plant {
            command += &format!(" --plant {}", value_name(&plant));
        }
        println!("  the whole story: {command}");
    }
    code
}

fn print_history(report: &Report) {
    println!(
        "seed {}: digest {:016x}, {} events in {:.3} ms of virtual time, {} entries committed, \
         {} terms with a leader",
        report.seed,
        report.digest,
        report.events,
        report.virtual_us as f64 / 1000.0,
        report.committed,
        report.terms_led
    );
}

fn value_name(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
}

/// Between two lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(15);
