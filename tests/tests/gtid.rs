//! The domain of the GTIDs in the binary logs (`wsrep_gtid_mode=ON`) is the group's on every node, however
//! the node was started.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_tests::TestCluster;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const MODE: &str = "wsrep_gtid_mode = ON\nlog_bin = binlog\nlog_slave_updates = ON";
const SCRIPT: &str = "Running: 'wsrep_sst_";

/// Writes on each node, and says in which domain each then has all of it in its binary log.
fn domains(cluster: &TestCluster) -> Result<Vec<String>> {
    for node in cluster.all() {
        cluster.sql(node, "INSERT INTO test_gtid.t () VALUES ()")?;
    }
    cluster.wait_level(&cluster.all(), LIMIT)?;
    cluster
        .all()
        .into_iter()
        .map(|node| {
            let mut conn = cluster.connect(node)?;
            conn.query_drop("SET SESSION wsrep_sync_wait = 15")?;
            conn.query_drop("SELECT COUNT(*) FROM test_gtid.t")?;
            let position: Option<String> = conn.query_first("SELECT @@gtid_binlog_pos")?;
            let shown: Option<u32> = conn.query_first("SELECT @@wsrep_gtid_domain_id")?;
            let gtids = position.context("no position")?;
            Ok(format!("{gtids} {}", shown.context("no variable")?))
        })
        .collect()
}

/// All nodes have the same GTIDs, of this domain alone, and show it.
fn ensure_level(cluster: &TestCluster, domain: u32) -> Result<()> {
    let found = domains(cluster)?;
    let expected = |one: &String| {
        one.starts_with(&format!("{domain}-")) && one.ends_with(&format!(" {domain}"))
    };
    let same = found.iter().all(|one| *one == found[0]);
    ensure!(same && found.iter().all(expected) && !found[0].contains(','), "{found:?}");
    Ok(())
}

#[test]
fn a_node_that_restarts_without_a_transfer_keeps_the_domain_of_gtids() -> Result<()> {
    let cluster = TestCluster::up(2, &format!("{MODE}\nwsrep_gtid_domain_id = 7070"))?;
    cluster.sql(1, "CREATE DATABASE test_gtid")?;
    cluster.sql(1, "CREATE TABLE test_gtid.t (id INT PRIMARY KEY AUTO_INCREMENT)")?;
    // The second node began with a copy of the empty database, without a transfer.
    ensure_level(&cluster, 7070)?;

    // What the group has counts, not what is configured: nothing, or something else.
    let node = cluster.followers()?[0];
    for (configured, end) in [("", "stop"), ("", "kill"), ("wsrep_gtid_domain_id = 8", "stop")] {
        cluster.set_extra(&format!("{MODE}\n{configured}"))?;
        cluster.quorate(&[end, &node.to_string()])?;
        let before = cluster.error_log(node)?.len();
        cluster.quorate(&["start", &node.to_string()])?;
        let log = cluster.error_log(node)?.split_off(before);
        ensure!(!log.contains(SCRIPT), "a state transfer script ran:\n{log}");
        ensure_level(&cluster, 7070).with_context(|| format!("{end}, {configured:?}"))?;
    }
    let log = cluster.error_log(node)?;
    ensure!(log.contains("and what holds; 8 is configured, and does not count"), "{log}");
    cluster.passed()
}
