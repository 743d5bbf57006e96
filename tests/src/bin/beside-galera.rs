//! Quorate beside Galera, on this machine, in one run: throughput at several numbers of clients,
//! and what a commit of one client costs over a server without replication.
//!
//! Both clusters are up all the time; rounds alternate between them, so that a noisy machine
//! treats them alike, and the medians count. Galera runs with `innodb_flush_log_at_trx_commit=1`,
//! which it needs to keep what it acknowledged; Quorate with 0, which is safe for it.

use anyhow::{ensure, Result};
use clap::{Parser, ValueEnum};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_tests::probe::{median, round_trip_time, sync_time};
use quorate_tests::standalone::Standalone;
use quorate_tests::sysbench::{self, Load, Tables};
use quorate_tests::TestCluster;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Args {
    /// Galera's provider; or another build of Quorate, to see what a change costs
    #[arg(long, default_value = "/usr/lib/galera/libgalera_smm.so")]
    galera: PathBuf,
    /// `innodb_flush_log_at_trx_commit` beside that provider
    #[arg(long, default_value_t = 1)]
    flush: u8,
    /// Provider options there: `quorate.insecure=yes` beside this build of Quorate shows what encryption costs
    #[arg(long, default_value = "")]
    options: String,
    /// Rounds of each measurement; medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each throughput measurement
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64")]
    clients: Vec<u32>,
    /// Where clients connect
    #[arg(long, value_enum, default_value = "leader")]
    target: Target,
    /// Rows of each of the four tables
    #[arg(long, default_value_t = 50_000)]
    rows: u32,
    /// Commits of each latency measurement
    #[arg(long, default_value_t = 2000)]
    commits: usize,
    #[arg(long, default_value = "oltp_write_only")]
    script: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Quorate's leader; node1 of Galera
    Leader,
    /// A node that does not lead
    Follower,
    /// Spread over all nodes
    All,
}

/// What a commit may cost beyond a round trip and a sync.
const ALLOWANCE: Duration = Duration::from_micros(200);

fn main() -> Result<()> {
    let args = Args::parse();
    let quorate = TestCluster::up(3, "")?;
    let galera = TestCluster::unstarted(3, Some(&args.galera))?;
    let flush = format!("innodb_flush_log_at_trx_commit = {}", args.flush);
    galera.start(&flush, &["--provider-options", &args.options])?;
    let throughput = throughput(&args, &quorate, &galera)?;
    let latency = latency(&args, &quorate, &galera)?;
    quorate.passed()?;
    galera.passed()?;
    ensure!(throughput && latency, "not all of it holds");
    Ok(())
}

/// Prints the table; true if Quorate is at least level everywhere.
fn throughput(args: &Args, quorate: &TestCluster, galera: &TestCluster) -> Result<bool> {
    let tables = Tables { count: 4, rows: args.rows };
    for cluster in [quorate, galera] {
        sysbench::prepare(cluster, tables, 1)?;
    }
    println!("{} transactions per second, medians of {} rounds", args.script, args.rounds);
    println!("{:>8} {:>10} {:>10} {:>7}", "clients", "quorate", "galera", "ratio");
    let mut level = true;
    for clients in &args.clients {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..args.rounds {
            let mut order = [(quorate, &mut ours), (galera, &mut theirs)];
            // Neither always goes first.
            if round % 2 == 1 {
                order.reverse();
            }
            for (cluster, results) in order {
                let nodes = targets(cluster, args.target)?;
                let (script, seconds) = (args.script.as_str(), args.seconds);
                let load = Load { script, clients: *clients, seconds, nodes: &nodes };
                results.push(sysbench::run(cluster, tables, &load)?.tps);
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!("{clients:>8} {ours:>10.0} {theirs:>10.0} {:>7.2}", ours / theirs);
        level &= ours >= theirs;
    }
    for cluster in [quorate, galera] {
        sysbench::compare(cluster, tables)?;
    }
    Ok(level)
}

fn targets(cluster: &TestCluster, target: Target) -> Result<Vec<u16>> {
    Ok(match target {
        Target::Leader => vec![cluster.leader()?],
        Target::Follower => vec![cluster.followers()?[0]],
        Target::All => cluster.all(),
    })
}

/// Prints what one client waits for a commit; true if Quorate's share is within its allowance.
fn latency(args: &Args, quorate: &TestCluster, galera: &TestCluster) -> Result<bool> {
    let standalone = Standalone::start(&quorate.dir.with_extension("standalone"))?;
    let leader = quorate.leader()?;
    let mut connections = [standalone.connect()?, quorate.connect(leader)?, galera.connect(1)?];
    for connection in &mut connections {
        connection.query_drop("CREATE DATABASE IF NOT EXISTS latency")?;
        connection
            .query_drop("CREATE TABLE latency.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")?;
    }
    let mut times = [const { Vec::new() }; 3];
    let (mut round_trips, mut syncs) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds.max(3) {
        for (connection, times) in connections.iter_mut().zip(&mut times) {
            times.push(commit_time(connection, args.commits)?);
        }
        round_trips.push(round_trip_time(args.commits)?);
        syncs.push(sync_time(&quorate.dir, args.commits)?);
    }
    let [alone, ours, theirs] = times.map(median);
    let (round_trip, sync) = (median(round_trips), median(syncs));
    let over = ours.saturating_sub(alone);
    let allowed = round_trip + sync + ALLOWANCE;
    println!("\nlatency of a one-row commit, one client, medians");
    for (what, time) in [
        ("server alone, flush=0", alone),
        ("quorate, on the leader", ours),
        ("galera (its own flush setting)", theirs),
        ("round trip of the network", round_trip),
        ("4 KiB overwrite + fdatasync", sync),
        ("quorate over the server alone", over),
        ("allowed: round trip + sync + 200 µs", allowed),
    ] {
        println!("{what:>36}  {:>6} µs", time.as_micros());
    }
    Ok(over <= allowed)
}

fn commit_time(connection: &mut Conn, count: usize) -> Result<Duration> {
    let times = (0..count)
        .map(|number| {
            let begin = Instant::now();
            connection.query_drop(format!("INSERT INTO latency.t (v) VALUES ({number})"))?;
            Ok(begin.elapsed())
        })
        .collect::<mysql::Result<Vec<_>>>()?;
    Ok(median(times))
}
