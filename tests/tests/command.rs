//! The command itself, on a cluster that works: what a newcomer types.

use anyhow::{ensure, Result};
use mysql::prelude::Queryable;
use quorate_lab::server::sql::order;
use quorate_tests::cluster::shown;
use quorate_tests::{await_that, TestCluster};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn exit_code(cluster: &TestCluster, arguments: &[&str]) -> Result<Option<i32>> {
    Ok(cluster.try_quorate(arguments)?.status.code())
}

#[test]
fn a_cluster_from_birth_to_wipe() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    assert_eq!(exit_code(&cluster, &["status"])?, Some(66), "nothing is there");
    cluster.start("", &[])?;

    // The table, the same as JSON, and who may look into the directories.
    let table = cluster.quorate(&["status"])?;
    assert_eq!(table.matches("Synced").count(), 3, "{table}");
    let status = cluster.status()?;
    assert_eq!(status["health"], "synced");
    assert_eq!(status["nodes"][1]["address"], format!("127.0.0.1:{}", cluster.base_port + 20));
    let mode = cluster.node_dir(1).metadata()?.permissions().mode();
    assert_eq!(mode & 0o077, 0, "others may not reach a node's socket");

    // A second `up` changes nothing.
    cluster.quorate(&["up"])?;
    for node in 0..3 {
        assert_eq!(cluster.status()?["nodes"][node]["pid"], status["nodes"][node]["pid"]);
    }

    // What is written on one node is read on another.
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(2, "CREATE TABLE t.t (id INT PRIMARY KEY, node INT)")?;
    let mut writer = cluster.connect(3)?;
    // It may hear of the table a moment later.
    writer.query_drop("SET SESSION wsrep_sync_wait = 7")?;
    writer.query_drop("INSERT INTO t.t VALUES (1, 3)")?;
    let mut reader = cluster.connect(1)?;
    reader.query_drop("SET SESSION wsrep_sync_wait = 1")?;
    assert_eq!(reader.query_first("SELECT node FROM t.t")?, Some(3));

    // Nothing is left to be applied.
    cluster.wait_level(&cluster.all(), LIMIT)?;
    let watched = cluster.quorate(&["watch", "--count", "2", "--interval", "0.2"])?;
    assert_eq!(watched.matches("Synced").count(), 6, "{watched}");
    assert!(watched.contains("applied: node1 0/s, node2 0/s, node3 0/s"), "{watched}");

    let line = cluster.quorate(&["watch", "--count", "1", "--json"])?;
    let look: Value = serde_json::from_str(&line)?;
    assert_eq!(look["status"]["health"], "synced", "{line}");

    // One node down: degraded, once another one leads if it did; and back.
    cluster.quorate(&["kill", "node2"])?;
    await_that("a degraded cluster", || Ok(exit_code(&cluster, &["status"])? == Some(1)))?;
    assert_eq!(cluster.node_status(2)?["state"], "Down");
    let told = shown(&cluster.try_quorate(&["status"])?);
    assert!(told.contains("! node2 does not run; start it with: quorate start node2"), "{told}");
    let again = cluster.try_quorate(&["kill", "2"])?;
    assert!(!again.status.success() && shown(&again).contains("node2 does not run"));
    cluster.quorate(&["start", "node2"])?;
    cluster.quorate(&["restart", "3"])?;
    assert_eq!(exit_code(&cluster, &["status"])?, Some(0));

    // All down, all up, data there, in whatever order they come.
    cluster.quorate(&["down"])?;
    assert_eq!(exit_code(&cluster, &["status"])?, Some(2));
    cluster.quorate(&["up"])?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        assert_eq!(cluster.connect(node)?.query_first("SELECT COUNT(*) FROM t.t")?, Some(1));
    }
    let unasked = cluster.try_quorate(&["down", "--wipe"])?;
    assert_eq!(
        unasked.status.code(),
        Some(64),
        "there is no terminal to ask on: {}",
        shown(&unasked)
    );
    ensure!(cluster.dir.exists());
    cluster.quorate(&["down", "--wipe", "--yes"])?;
    ensure!(!cluster.dir.exists());
    cluster.passed()
}

#[test]
fn leadership_is_handed_over_on_command() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    for _ in 0..3 {
        let next = cluster.followers()?[1];
        cluster.quorate(&["switchover", "--to", &next.to_string()])?;
        assert_eq!(cluster.leader()?, next);
        cluster.quorate(&["switchover", "--to", &next.to_string()])?;
    }
    let before = cluster.leader()?;
    cluster.quorate(&["switchover"])?;
    assert_ne!(cluster.leader()?, before);
    let before = cluster.leader()?;
    cluster.quorate(&["switchover", "--after", "1s"])?;
    assert_ne!(cluster.leader()?, before);
    assert_eq!(exit_code(&cluster, &["switchover", "--at", "2020-01-01 00:00:00"])?, Some(64));
    assert_eq!(exit_code(&cluster, &["switchover", "--to", "nobody"])?, Some(64));

    let last = ["history", "--json", "--kind", "leader", "--last", "1"];
    let handed = format!("node{before} handed leadership over");
    await_that("the history to say why another leads", || {
        let history: Value = serde_json::from_str(&cluster.quorate(&last)?)?;
        Ok(history["history"][0]["what"].as_str().is_some_and(|what| what.ends_with(&handed)))
    })?;

    // Told by SQL: who does not lead refuses, and says who does.
    let (leader, other) = (cluster.leader()?, cluster.followers()?[0]);
    let refused = order(&mut cluster.connect(other)?, "quorate.switchover", "any");
    let reason = refused.unwrap_err().to_string();
    assert!(reason.contains(&format!("node{leader}")), "{reason}");
    cluster.passed()
}

#[test]
fn a_cluster_grows_by_more_nodes() -> Result<()> {
    let mut cluster = TestCluster::up(1, "")?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    cluster.sql(1, "INSERT INTO t.t VALUES (7)")?;
    cluster.nodes = 3;
    cluster.quorate(&["up", "--nodes", "3"])?;
    for node in [2, 3] {
        assert_eq!(cluster.connect(node)?.query_first("SELECT id FROM t.t")?, Some(7));
    }
    let fewer = cluster.try_quorate(&["up", "--nodes", "2"])?;
    assert_eq!(fewer.status.code(), Some(64), "{}", shown(&fewer));
    cluster.passed()
}

#[test]
fn a_directory_with_other_things_is_left_alone() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    std::fs::create_dir_all(&cluster.dir)?;
    let other = cluster.dir.join("precious.txt");
    std::fs::write(&other, "mine")?;
    let output = cluster.try_start("", &[])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(shown(&output).contains("is not empty and holds no cluster"), "{}", shown(&output));
    assert_eq!(std::fs::read_to_string(other)?, "mine");
    cluster.passed()
}
