//! Rounds of kill -9 under load on real servers; prints what each round lost, and the sum.

use anyhow::{ensure, Result};
use clap::Parser;
use quorate_tests::crash::CrashRounds;
use quorate_tests::TestCluster;

#[derive(Parser)]
struct Args {
    /// Rounds in which all nodes are killed within 100 ms
    #[arg(long, default_value_t = 20)]
    all: usize,
    /// Rounds in which one or two random nodes are killed
    #[arg(long, default_value_t = 50)]
    some: usize,
    /// Nodes of the cluster
    #[arg(long, default_value_t = 3)]
    nodes: u16,
    /// Provider options: `quorate.encrypt_key_file=FILE` for logs that are encrypted on disk
    #[arg(long, default_value = "")]
    options: String,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let whole = usize::from(args.nodes);
    let victims =
        std::iter::repeat_n(whole, args.all).chain((0..args.some).map(|round| 1 + round % 2));

    let cluster = TestCluster::unstarted(args.nodes, None)?;
    cluster.start("", &["--provider-options", &args.options])?;
    let mut rounds = CrashRounds::new(&cluster)?;
    let (mut acked, mut lost) = (0, 0);
    println!("{:>5}  {:<10} {:>8} {:>6} {:>9}", "round", "killed", "acked", "lost", "back in");
    for (number, count) in victims.enumerate() {
        let round = rounds.round(count)?;
        let here = round.lost.iter().map(|(_, rows)| *rows).max().unwrap_or(0);
        println!(
            "{:>5}  {:<10} {:>8} {:>6} {:>7.1} s",
            number + 1,
            format!("{:?}", round.victims),
            round.acked,
            here,
            round.restart.as_secs_f64()
        );
        acked += round.acked;
        lost += here;
    }
    println!("{} rounds, {acked} rows acknowledged, {lost} lost", args.all + args.some);
    ensure!(lost == 0, "acknowledged rows were lost");
    cluster.passed()
}
