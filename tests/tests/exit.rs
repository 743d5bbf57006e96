//! What a node does that has lost its majority for long: `quorate.unreachable_majority_timeout`,
//! `quorate.autorejoin_tries`, `quorate.exit_action`. And one that is stopped while it stands still.

use anyhow::Result;
use mysql::prelude::Queryable;
use quorate_tests::{await_that, TestCluster};
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// `SHOW ... LIKE`, which a node without a majority answers, too.
fn shows(cluster: &TestCluster, node: u16, what: &str, name: &str) -> Result<String> {
    let query = format!("SHOW GLOBAL {what} LIKE '{name}'");
    let found: Option<(String, String)> = cluster.connect(node)?.query_first(query)?;
    Ok(found.map(|(_, value)| value).unwrap_or_default())
}

fn set_action(cluster: &TestCluster, node: u16, action: &str) -> Result<()> {
    cluster.sql(
        node,
        &format!(
            "SET GLOBAL wsrep_provider_options = 'quorate.unreachable_majority_timeout=PT6S;\
             quorate.autorejoin_tries=2;quorate.autorejoin_interval=PT1S;quorate.exit_action={action}'"
        ),
    )
}

fn kill_all_but(cluster: &TestCluster, left: u16) -> Result<Vec<String>> {
    let others: Vec<_> = cluster.all().into_iter().filter(|node| *node != left).collect();
    let others: Vec<String> = others.iter().map(u16::to_string).collect();
    for node in &others {
        cluster.quorate(&["kill", node])?;
    }
    Ok(others)
}

/// All at once: none is Synced before there is a majority.
fn start(cluster: &TestCluster, nodes: &[String]) -> Result<()> {
    thread::scope(|scope| {
        let started: Vec<_> = nodes
            .iter()
            .map(|node| scope.spawn(move || cluster.quorate(&["start", node])))
            .collect();
        started.into_iter().try_for_each(|each| match each.join() {
            Ok(done) => done.map(|_| ()),
            Err(_) => anyhow::bail!("starting a node panicked"),
        })
    })
}

#[test]
fn a_node_that_lost_its_majority_does_as_it_was_told() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE t")?;
    let left = 3;

    // It shows that it takes no writes, and returns by itself.
    set_action(&cluster, left, "read-only")?;
    let others = kill_all_but(&cluster, left)?;
    let read_only = || shows(&cluster, left, "VARIABLES", "read_only");
    await_that("read_only", || Ok(read_only()? == "ON"))?;
    await_that("the exit action", || {
        Ok(cluster.error_log(left)?.contains("quorate.exit_action=read-only"))
    })?;
    start(&cluster, &others)?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    await_that("read_only off", || Ok(read_only()? == "OFF"))?;
    cluster.sql(left, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;

    // It gives its connection up; the others go on without it, and it returns when it is told to.
    set_action(&cluster, left, "offline")?;
    let others = kill_all_but(&cluster, left)?;
    let status = || shows(&cluster, left, "STATUS", "wsrep_cluster_status");
    await_that("a node that is offline", || Ok(status()? == "Disconnected"))?;
    start(&cluster, &others)?;
    cluster.wait_level(&[1, 2], LIMIT)?;
    cluster.sql(1, "INSERT INTO t.t VALUES (1)")?;
    assert_eq!(status()?, "Disconnected");
    let address = shows(&cluster, left, "VARIABLES", "wsrep_cluster_address")?;
    cluster.sql(left, &format!("SET GLOBAL wsrep_cluster_address = '{address}'"))?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    assert_eq!(shows(&cluster, left, "VARIABLES", "read_only")?, "OFF");
    cluster.sql(left, "INSERT INTO t.t VALUES (2)")?;

    // Its server ends.
    set_action(&cluster, left, "abort")?;
    let mut all = kill_all_but(&cluster, left)?;
    await_that("the end of the server", || Ok(cluster.node_status(left)?["pid"].is_null()))?;
    all.push(left.to_string());
    start(&cluster, &all)?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        let rows: Vec<u32> = cluster.connect(node)?.query("SELECT id FROM t.t ORDER BY id")?;
        assert_eq!(rows, [1, 2], "node{node}");
    }
    cluster.passed()
}

/// The server ends its clients only when it has left the group, also the one that has locked its tables.
#[test]
fn a_server_whose_tables_are_locked_can_be_stopped() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let (leader, stopped) = (cluster.leader()?, cluster.followers()?[0]);
    cluster.sql(leader, "CREATE DATABASE t")?;
    cluster.sql(leader, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    let mut locks = cluster.connect(stopped)?;
    locks.query_drop("FLUSH TABLES WITH READ LOCK")?;
    (1..=10).try_for_each(|id| cluster.sql(leader, &format!("INSERT INTO t.t VALUES ({id})")))?;
    locks.query_drop("SET SESSION wsrep_sync_wait = 0")?;
    assert_eq!(locks.query_first("SELECT COUNT(*) FROM t.t")?, Some(0), "it does not stand still");

    let node = stopped.to_string();
    cluster.quorate(&["stop", &node])?;
    let log = cluster.error_log(stopped)?;
    assert!(log.contains("told to end while it stands still"), "{log}");
    cluster.quorate(&["start", &node])?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    let mut read = cluster.connect(stopped)?;
    assert_eq!(read.query_first("SELECT COUNT(*) FROM t.t")?, Some(10));
    cluster.passed()
}
