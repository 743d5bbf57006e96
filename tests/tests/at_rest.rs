//! What lies on the disks of the group's log: rows, without a key; with one, none.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_live::DiskKey;
use quorate_tests::cluster::shown;
use quorate_tests::TestCluster;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{chown, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const ROWS: u32 = 300;

/// Whether any file of the node's log directory has this text in it.
fn shows(cluster: &TestCluster, node: u16, text: &str) -> Result<bool> {
    let dir = cluster.node_dir(node).join("log");
    'listing: loop {
        let files = fs::read_dir(&dir).with_context(|| format!("listing {}", dir.display()))?;
        let mut segments = 0;
        for file in files {
            let path = file?.path();
            let bytes = match fs::read(&path) {
                // It got another name since it was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => continue 'listing,
                read => read.with_context(|| format!("reading {}", path.display()))?,
            };
            segments += u32::from(
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-")),
            );
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                return Ok(true);
            }
        }
        ensure!(segments > 0, "{} holds no log", dir.display());
        return Ok(false);
    }
}

/// Names of files below a folder that have this text in them.
fn showing(folder: &Path, text: &str) -> Result<String> {
    let output = Command::new("grep").args(["-rlaF", text]).arg(folder).output()?;
    // 1: in none; anything above is an error.
    ensure!(output.status.code().is_some_and(|code| code <= 1), "grep: {}", shown(&output));
    Ok(String::from_utf8(output.stdout)?)
}

/// Rows that hold this text, written through the first node.
fn write(cluster: &TestCluster, text: &str) -> Result<()> {
    let mut connection = cluster.connect(1)?;
    for number in 0..ROWS {
        let insert = format!("INSERT INTO t.t (text) VALUES ('{text} {number}')");
        connection.query_drop(insert)?;
    }
    cluster.wait_level(&cluster.all(), LIMIT)
}

fn count(cluster: &TestCluster, node: u16, text: &str) -> Result<u32> {
    let found = cluster
        .connect(node)?
        .query_first(format!("SELECT COUNT(*) FROM t.t WHERE text LIKE '{text} %'"))?;
    found.context("COUNT gives a row")
}

/// A key file that the servers' account can read, as its owner.
fn key_file(cluster: &TestCluster) -> Result<PathBuf> {
    let path = cluster.dir.join("key");
    DiskKey::new()?.write(&path)?;
    give_to_servers(cluster, &path)?;
    Ok(path)
}

fn give_to_servers(cluster: &TestCluster, path: &Path) -> Result<()> {
    let server = fs::metadata(cluster.node_dir(1).join("data"))?;
    Ok(chown(path, Some(server.uid()), Some(server.gid()))?)
}

fn with(key: &Path) -> String {
    format!("quorate.encrypt_key_file={}", key.display())
}

#[test]
fn once_there_is_a_key_no_file_of_the_log_shows_a_row() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(100))")?;
    let (clear, sealed) = ("everybody reads this", "nobody reads that");
    write(&cluster, clear)?;
    for node in cluster.all() {
        ensure!(shows(&cluster, node, clear)?, "node{node}: the search finds no row in the clear");
    }

    let key = key_file(&cluster)?;
    cluster.quorate(&["down"])?;
    cluster.start("", &["--provider-options", &with(&key)])?;
    write(&cluster, sealed)?;
    cluster.quorate(&["kill", "1", "2", "3"])?;
    cluster.quorate(&["up"])?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        ensure!(!shows(&cluster, node, sealed)?, "node{node}: a row is in the clear");
        ensure!(count(&cluster, node, clear)? == ROWS, "node{node}: what was in the clear is lost");
        ensure!(count(&cluster, node, sealed)? == ROWS, "node{node}: what was encrypted is lost");
        let log = cluster.error_log(node)?;
        ensure!(log.contains("new files are encrypted, with the key"), "node{node}: {log}");
        ensure!(log.contains("of its files are in the clear"), "node{node}: {log}");
    }
    cluster.passed()
}

/// The server encrypts its files, and the log is encrypted: then nothing on the disk shows a row.
#[test]
fn beside_the_servers_own_encryption_no_file_of_the_node_shows_a_row() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let key = key_file(&cluster)?;
    let servers_keys = cluster.dir.join("servers-keys");
    fs::write(&servers_keys, format!("1;{}\n", "5a".repeat(32)))?;
    give_to_servers(&cluster, &servers_keys)?;
    cluster.quorate(&["down"])?;
    let encrypting = format!(
        "plugin_load_add = file_key_management\nfile_key_management_filename = {}\n\
         innodb_encrypt_tables = FORCE\ninnodb_encrypt_log = ON\ninnodb_encryption_threads = 1\n\
         innodb_encrypt_temporary_tables = ON\nencrypt_tmp_files = ON\nencrypt_binlog = ON",
        servers_keys.display()
    );
    cluster.start(&encrypting, &["--provider-options", &with(&key)])?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(100))")?;
    let sealed = "nobody reads that";
    write(&cluster, sealed)?;
    for end in [&["kill", "1", "2", "3"][..], &["down"]] {
        cluster.quorate(end)?;
        for node in cluster.all() {
            let found = showing(&cluster.node_dir(node), sealed)?;
            ensure!(found.is_empty(), "after {end:?}, a row is in the clear in {found}");
        }
        cluster.quorate(&["up"])?;
        cluster.wait_level(&cluster.all(), LIMIT)?;
        for node in cluster.all() {
            ensure!(count(&cluster, node, sealed)? == ROWS, "node{node}: rows are lost");
        }
    }
    cluster.passed()
}

#[test]
fn without_its_key_a_node_does_not_start_and_with_it_again() -> Result<()> {
    let cluster = TestCluster::up(1, "")?;
    let key = key_file(&cluster)?;
    cluster.quorate(&["down"])?;
    cluster.start("", &["--provider-options", &with(&key)])?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.quorate(&["kill", "1"])?;
    let refused = cluster.try_start("", &["--provider-options", ""])?;
    ensure!(!refused.status.success(), "started without the key: {}", shown(&refused));
    let log = cluster.error_log(1)?;
    for part in
        ["is encrypted or sealed with the key", "Nothing was changed", "quorate.encrypt_key_file"]
    {
        ensure!(log.contains(part), "{part:?} is not in {log}");
    }
    cluster.start("", &["--provider-options", &with(&key)])?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    cluster.passed()
}
