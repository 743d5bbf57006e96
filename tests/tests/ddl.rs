//! DDL through crashes: executed exactly once on every node, though it is not idempotent.

use anyhow::Result;
use mysql::prelude::Queryable;
use quorate_tests::{sized, TestCluster};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Adds an index without a name: succeeds a second time, too, and then leaves another schema.
const DDL: &str = "ALTER TABLE test_ddl.a ADD INDEX (v)";
/// A table may have 64 indexes.
const TIMES: usize = 60;

#[test]
fn ddl_is_executed_once_whatever_is_killed() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE test_ddl")?;
    for round in 0..sized(3, 15) {
        cluster.sql(1, "CREATE OR REPLACE TABLE test_ddl.a (id INT PRIMARY KEY, v INT)")?;
        let done = AtomicBool::new(false);
        thread::scope(|scope| -> Result<()> {
            let mut conn = cluster.connect(1)?;
            let done = &done;
            scope.spawn(move || {
                // Ends with the connection at the latest: its node is killed.
                for _ in 0..TIMES {
                    if done.load(Ordering::Relaxed) || conn.query_drop(DDL).is_err() {
                        return;
                    }
                }
            });
            thread::sleep(Duration::from_millis(100 + 137 * round as u64 % 400));
            for node in cluster.all() {
                cluster.quorate(&["kill", &node.to_string()])?;
            }
            done.store(true, Ordering::Relaxed);
            Ok(())
        })?;
        cluster.quorate(&["up"])?;
        let schemas: Vec<String> =
            cluster.all().into_iter().map(|node| schema(&cluster, node)).collect::<Result<_>>()?;
        assert!(schemas.windows(2).all(|pair| pair[0] == pair[1]), "round {round}: {schemas:#?}");
    }
    cluster.passed()
}

fn schema(cluster: &TestCluster, node: u16) -> Result<String> {
    let mut conn = cluster.connect(node)?;
    conn.query_drop("SET SESSION wsrep_sync_wait = 15")?;
    let created: Option<(String, String)> = conn.query_first("SHOW CREATE TABLE test_ddl.a")?;
    Ok(created.map(|(_, text)| text).unwrap_or_default())
}
