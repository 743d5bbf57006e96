//! `quorate-node-sim`: looks for seeds in which a node breaks a promise under a model of its server, and tells the
//! story of one.

mod baton;
mod calls;
mod engine;
mod group;
mod oracle;
mod plant;
mod rng;
#[path = "../../quorate-sim/src/seeds.rs"]
mod seeds;
mod server;
mod session;
mod transfer;
mod world;

use clap::{Parser, Subcommand};
use oracle::Mark;
use plant::Plant;
use seeds::{default_jobs, parse_range};
use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Instant;
use world::{run_seed, Report};

/// Deterministic simulation of Quorate's nodes under model servers: seeds in, violations out.
///
/// Each seed is one history of servers, sessions, appliers and a group with faults. A seed replays
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
        #[arg(long, value_name = "A..B", value_parser = parse_range)]
        seeds: Range<u64>,
        /// Threads; each run uses one.
        #[arg(long, default_value_t = default_jobs())]
        jobs: usize,
        /// Say how often the interesting things happened.
        #[arg(long)]
        coverage: bool,
        /// Plant a bug on purpose, to see it found.
        #[arg(long, value_enum)]
        plant: Option<Plant>,
    },
    /// Run one seed again.
    Replay {
        seed: u64,
        /// Tell the whole story, an event a line.
        #[arg(long)]
        trace: bool,
        #[arg(long, value_enum)]
        plant: Option<Plant>,
    },
}

#[derive(Default)]
struct Total {
    seeds: u64,
    steps: u64,
    seqnos: i64,
    digest: u64,
    marks: BTreeMap<Mark, u64>,
    answers: BTreeMap<calls::Answered, u64>,
    broken: Option<Report>,
}

impl Total {
    fn add(&mut self, report: Report) {
        self.seeds += 1;
        self.steps += report.steps;
        self.seqnos += report.seqnos;
        // Seeds end in any order.
        self.digest ^= report.digest.rotate_left((report.seed % 64) as u32);
        for (mark, count) in &report.marks {
            *self.marks.entry(*mark).or_default() += count;
        }
        for (answered, count) in &report.answers {
            *self.answers.entry(*answered).or_default() += count;
        }
        let earlier = self.broken.as_ref().is_none_or(|broken| report.seed < broken.seed);
        if report.violation.is_some() && earlier {
            self.broken = Some(report);
        }
    }
}

fn main() -> ExitCode {
    // A panic is a violation, told with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    match Cli::parse().command {
        Command::Run { seeds, jobs, coverage, plant } => sweep(seeds, jobs, coverage, plant),
        Command::Replay { seed, trace, plant } => {
            let report = run_seed(seed, plant, trace);
            report.trace.iter().for_each(|line| println!("{line}"));
            println!(
                "seed {seed}: digest {:016x}, {} steps, {} seqnos",
                report.digest, report.steps, report.seqnos
            );
            conclude(&report)
        }
    }
}

fn sweep(seeds: Range<u64>, jobs: usize, coverage: bool, plant: Option<Plant>) -> ExitCode {
    let began = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Total::default());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return;
                }
                let report = run_seed(seed, plant, false);
                if report.violation.is_some() {
                    next.store(seeds.end, Ordering::Relaxed);
                }
                total.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).add(report);
            });
        }
    });
    let total = total.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let seconds = began.elapsed().as_secs_f64();
    let each = total.seeds.max(1) as f64;
    println!(
        "{} seeds in {seconds:.1} s: {:.0} seeds/s, {:.0} steps and {:.0} seqnos a seed, digest {:016x}",
        total.seeds,
        total.seeds as f64 / seconds,
        total.steps as f64 / each,
        total.seqnos as f64 / each,
        total.digest
    );
    if coverage {
        for ((call, answer), count) in &total.answers {
            println!("  {call}: {answer:20} {count:>10}  {:>8.3} a seed", *count as f64 / each);
        }
        for mark in Mark::ALL {
            let count = total.marks.get(mark).copied().unwrap_or(0);
            let name = format!("{mark:?}");
            println!("  {name:22} {count:>10}  {:>8.3} a seed", count as f64 / each);
        }
    }
    total.broken.as_ref().map_or(ExitCode::SUCCESS, conclude)
}

