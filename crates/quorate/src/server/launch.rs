//! Starting a server so that it outlives this command.

use super::error_log;
use super::watch::Watched;
use crate::cluster::{write_config, Cluster, Node};
use anyhow::{Context, Result};
use quorate_lab::process::ProcessId;
use std::fs::{self, OpenOptions};
use std::process::{Command, Stdio};

/// How a server is to find its beginning.
#[derive(Clone, Debug)]
pub struct Start {
    /// A new group begins with it (`--wsrep-new-cluster`); our provider goes on with the old one
    /// if its log holds one.
    pub new_cluster: bool,
    /// Its data stands at this `uuid:seqno`; none: it needs a state transfer.
    pub position: Option<String>,
}

/// Makes what the node needs before its server can run: folders and configuration.
pub fn prepare(cluster: &Cluster, node: &Node) -> Result<()> {
    for folder in [node.dir.clone(), node.data(), node.tmp()] {
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        cluster.account.own(&folder, 0o700)?;
    }
    write_config(cluster, node)
}

/// Starts the server in a session of its own and notes it in the state file.
pub fn launch(cluster: &mut Cluster, node: &Node, start: &Start) -> Result<Watched> {
    prepare(cluster, node)?;
    // Made here and given away: the server opens it only after it has changed its user.
    let log_path = node.error_log();
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log_path)
        .with_context(|| format!("opening {}", log_path.display()))?;
    cluster.account.own(&log_path, 0o640)?;
    let log_start = error_log::length(&log_path);

    // setsid(1) becomes the server (exec), so the child's pid is the server's.
    let mut command = Command::new("setsid");
    command
        .arg(&cluster.state.mariadbd)
        .arg(format!("--defaults-file={}", node.config().display()))
        .current_dir(&node.dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("duplicating a file")?)
        .stderr(log);
    if cluster.account.switch {
        command.arg(format!("--user={}", cluster.account.name));
    }
    command.args(start.new_cluster.then_some("--wsrep-new-cluster"));
    command.args(start.position.as_ref().map(|at| format!("--wsrep_start_position={at}")));
    let child = command.spawn().context("running setsid")?;
    let process = ProcessId::of(child.id())?;
    cluster.node_state(node.number).process = Some(process);
    cluster.save()?;
    Ok(Watched { node: node.clone(), process, child: Some(child), log_start })
}
