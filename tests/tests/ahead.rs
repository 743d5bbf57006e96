//! Logs that were restored from an older state under a database that was not.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_tests::cluster::shown;
use quorate_tests::TestCluster;
use std::fs;
use std::path::Path;
use std::process::Command;

/// With owner and rights: the servers run as another user.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").args([from, to]).status()?;
    ensure!(status.success(), "cp -a {} {}: {status}", from.display(), to.display());
    Ok(())
}

/// In a group of one nobody is left who saw the later starts, and nobody who has the lost commits:
/// what is written now would get seqnos that InnoDB counts as applied.
#[test]
fn a_database_ahead_of_its_groups_log_is_not_written_to() -> Result<()> {
    let cluster = TestCluster::up(1, "")?;
    cluster.sql(1, "CREATE DATABASE test_ahead")?;
    cluster.sql(1, "CREATE TABLE test_ahead.t (id INT PRIMARY KEY)")?;
    cluster.quorate(&["stop", "1"])?;
    let log = cluster.node_dir(1).join("log");
    let kept = cluster.node_dir(1).join("kept");
    copy(&log, &kept)?;
    cluster.quorate(&["up"])?;
    for id in 1..=20 {
        cluster.sql(1, &format!("INSERT INTO test_ahead.t VALUES ({id})"))?;
    }
    cluster.quorate(&["stop", "1"])?;
    let newest = cluster.node_dir(1).join("newest");
    fs::rename(&log, &newest)?;
    fs::rename(&kept, &log)?;

    let before = cluster.error_log(1)?.len();
    let started = cluster.try_quorate(&["up"])?;
    let said = cluster.error_log(1)?.split_off(before);
    ensure!(said.contains("but the group's log gives it its place at"), "{said}");
    ensure!(!started.status.success(), "{}", shown(&started));

    // The group may get there, with other rows: so it stays refused.
    cluster.try_quorate(&["kill", "1"])?;
    let before = cluster.error_log(1)?.len();
    let again = cluster.try_quorate(&["up"])?;
    let said = cluster.error_log(1)?.split_off(before);
    ensure!(said.contains("had not got there when this node last came"), "{said}");
    ensure!(!again.status.success(), "{}", shown(&again));

    // With the log that belongs to it all is there.
    cluster.try_quorate(&["kill", "1"])?;
    fs::remove_dir_all(&log)?;
    fs::rename(&newest, &log)?;
    cluster.quorate(&["up"])?;
    let rows: Option<u32> = cluster.connect(1)?.query_first("SELECT COUNT(*) FROM test_ahead.t")?;
    ensure!(rows.context("no count")? == 20, "{rows:?}");
    cluster.passed()
}
