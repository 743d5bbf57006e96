//! `quorate-node-sim`: looks for seeds in which a node breaks a promise under a model of its server, and tells the
//! story of one.

mod baton;
mod calls;
mod engine;
mod group;
mod oracle;
mod plant;
mod server;
mod session;
mod transfer;
mod world;

use clap::Args;
use plant::Plant;
use quorate_seeds::{argument, Outcome, Simulator, Trace};
use std::process::ExitCode;
use world::{run_seed, Report};

/// What `--help` begins with.
const ABOUT: &str = "Deterministic simulation of Quorate's nodes under model servers: seeds in, violations out.

Each seed is one history of servers, sessions, appliers and a group with faults. A seed replays exactly, on \
any machine, as long as the code is the same.";

/// Servers with their nodes, each group in its world.
#[derive(Args, Clone, Copy, Debug)]
struct Servers {
    /// Plant a bug on purpose, to see it found.
    #[arg(long, value_enum)]
    plant: Option<Plant>,
}

impl Simulator for Servers {
    type Outcome = Report;

    fn run(&self, seed: u64, lines: usize) -> Report {
        run_seed(seed, self.plant, Trace::last(lines))
    }

    fn arguments(&self) -> String {
        self.plant.as_ref().map_or_else(String::new, |plant| argument("plant", plant))
    }
}

impl Outcome for Report {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn digest(&self) -> u64 {
        self.digest
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        vec![("steps", self.steps), ("seqnos", self.seqnos as u64)]
    }

    /// What happened, and what the calls answered.
    fn coverage(&self) -> Vec<(String, u64)> {
        let answers = self.answers.iter();
        let answers = answers.map(|((call, answer), count)| (format!("{call}: {answer}"), *count));
        answers.chain(self.marks.named()).collect()
    }

    fn violation(&self) -> Option<String> {
        self.violation.clone()
    }

    fn story(&self) -> &[String] {
        &self.trace
    }
}

fn main() -> ExitCode {
    quorate_seeds::main::<Servers>("quorate-node-sim", ABOUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use oracle::Mark;
    use quorate_seeds::{sweep, Sweep};
    use std::collections::BTreeSet;
    use std::sync::OnceLock;

    /// What the first seeds tell, which run once for all tests.
    fn first_seeds() -> &'static Sweep<Report> {
        static FIRST: OnceLock<Sweep<Report>> = OnceLock::new();
        FIRST.get_or_init(|| sweep(&Servers { plant: None }, 0..1000, 2, 1, &|_| {}))
    }

    fn assert_seen(marks: &[Mark]) {
        for mark in marks {
            assert!(first_seeds().coverage[&format!("{mark:?}")] > 0, "{mark:?}");
        }
    }

    #[test]
    fn a_seed_replays_exactly_whatever_ran_before_it() {
        let first = run_seed(7, None, Trace::default());
        let _other = run_seed(8, None, Trace::default());
        let again = run_seed(7, None, Trace::last(100));
        assert_eq!((first.digest, first.steps), (again.digest, again.steps));
        assert!(!again.trace.is_empty());
    }

    #[test]
    fn seeds_keep_the_rules() {
        let broken = first_seeds().broken.first();
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
            for answered in run_seed(seed, None, Trace::default()).answers.keys() {
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
            let report = run_seed(seed, None, Trace::default());
            assert_eq!(report.violation, None, "seed {seed}");
            missing.retain(|mark| report.marks.count(*mark) == 0);
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
    fn large_transactions_come_in_parts_and_are_given_up() {
        assert_seen(&[
            Mark::PartSent,
            Mark::LargeSent,
            Mark::PartRead,
            Mark::PartsGivenUp,
            Mark::Packed,
        ]);
    }

    #[test]
    fn clients_wait_for_others_in_vain_too_and_are_slowed_down() {
        assert_seen(&[Mark::AppliedElsewhere, Mark::AppliedTooLate, Mark::Throttled]);
    }

    #[test]
    fn a_view_that_ends_a_stream_on_some_servers_only_is_found_as_that() {
        let broken = |seed| run_seed(seed, Some(Plant::OrphansStay), Trace::default()).violation;
        let found = (0..1000).find_map(broken).expect("a violation");
        assert!(found.starts_with("n0 keeps the stream"), "{found}");
        assert!(found.contains("open after the view"), "{found}");
    }

    #[test]
    fn planted_bugs_are_found() {
        for plant in Plant::value_variants() {
            // The rarest shows about once in a thousand.
            let found = (0..4000)
                .any(|seed| run_seed(seed, Some(*plant), Trace::default()).violation.is_some());
            assert!(found, "{plant:?}");
        }
    }
}
