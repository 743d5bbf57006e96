//! State transfers are encrypted, and only between nodes that have the group's secret.

use anyhow::{ensure, Result};
use quorate_live::TransferFiles;
use quorate_tests::TestCluster;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// A donor whose scripts have the identity of another secret cannot give its state to a joiner, which has none
/// and says so; with its own one again, it can.
#[test]
fn an_emptied_node_takes_no_state_from_who_has_another_secret() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE test_state")?;
    let node = cluster.followers()?[0];
    let others: Vec<u16> = cluster.all().into_iter().filter(|other| *other != node).collect();
    cluster.quorate(&["stop", &node.to_string()])?;
    for folder in ["data", "log"] {
        fs::remove_dir_all(cluster.node_dir(node).join(folder))?;
    }
    for other in &others {
        let files = TransferFiles::of(&cluster.node_dir(*other).join("log"));
        for path in [&files.cert, &files.key, &files.ca] {
            ensure!(fs::metadata(path)?.mode() & 0o777 == 0o600, "{}", path.display());
        }
        pose_as_stranger(&files)?;
    }

    let failed = cluster.try_quorate(&["start", &node.to_string()])?;
    ensure!(!failed.status.success(), "a stranger has given it a state");
    let log = cluster.error_log(node)?;
    ensure!(log.contains("SSL_accept()"), "not refused by TLS:\n{log}");
    ensure!(!cluster.node_dir(node).join("data/test_state").exists(), "it has some of the state");

    // What they read again is the group's secret.
    for other in &others {
        ensure!(cluster.node_status(*other)?["state"] == "Synced", "node {other}");
        cluster.sql(*other, "SET GLOBAL wsrep_provider_options = 'socket.ssl_reload=1'")?;
    }
    let before = log.len();
    cluster.quorate(&["start", &node.to_string()])?;
    let log = cluster.error_log(node)?.split_off(before);
    ensure!(log.contains("Decrypting with cert='"), "no encrypted transfer in:\n{log}");
    ensure!(cluster.node_dir(node).join("data/test_state").exists(), "it has not got the state");
    cluster.passed()
}

/// Puts another key and certificate in the place of theirs; owner and mode stay.
fn pose_as_stranger(files: &TransferFiles) -> Result<()> {
    let at = |name: &str| files.cert.with_file_name(name);
    let (key, cert) = (at("stranger-key.pem"), at("stranger.pem"));
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=stranger"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let put = |from: &Path, to: &Path| fs::write(to, fs::read(from)?);
    put(&key, &files.key)?;
    put(&cert, &files.cert)?;
    put(&cert, &files.ca)?;
    fs::remove_file(key)?;
    Ok(fs::remove_file(cert)?)
}
