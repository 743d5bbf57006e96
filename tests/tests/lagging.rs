//! A server that does not apply, as long as a lock holds it: what that costs itself and the others, and what
//! becomes of it.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_cli::server::ProcessId;
use quorate_tests::sysbench::{self, Load, Tables};
use quorate_tests::{await_that, sized, TestCluster};
use std::time::{Duration, Instant};

const TABLES: Tables = Tables { count: 4, rows: 2_000 };
/// What a lagging server's memory may grow by beside `quorate.queue_bytes`.
const GROWTH_MAX: u64 = 64 << 20;
const SCRIPT: &str = "Running: 'wsrep_sst_";

/// Holds the appliers of `node` until the connection ends, as a backup does that hangs.
fn hold(cluster: &TestCluster, node: u16) -> Result<Conn> {
    let mut lock = cluster.connect(node)?;
    lock.query_drop("FLUSH TABLES WITH READ LOCK")?;
    Ok(lock)
}

fn resident(cluster: &TestCluster, node: u16) -> Result<u64> {
    let pid = cluster.node_status(node)?["pid"].as_u64().context("it does not run")?;
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}

/// Transactions a second.
fn write(cluster: &TestCluster, nodes: &[u16], seconds: u64) -> Result<f64> {
    let seconds = seconds as u32;
    let load = Load { script: "oltp_write_only", clients: 8, seconds, nodes };
    let measured = sysbench::run(cluster, TABLES, &load)?;
    println!("{:.0} transactions a second", measured.tps);
    Ok(measured.tps)
}

#[test]
fn a_held_server_lags_in_bounded_memory_and_catches_up() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    cluster.start("", &["--provider-options", "quorate.queue_bytes=1M"])?;
    sysbench::prepare(&cluster, TABLES, 1)?;
    let held = cluster.followers()?[0];
    let others: Vec<u16> = cluster.all().into_iter().filter(|node| *node != held).collect();
    let calm = write(&cluster, &others, sized(2, 60))?;
    cluster.wait_level(&cluster.all(), Duration::from_secs(60))?;

    let lock = hold(&cluster, held)?;
    let before = resident(&cluster, held)?;
    let seconds = sized(10, 600);
    let beside = write(&cluster, &others, seconds)?;
    let (queued, lag) = (
        cluster.variable::<f64>(held, "wsrep_local_recv_queue")?,
        cluster.variable::<f64>(held, "wsrep_quorate_lag_seconds")?,
    );
    let grown = resident(&cluster, held)?.saturating_sub(before);
    println!("{queued} wait, the first for {lag} s; memory grew by {} MiB", grown >> 20);
    // All that the others wrote meanwhile, but for what was still on its way.
    let written = beside * seconds as f64;
    assert!(queued > 0.5 * written, "{queued} of {written} wait");
    assert!((seconds as f64 - 1.0..seconds as f64 + 30.0).contains(&lag), "{lag} s");
    assert!(grown <= GROWTH_MAX + (1 << 20), "it grew by {grown} bytes");
    let let_go = Instant::now();
    drop(lock);
    cluster.wait_level(&cluster.all(), Duration::from_secs(seconds.max(120)))?;
    let faster = seconds as f64 / let_go.elapsed().as_secs_f64();
    println!(
        "the others: {:.2} of what they did before; {faster:.1} x as fast replayed",
        beside / calm
    );
    if sized(false, true) {
        assert!(beside >= 0.95 * calm, "{beside} beside {calm} transactions a second");
        assert!(faster >= 6.0, "{faster} x as fast as it was written");
    }
    sysbench::compare(&cluster, TABLES)?;
    assert_eq!(cluster.variable::<f64>(held, "wsrep_quorate_lag_seconds")?, 0.0);
    cluster.passed()
}

/// As a service manager does, the test starts it again.
#[test]
fn a_server_that_lags_by_more_than_its_log_may_hold_fetches_the_state() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    // What fills the log here is as long as it looks.
    let small = "quorate.segment_size=2M;quorate.log_retain=4M;quorate.log_max=32M;\
                 quorate.queue_bytes=1M;quorate.compress=none";
    cluster.start("wsrep_sst_method = rsync", &["--provider-options", small])?;
    sysbench::prepare(&cluster, TABLES, 1)?;
    cluster
        .sql(1, "CREATE TABLE sbtest.filler (id INT PRIMARY KEY AUTO_INCREMENT, text LONGBLOB)")?;
    let held = cluster.followers()?[0];
    let leader = cluster.leader()?;
    let pid = cluster.node_status(held)?["pid"].as_u64().context("it does not run")?;
    let process = ProcessId::of(pid as u32)?;

    let lock = hold(&cluster, held)?;
    let mut writer = cluster.connect(leader)?;
    let mut rows = 0;
    await_that("the end of the server that lags", || {
        writer.query_drop("INSERT INTO sbtest.filler (text) VALUES (REPEAT('x', 200000))")?;
        rows += 1;
        Ok(!process.is_alive())
    })?;
    drop(lock);
    let log = cluster.error_log(held)?;
    for said in ["write sets, ", "it gives them up", "fetch the state from another node"] {
        assert!(log.contains(said), "no {said:?} in:\n{log}");
    }
    assert!(log.contains("Past that it would give them up"), "nobody was warned:\n{log}");
    let members = cluster.status()?["members"].to_string();
    println!("it ended after {rows} rows; members: {members}");

    // Its log has let go of what it did not apply.
    cluster.quorate(&["start", &held.to_string()])?;
    let log = cluster.error_log(held)?.split_off(log.len());
    assert!(log.contains(SCRIPT), "no state transfer in:\n{log}");
    write(&cluster, &cluster.all(), 2)?;
    sysbench::compare(&cluster, TABLES)?;
    let there: Option<u64> =
        cluster.connect(held)?.query_first("SELECT COUNT(*) FROM sbtest.filler")?;
    assert_eq!(there, Some(rows));
    cluster.passed()
}
