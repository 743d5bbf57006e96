//! Servers whose data differs from the others': voted out, and filled again.

use anyhow::{ensure, Result};
use mysql::prelude::Queryable;
use quorate_tests::{await_that, TestCluster};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn who_has_another_result_leaves_and_fetches_the_state() -> Result<()> {
    let cluster = prepared()?;
    let mut odd = cluster.connect(3)?;
    odd.query_drop("SET SESSION wsrep_on = OFF")?;
    odd.query_drop("INSERT INTO test_votes.t VALUES (1, 'odd')")?;
    cluster.sql(1, "INSERT INTO test_votes.t VALUES (1, 'all')")?;
    await_that("node 3 has left the view", || {
        Ok(cluster.variable::<u16>(1, "wsrep_cluster_size")? == 2)
    })?;
    let says = cluster.error_log(3)?;
    ensure!(says.contains("Inconsistent by consensus on"), "{says}");
    cluster.sql(2, "INSERT INTO test_votes.t VALUES (2, 'without node 3')")?;
    refill(&cluster, 3)
}

fn prepared() -> Result<TestCluster> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE test_votes")?;
    cluster.sql(1, "CREATE TABLE test_votes.t (id INT PRIMARY KEY, v VARCHAR(20))")?;
    cluster.wait_level(&cluster.all(), PATIENCE)?;
    Ok(cluster)
}

/// Restarts `node`, which has other data, and compares all of it with the others' afterwards.
fn refill(cluster: &TestCluster, node: u16) -> Result<()> {
    // It may have ended by itself.
    cluster.try_quorate(&["kill", &node.to_string()])?;
    cluster.quorate(&["up"])?;
    cluster.wait_level(&cluster.all(), PATIENCE)?;
    let rows: Vec<Vec<(u32, String)>> =
        cluster.all().into_iter().map(|node| rows(cluster, node)).collect::<Result<_>>()?;
    ensure!(rows.windows(2).all(|pair| pair[0] == pair[1]), "{rows:?}");
    ensure!(rows[0].len() == 2, "{rows:?}");
    cluster.passed()
}

fn rows(cluster: &TestCluster, node: u16) -> Result<Vec<(u32, String)>> {
    let mut conn = cluster.connect(node)?;
    conn.query_drop("SET SESSION wsrep_sync_wait = 15")?;
    Ok(conn.query("SELECT id, v FROM test_votes.t ORDER BY id")?)
}
