//! The binary log of a member that was killed under load: what its replicas and a point-in-time recovery get.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_tests::writers::{create_table, start, table};
use quorate_tests::TestCluster;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const LOAD: Duration = Duration::from_secs(3);
const ROUNDS: u64 = 3;
const LOGGED: &str = "log_bin = binlog\nlog_slave_updates = ON\nsync_binlog = 1\n\
    innodb_flush_log_at_trx_commit = 1";
/// How the first column of a row begins in what `mariadb-binlog` writes.
const FIRST_COLUMN: &str = "###   @1=";

/// How often each id was inserted, by the binary logs of a node.
fn inserted(cluster: &TestCluster, node: u16) -> Result<BTreeMap<u64, u32>> {
    let mut conn = cluster.connect(node)?;
    let logs: Vec<(String, u64)> = conn.query("SHOW BINARY LOGS")?;
    let data = cluster.node_dir(node).join("data");
    let mut ids = BTreeMap::new();
    let inserted = format!("### INSERT INTO `{}`", table::TABLE.replace('.', "`.`"));
    for (log, _) in logs {
        let output = Command::new("mariadb-binlog")
            .args(["--base64-output=DECODE-ROWS", "--verbose"])
            .arg(data.join(&log))
            .output()
            .context("running mariadb-binlog")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "node{node}, {log}: {error}");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line != inserted {
                continue;
            }
            let first = lines.find_map(|line| line.strip_prefix(FIRST_COLUMN));
            let id = first.and_then(|id| id.split_whitespace().next()?.parse().ok());
            *ids.entry(id.with_context(|| format!("{log}: a row without an id"))?).or_default() +=
                1;
        }
    }
    Ok(ids)
}

#[test]
fn who_syncs_it_has_each_transaction_once_after_a_kill_under_load() -> Result<()> {
    let cluster = TestCluster::up(3, LOGGED)?;
    create_table(&cluster)?;
    for round in 1..=ROUNDS {
        let victim = match round {
            1 => cluster.leader()?,
            _ => cluster.followers()?[0],
        };
        let writers = start(&cluster, &cluster.all(), 4, round);
        std::thread::sleep(LOAD);
        cluster.quorate(&["kill", &victim.to_string()])?;
        writers.stop();
        cluster.quorate(&["start", &victim.to_string()])?;
        cluster.wait_level(&cluster.all(), LIMIT)?;
        for node in cluster.all() {
            let found = inserted(&cluster, node)?;
            let mut conn = cluster.connect(node)?;
            let rows: Vec<u64> =
                conn.query(format!("SELECT id FROM {} ORDER BY id", table::TABLE))?;
            let twice: Vec<_> = found.iter().filter(|(_, times)| **times > 1).collect();
            ensure!(twice.is_empty(), "round {round}, node{node}: more than once: {twice:?}");
            let logged: Vec<u64> = found.into_keys().collect();
            ensure!(!rows.is_empty(), "nothing was written");
            ensure!(
                rows == logged,
                "round {round}, node{node}: {} rows, {} logged",
                rows.len(),
                logged.len()
            );
        }
    }
    cluster.passed()
}
