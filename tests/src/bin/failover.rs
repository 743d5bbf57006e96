//! How long writes stop when a node fails: rounds of each fault on real servers under load, beside
//! the limits that Quorate sets itself. Exit code 1 if one is missed, or a row lost.
//! A page of it is written after each network.

use anyhow::{ensure, Context, Result};
use clap::{Parser, ValueEnum};
use quorate_cli::commands::Loopback;
use quorate_lab::cluster::{Cluster, Plan};
use quorate_lab::net::Topology;
use quorate_lab::target::Target;
use quorate_tests::failover::{page, Failover, Fault, Table, CLIENTS};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Network {
    /// Processes of this machine; no power cuts, no partitions
    Loopback,
    /// One data centre, round trips of 0.1 ms
    Lan,
    /// The third node in another region: 1, 30, 30 ms
    TwoRegions,
}

#[derive(Parser)]
struct Args {
    /// Rounds of each fault
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Which faults (default: all)
    #[arg(long, value_enum, value_delimiter = ',')]
    faults: Vec<Fault>,
    /// Between which networks; all but loopback need root
    #[arg(long, value_enum, value_delimiter = ',', default_value = "lan,two-regions")]
    network: Vec<Network>,
    /// Nodes of the cluster
    #[arg(long, default_value_t = 3)]
    nodes: u16,
    /// Options of the provider: `key=value;key=value`
    #[arg(long, default_value = "")]
    provider_options: String,
    /// Where the page goes
    #[arg(long, default_value = "target/failover.html")]
    out: PathBuf,
    /// Print each round
    #[arg(long)]
    verbose: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let about =
        format!("{} nodes, {} rounds of each fault, {CLIENTS} clients", args.nodes, args.rounds);
    let mut tables = Vec::new();
    if let Some(folder) = args.out.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    for network in &args.network {
        tables.push(measure(&args, *network)?);
        fs::write(&args.out, page(&tables, &about).html())
            .with_context(|| format!("writing {}", args.out.display()))?;
    }
    println!("{}", args.out.display());
    let missed: usize = tables.iter().map(Table::missed).sum();
    ensure!(tables.iter().all(|table| table.lost() == 0), "acknowledged rows were lost");
    ensure!(missed == 0, "{missed} limits were missed");
    Ok(())
}

fn measure(args: &Args, network: Network) -> Result<Table> {
    let (target, topology) = cluster(args, network)?;
    let mut failover = Failover::new(target.clone(), topology)?;
    let all = Fault::value_variants().iter();
    let possible = all.filter(|fault| target.network().is_some() || !fault.needs_network());
    let faults: Vec<Fault> = match args.faults.as_slice() {
        [] => possible.copied().collect(),
        some => some.to_vec(),
    };
    let name = network.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
    let mut table = Table::begin(&name);
    for fault in faults {
        let mut outcomes = Vec::with_capacity(args.rounds);
        for round in 0..args.rounds {
            let outcome = failover.round(fault)?;
            if args.verbose {
                println!("  {} {round}: {outcome:?}", fault.name());
            }
            outcomes.push(outcome);
        }
        table.add(fault, &outcomes, failover.finish()?);
    }
    if let Some(returned) = table.returned() {
        println!("{}", returned.text());
    }
    Ok(table)
}

fn cluster(args: &Args, network: Network) -> Result<(Arc<dyn Target + Send>, Topology)> {
    let topology = match network {
        Network::Loopback => {
            let options = Some(args.provider_options.as_str());
            let loopback = Loopback::start(args.nodes, "[mariadbd]\n", options)?;
            return Ok((Arc::new(loopback), Topology::Bare));
        }
        Network::Lan => Topology::Lan,
        Network::TwoRegions => Topology::TwoRegions,
    };
    let plan = Plan {
        nodes: args.nodes.into(),
        topology,
        provider_options: args.provider_options.clone(),
        ..Plan::new(quorate_tests::power::quorate())
    };
    Ok((Arc::new(Cluster::start(&plan)?), topology))
}
