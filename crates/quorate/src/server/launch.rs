//! Starting a node so that it outlives this command.

use super::logger;
use super::watch::Watched;
use super::Start;
use crate::cluster::{write_config, Cluster, Node};
use anyhow::{Context, Result};
use quorate_lab::process::ProcessId;
use quorate_lab::server::{error_log, make_folder, make_folders, open_error_log};
use std::process::{Command, Stdio};

/// Makes what the node needs before it can run: folders and configuration.
pub fn prepare(cluster: &Cluster, node: &Node) -> Result<()> {
    if cluster.is_logger(node) {
        return make_folder(&node.dir, &cluster.account);
    }
    make_folders(node, &cluster.account)?;
    write_config(cluster, node)
}

/// Starts the node in a session of its own and notes it in the state file. `start` is for servers:
/// a logger goes on from its log.
pub fn launch(cluster: &mut Cluster, node: &Node, start: &Start) -> Result<Watched> {
    prepare(cluster, node)?;
    let log = open_error_log(node, &cluster.account)?;
    let log_start = error_log::length(&node.error_log());

    // setsid(1) becomes the program (exec), so the child's pid is the program's.
    let mut command = Command::new("setsid");
    if cluster.is_logger(node) {
        logger::describe(&mut command, cluster, node)?;
    } else {
        command.arg(&cluster.state.mariadbd).args(start.arguments(node, &cluster.account));
    }
    command
        .current_dir(&node.dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("duplicating a file")?)
        .stderr(log);
    let mut child = command.spawn().context("running setsid")?;
    let noted = ProcessId::of(child.id()).and_then(|process| {
        cluster.node_state(node.number).process = Some(process);
        cluster.save().map(|()| process)
    });
    let process = match noted {
        Ok(process) => process,
        Err(error) => {
            // Of one that is not noted nobody would know that it runs.
            child.kill().and_then(|()| child.wait()).context("ending a server again")?;
            cluster.node_state(node.number).process = None;
            return Err(error);
        }
    };
    Ok(Watched { node: node.clone(), process, child: Some(child), log_start })
}