fn conclude(report: &Report) -> ExitCode {
    let Some(violation) = &report.violation else { return ExitCode::SUCCESS };
    println!("seed {} breaks a rule\n  {violation}", report.seed);
    println!("  the whole story: quorate-node-sim replay {} --trace", report.seed);
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use std::collections::BTreeSet;
    use std::sync::OnceLock;

    /// What the first seeds tell, which run once for all tests.
    fn first_seeds() -> &'static Total {
        static FIRST: OnceLock<Total> = OnceLock::new();
        FIRST.get_or_init(|| {
            let mut total = Total::default();
            (0..300).for_each(|seed| total.add(run_seed(seed, None, false)));
            total
        })
    }

    fn assert_seen(marks: &[Mark]) {
        for mark in marks {
            assert!(first_seeds().marks.contains_key(mark), "{mark:?}");
        }
    }

    #[test]
    fn a_seed_replays_exactly_whatever_ran_before_it() {
        let first = run_seed(7, None, false);
        let _other = run_seed(8, None, false);
        let again = run_seed(7, None, true);
        assert_eq!((first.digest, first.steps), (again.digest, again.steps));
        assert!(!again.trace.is_empty());
    }

    #[test]
    fn seeds_keep_the_rules() {
        let broken = first_seeds().broken.as_ref();
        assert_eq!(broken.map(|report| (report.seed, &report.violation)), None);
    }

    /// Some answers are rare: as many seeds as it takes, up to a bound.
    #[test]
    fn every_answer_of_a_node_is_seen_but_those_that_cannot_be() {
        let answers = |table: &[(&'static str, &'static [&'static str])]| {
            let each = table.iter().flat_map(|(call, all)| all.iter().map(|one| (*call, *one)));
            each.collect::<BTreeSet<calls::Answered>>()
        };
        let (mut missing, rare) = (answers(calls::SEEN), answers(calls::RARE));
        let all: BTreeSet<_> = missing.union(&rare).copied().collect();
        for seed in 0..4000 {
            for answered in run_seed(seed, None, false).answers.keys() {
                let never = calls::NEVER.iter().find(|(listed, _)| listed == answered);
                assert_eq!(never, None, "seed {seed}");
                assert!(all.contains(answered), "seed {seed}: {answered:?} is not listed");
                missing.remove(answered);
            }
            if missing.is_empty() {
                return;
            }
        }
        panic!("never seen: {missing:?}");
    }

    #[test]
    fn streams_end_in_every_way() {
        assert_seen(&[
            Mark::StreamCommitted,
            Mark::StreamReplayed,
            Mark::StreamRolledBack,
            Mark::RolledBackStreaming,
            Mark::RollbackUnsent,
            Mark::RollbackSentLater,
            Mark::FragmentFailed,
            Mark::FragmentRefused,
            Mark::FragmentAbortedInOrder,
            Mark::StreamAppliedCommit,
            Mark::StreamAppliedRollback,
            Mark::StreamRecovered,
            Mark::OrphanRolledBack,
            Mark::OwnStreamsEndWithView,
            Mark::StreamEndsInTotalOrder,
            Mark::StreamAbortedByDdl,
        ]);
    }

    /// A start below DDL that ended streams fetches the state, or ends them once more.
    #[test]
    fn what_ddl_ended_stays_ended_after_a_crash() {
        let mut missing = vec![Mark::FetchesForStreams, Mark::StreamSevered];
        for seed in 150..2000 {
            let report = run_seed(seed, None, false);
            assert_eq!(report.violation, None, "seed {seed}");
            missing.retain(|mark| !report.marks.contains_key(mark));
            if missing.is_empty() {
                return;
            }
        }
        panic!("never seen: {missing:?}");
    }

    #[test]
    fn primaries_move_and_nodes_without_a_majority_do_as_they_are_told() {
        assert_seen(&[
            Mark::PrimaryMoves,
            Mark::ReadOnlySecondary,
            Mark::ReadOnlyCutOff,
            Mark::ReadOnlyEnds,
            Mark::RefusedAsSecondary,
            Mark::ExitAborts,
            Mark::ExitGoesOffline,
            Mark::ReturnsAtExit,
            Mark::GivesUp,
        ]);
    }

    #[test]
    fn transfers_and_votes_are_disturbed() {
        assert_seen(&[
            Mark::ScriptFails,
            Mark::ScriptFailsToStart,
            Mark::StreamBreaks,
            Mark::JoinerTimesOut,
            Mark::TransferCancelled,
            Mark::CutBeforeVote,
        ]);
    }

    #[test]
    fn a_view_that_ends_a_stream_on_some_servers_only_is_found_as_that() {
        let broken = |seed| run_seed(seed, Some(Plant::OrphansStay), false).violation;
        let found = (0..1000).find_map(broken).expect("a violation");
        assert!(found.starts_with("n0 keeps the stream"), "{found}");
        assert!(found.contains("open after the view"), "{found}");
    }

    #[test]
    fn planted_bugs_are_found() {
        for plant in Plant::value_variants() {
            let found =
                (0..1000).any(|seed| run_seed(seed, Some(*plant), false).violation.is_some());
            assert!(found, "{plant:?}");
        }
    }
}
