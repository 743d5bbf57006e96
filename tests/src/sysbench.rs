//! The standard load, and comparing all nodes' tables after it.

use crate::TestCluster;
use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use std::process::Command;
use std::time::Duration;

const DATABASE: &str = "sbtest";
/// Conflicts: lock wait timeout, deadlock, record changed.
const CONFLICTS: &str = "1205,1213,1020";

#[derive(Clone, Copy, Debug)]
pub struct Tables {
    pub count: u32,
    pub rows: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// `oltp_write_only`, ...
    pub script: &'a str,
    pub clients: u32,
    pub seconds: u32,
    /// Clients are spread over these.
    pub nodes: &'a [u16],
}

#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub tps: f64,
    /// Conflicts, which sysbench retries.
    pub conflicts: u64,
}

/// Fills the tables through `node`.
pub fn prepare(cluster: &TestCluster, tables: Tables, node: u16) -> Result<()> {
    cluster.sql(node, &format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
    let output = command(cluster, tables, &[node])
        .args(["oltp_common", "prepare"])
        .output()
        .context("running sysbench")?;
    ensure!(output.status.success(), "sysbench prepare: {}", crate::cluster::shown(&output));
    Ok(())
}

/// Runs the load. Any error but a conflict ends sysbench, and is an error here.
pub fn run(cluster: &TestCluster, tables: Tables, load: &Load) -> Result<Measured> {
    let output = command(cluster, tables, load.nodes)
        .arg(format!("--threads={}", load.clients))
        .arg(format!("--time={}", load.seconds))
        .arg(format!("--mysql-ignore-errors={CONFLICTS}"))
        .args([load.script, "run"])
        .output()
        .context("running sysbench")?;
    ensure!(
        output.status.success(),
        "sysbench {}: {}",
        load.script,
        crate::cluster::shown(&output)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(Measured {
        // `    transactions:      12345  (1234.50 per sec.)`
        tps: after(&text, "transactions:", 1)?,
        conflicts: after(&text, "ignored errors:", 0)? as u64,
    })
}

/// Waits until all nodes are level, then compares every table on every node.
pub fn compare(cluster: &TestCluster, tables: Tables) -> Result<()> {
    cluster.wait_level(&cluster.all(), Duration::from_secs(120))?;
    let names: Vec<String> = (1..=tables.count).map(|n| format!("{DATABASE}.sbtest{n}")).collect();
    let statement = format!("CHECKSUM TABLE {}", names.join(", "));
    let mut first: Option<Vec<(String, u64)>> = None;
    for node in cluster.all() {
        let sums: Vec<(String, u64)> = cluster.connect(node)?.query(&statement)?;
        match &first {
            None => first = Some(sums),
            Some(first) if *first == sums => {}
            Some(first) => bail!("node{node} differs from node1: {sums:?}, not {first:?}"),
        }
    }
    Ok(())
}

fn command(cluster: &TestCluster, tables: Tables, nodes: &[u16]) -> Command {
    let sockets: Vec<String> =
        nodes.iter().map(|node| cluster.socket(*node).display().to_string()).collect();
    let mut command = Command::new("sysbench");
    command
        .args(["--db-driver=mysql", "--mysql-user=root"])
        .arg(format!("--mysql-socket={}", sockets.join(",")))
        .arg(format!("--mysql-db={DATABASE}"))
        .arg(format!("--tables={}", tables.count))
        .arg(format!("--table-size={}", tables.rows));
    command
}

/// The `field`-th number after `label`.
fn after(text: &str, label: &str, field: usize) -> Result<f64> {
    let rest = text.split_once(label).with_context(|| format!("no {label:?} in: {text}"))?.1;
    rest.split_whitespace()
        .nth(field)
        .and_then(|word| word.trim_start_matches('(').parse().ok())
        .with_context(|| format!("no number after {label:?} in: {text}"))
}
