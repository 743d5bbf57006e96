//! docs/run/backup.md, step by step: a backup of a member under load, and a whole group begun anew on it.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_lab::server::Account;
use quorate_tests::cluster::shown;
use quorate_tests::writers::table::TABLE;
use quorate_tests::writers::{self, create_table, missing};
use quorate_tests::TestCluster;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const CALM: Duration = Duration::from_secs(1);
const CLIENTS: usize = 4;
const DROPPED: &str = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'";

#[test]
fn a_group_is_begun_anew_on_a_physical_backup() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    cluster.sql(1, "CREATE DATABASE shop")?;
    cluster.sql(1, "CREATE TABLE shop.orders (id INT PRIMARY KEY)")?;
    let (leader, backed_up) = (cluster.leader()?, cluster.followers()?[0]);
    let before = writers::start(&cluster, &[leader], CLIENTS, 1);
    thread::sleep(CALM);
    let before = before.stop();
    cluster.wait_level(&cluster.all(), LIMIT)?;

    let during = writers::start(&cluster, &[leader], CLIENTS, 2);
    let backup = cluster.dir.join("backup");
    let config =
        format!("--defaults-file={}", cluster.node_dir(backed_up).join("my.cnf").display());
    mariadb_backup(&config, "--backup", &backup, &["--user=root"])?;
    let during = during.stop();
    ensure!(during.per_second().iter().all(|count| *count > 0), "{:?}", during.per_second());
    mariadb_backup(&config, "--prepare", &backup, &[])?;
    cluster.sql(leader, "DROP DATABASE shop")?;
    cluster.wait_level(&cluster.all(), LIMIT)?;

    cluster.quorate(&["down"])?;
    for node in cluster.all() {
        let aside = cluster.dir.join(format!("aside-{node}"));
        fs::create_dir(&aside)?;
        for part in ["data", "log"] {
            let place = cluster.node_dir(node).join(part);
            fs::rename(&place, aside.join(part)).with_context(|| place.display().to_string())?;
        }
    }
    let config = format!("--defaults-file={}", cluster.node_dir(1).join("my.cnf").display());
    let data = cluster.node_dir(1).join("data");
    mariadb_backup(&config, "--copy-back", &backup, &[])?;
    let account = Account::choose()?;
    let owner = format!("{0}:{0}", account.name);
    let owned = Command::new("chown").arg("-R").arg(owner).arg(&data).status()?;
    ensure!(owned.success(), "chown of {}", data.display());

    cluster.quorate(&["up", "--new-cluster-on", "node1"])?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    let log = cluster.error_log(1)?;
    ensure!(log.contains("The new group continues from"), "it has begun something else");
    let mut rows = Vec::new();
    for node in cluster.all() {
        let missing = missing(&cluster, node, &before.ids())?;
        ensure!(missing.is_empty(), "node{node} lacks {} rows", missing.len());
        let mut connection = cluster.connect(node)?;
        let tables: Option<u64> = connection.query_first(DROPPED)?;
        ensure!(tables == Some(1), "node{node} has {tables:?} of one table");
        rows.push(connection.query_first::<u64, _>(format!("SELECT COUNT(*) FROM {TABLE}"))?);
    }
    ensure!(rows.windows(2).all(|pair| pair[0] == pair[1]), "{rows:?}");
    cluster.sql(2, "INSERT INTO shop.orders VALUES (1)")?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    cluster.passed()
}

/// While everything goes on; what was acknowledged before it began is in it.
#[test]
fn a_dump_of_a_follower_is_loaded_into_another_group() -> Result<()> {
    let (from, to) = (TestCluster::up(2, "")?, TestCluster::up(2, "")?);
    create_table(&from)?;
    let (leader, follower) = (from.leader()?, from.followers()?[0]);
    let load = writers::start(&from, &[leader], CLIENTS, 1);
    thread::sleep(CALM);
    let before = load.stop();
    let load = writers::start(&from, &[leader], CLIENTS, 2);
    // A read that waits for what was acknowledged anywhere.
    let waited = missing(&from, follower, &before.ids())?;
    ensure!(waited.is_empty(), "{} rows are not there", waited.len());
    let socket = format!("--socket={}", from.socket(follower).display());
    let (database, _) = TABLE.split_once('.').context("the table's database")?;
    let dump =
        ["--user=root", &socket, "--single-transaction", "--routines", "--databases", database];
    let dumped = Command::new("mariadb-dump").args(dump).output()?;
    load.stop();
    ensure!(dumped.status.success(), "{}", shown(&dumped));

    let file = to.dir.join("dump.sql");
    fs::write(&file, &dumped.stdout)?;
    let socket = format!("--socket={}", to.socket(1).display());
    let mut client = Command::new("mariadb");
    let loaded = client.args(["--user=root", &socket]).stdin(File::open(&file)?).output()?;
    ensure!(loaded.status.success(), "{}", shown(&loaded));
    to.wait_level(&to.all(), LIMIT)?;
    for node in to.all() {
        let missing = missing(&to, node, &before.ids())?;
        ensure!(missing.is_empty(), "node{node} lacks {} rows", missing.len());
    }
    from.passed()?;
    to.passed()
}

fn mariadb_backup(config: &str, what: &str, place: &Path, more: &[&str]) -> Result<()> {
    let place = format!("--target-dir={}", place.display());
    let output = Command::new("mariadb-backup").args([config, what, &place]).args(more).output()?;
    ensure!(output.status.success(), "mariadb-backup {what}: {}", shown(&output));
    Ok(())
}
