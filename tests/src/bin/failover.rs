//! How long writes stop when a node fails: rounds of each fault on real servers under load.

use anyhow::{ensure, Result};
use clap::{Parser, ValueEnum};
use quorate_tests::failover::{Failover, Fault, Outcome};
use quorate_tests::TestCluster;
use std::time::Duration;

#[derive(Parser)]
struct Args {
    /// Rounds of each fault
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Which faults (default: all)
    #[arg(long, value_enum, value_delimiter = ',')]
    faults: Vec<Fault>,
    /// Nodes of the cluster
    #[arg(long, default_value_t = 3)]
    nodes: u16,
    /// Print each round
    #[arg(long)]
    verbose: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let faults = match args.faults.as_slice() {
        [] => Fault::value_variants(),
        some => some,
    };
    let cluster = TestCluster::up(args.nodes, "")?;
    let mut failover = Failover::new(&cluster)?;
    let mut lost = 0;
    println!(
        "{:<15} {:>7} {:>8} {:>8} {:>10} {:>9} {:>6}",
        "fault", "rounds", "p50 gap", "worst", "p50 rate", "acked", "lost"
    );
    for fault in faults {
        let mut outcomes = Vec::with_capacity(args.rounds);
        for round in 0..args.rounds {
            let outcome = failover.round(*fault)?;
            if args.verbose {
                println!("  {} {round}: {outcome:?}", fault.name());
            }
            outcomes.push(outcome);
        }
        lost += print(*fault, &outcomes);
    }
    ensure!(lost == 0, "acknowledged rows were lost");
    cluster.passed()
}

/// One line of the table; the rows lost.
fn print(fault: Fault, outcomes: &[Outcome]) -> usize {
    let mut gaps: Vec<Duration> = outcomes.iter().map(|outcome| outcome.gap).collect();
    gaps.sort();
    let mut rates: Vec<f64> = outcomes.iter().map(|outcome| outcome.rate_ratio).collect();
    rates.sort_by(f64::total_cmp);
    let lost = outcomes.iter().map(|outcome| outcome.lost).max().unwrap_or(0);
    println!(
        "{:<15} {:>7} {:>6.2} s {:>6.2} s {:>8.0} % {:>9} {:>6}",
        fault.name(),
        outcomes.len(),
        gaps[gaps.len() / 2].as_secs_f64(),
        gaps[gaps.len() - 1].as_secs_f64(),
        100.0 * rates[rates.len() / 2],
        outcomes.iter().map(|outcome| outcome.acked).sum::<usize>(),
        lost,
    );
    lost
}
