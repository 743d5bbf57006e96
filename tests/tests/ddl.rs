//! DDL through crashes: executed exactly once on every node, though it is not idempotent.

use anyhow::Result;
use mysql::prelude::Queryable;
use quorate_tests::{sized, TestCluster};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Adds an index without a name and swaps two tables: both succeed a second time, too, and then
/// leave another schema.
const DDL: [&str; 2] = [
    "ALTER TABLE test_ddl.a ADD INDEX (v)",
    "RENAME TABLE test_ddl.a TO test_ddl.x, test_ddl.b TO test_ddl.a, test_ddl.x TO test_ddl.b",
];

#[test]
fn ddl_is_executed_once_whatever_is_killed() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE test_ddl")?;
    for round in 0..sized(3, 15) {
        for table in ["a", "b"] {
            cluster.sql(1, &format!("CREATE OR REPLACE TABLE test_ddl.{table} (id INT PRIMARY KEY, v INT, name_{table} INT)"))?;
        }
        let done = AtomicBool::new(false);
        thread::scope(|scope| -> Result<()> {
            let mut conn = cluster.connect(1)?;
            let done = &done;
            scope.spawn(move || {
                // Ends with the connection at the latest: its node is killed.
                for statement in DDL.iter().cycle().take(60) {
                    if done.load(Ordering::Relaxed) || conn.query_drop(statement).is_err() {
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
    let tables: Vec<String> = conn.query("SHOW TABLES FROM test_ddl")?;
    let mut text = String::new();
    for table in tables {
        let (_, create): (String, String) = conn
            .query_first(format!("SHOW CREATE TABLE test_ddl.{table}"))?
            .ok_or_else(|| anyhow::anyhow!("{table} is gone"))?;
        text.push_str(&create);
    }
    Ok(text)
}
