//! Rounds of power cuts of all servers at once; prints what each round lost, and the sum.

use anyhow::{ensure, Result};
use clap::{Parser, ValueEnum};
use quorate_lab::cluster::System;
use quorate_lab::disk::Loss;
use quorate_lab::random::Random;
use quorate_tests::power::{quorate, PowerRounds};

#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    #[arg(long, value_enum, default_value = "quorate")]
    system: Which,
    /// Repeats the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    Quorate,
    Galera,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let system = match args.system {
        Which::Quorate => quorate(),
        Which::Galera => System::galera()?,
    };
    let random = args.seed.map_or_else(Random::fresh, Random::seeded);
    let mut rounds = PowerRounds::new(system, random)?;
    let (mut acked, mut lost) = (0, 0);
    println!(
        "{:>5}  {:<9} {:>15} {:>8} {:>6} {:>9}",
        "round", "disks", "bytes forgotten", "acked", "lost", "back in"
    );
    for number in 1..=args.rounds {
        let round = rounds.round()?;
        let disks = match round.loss {
            Loss::All => "cut",
            Loss::TornLast { .. } => "torn",
            Loss::Scattered { .. } => "scattered",
        };
        let forgotten: u64 = round.forgotten.iter().map(|lost| lost.bytes).sum();
        println!(
            "{number:>5}  {disks:<9} {forgotten:>15} {:>8} {:>6} {:>7.1} s",
            round.acked,
            round.lost,
            round.restart.as_secs_f64()
        );
        acked += round.acked;
        lost += round.lost;
    }
    println!("{} rounds, {acked} rows acknowledged, {lost} lost", args.rounds);
    ensure!(lost == 0, "acknowledged rows were lost");
    Ok(())
}
