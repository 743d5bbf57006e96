//! The standard load, and comparing all nodes' tables after it.

use crate::TestCluster;
use anyhow::{bail, Result};
use mysql::prelude::Queryable;
pub use quorate_bench::drive::sysbench::Tables;
use quorate_bench::drive::sysbench::{self, DATABASE};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

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
    sysbench::fill(&mut command(cluster, tables, &[node]), tables)
}

/// Runs the load. Any error but a conflict ends sysbench, and is an error here.
pub fn run(cluster: &TestCluster, tables: Tables, load: &Load) -> Result<Measured> {
    let mut command = command(cluster, tables, load.nodes);
    let report = sysbench::report(&mut command, load.script, load.clients, load.seconds)?;
    Ok(Measured { tps: report.tps, conflicts: report.errors as u64 })
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
    let sockets: Vec<PathBuf> = nodes.iter().map(|node| cluster.socket(*node)).collect();
    sysbench::command(&sockets, tables)
}
