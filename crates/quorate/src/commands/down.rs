//! `quorate down`, `stop`, `kill`

use super::require_running;
use crate::args::Down;
use crate::cluster::{Cluster, Node};
use crate::failure::{OK, TIMED_OUT};
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

pub fn down(dir: &Path, args: &Down) -> Result<u8> {
    if args.wipe {
        // Other commands can go on meanwhile.
        Cluster::open(dir)?;
        println!("All data and logs of the cluster in {} will be deleted.", dir.display());
        super::agree("Stop it and delete them?", args.yes)?;
    }
    let (cluster, _lock) = super::lock(dir)?;
    let code = stop(&cluster, &cluster.nodes(), args.timeout, args.force)?;
    if code == OK && args.wipe {
        fs::remove_dir_all(dir).with_context(|| format!("deleting {}", dir.display()))?;
        println!("{} is deleted", dir.display());
    }
    Ok(code)
}

/// SIGTERM to all at once, then waits for each.
pub fn stop(cluster: &Cluster, nodes: &[Node], limit_secs: u64, force: bool) -> Result<u8> {
    let end = Instant::now() + Duration::from_secs(limit_secs);
    let running: Vec<_> =
        nodes.iter().filter_map(|node| Some((node, cluster.process(node)?))).collect();
    for (_, process) in &running {
        process.signal(Signal::TERM)?;
        // A paused server would take the signal only when it goes on.
        process.signal(Signal::CONT)?;
    }
    let mut code = OK;
    for (node, process) in &running {
        if process.wait_gone(end.saturating_duration_since(Instant::now()))? {
            println!("{}: stopped", node.name);
        } else if force {
            process.signal(Signal::KILL)?;
            process.wait_gone(Duration::from_secs(limit_secs))?;
            println!("{}: killed, it did not stop within {limit_secs} s", node.name);
        } else {
            eprintln!(
                "{}: pid {} did not stop within {limit_secs} s. See `quorate logs {0}`; wait \
                 longer (--timeout), or kill it (--force): acknowledged transactions survive that",
                node.name, process.pid
            );
            code = TIMED_OUT;
        }
    }
    if running.is_empty() {
        println!("nothing runs");
    }
    Ok(code)
}

/// SIGKILL to all at once.
pub fn kill(cluster: &Cluster, nodes: &[Node]) -> Result<u8> {
    let victims: Vec<_> = nodes
        .iter()
        .map(|node| Ok((node, require_running(cluster, node)?)))
        .collect::<Result<_>>()?;
    for (_, process) in &victims {
        process.signal(Signal::KILL)?;
    }
    for (node, process) in &victims {
        process.wait_gone(Duration::from_secs(60))?;
        println!("{}: killed (pid {})", node.name, process.pid);
    }
    Ok(OK)
}
