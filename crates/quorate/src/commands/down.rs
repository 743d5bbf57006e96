//! `quorate down`, `stop`, `kill`
//!
//! Invariant: a process counts as ended only once the kernel says so; a directory in which one may still write is not
//! deleted.

use super::require_running;
use crate::args::Down;
use crate::cluster::{Cluster, Node};
use crate::failure::{OK, TIMED_OUT};
use crate::server::ProcessId;
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A server that is killed while it writes can take seconds to go. Whatever `--timeout` says: that is for a clean stop.
const DEATH_LIMIT: Duration = Duration::from_secs(10);

pub fn down(dir: &Path, args: &Down) -> Result<u8> {
    if args.wipe {
        // Other commands can go on meanwhile.
        Cluster::open(dir)?;
        println!("All data and logs of the cluster in {} will be deleted.", dir.display());
        super::agree("Stop it and delete them?", args.yes)?;
    }
    let (cluster, _lock) = super::lock(dir, args.timeout)?;
    let code = stop(&cluster, &cluster.nodes(), args.timeout, args.force)?;
    match args.wipe {
        true if code == OK => {
            fs::remove_dir_all(dir).with_context(|| format!("deleting {}", dir.display()))?;
            println!("{} is deleted", dir.display());
        }
        true => eprintln!("{} is not deleted: not all of its nodes have ended", dir.display()),
        false => {}
    }
    Ok(code)
}

/// SIGTERM to all at once, then waits for each. With `force` those that are late are killed.
pub fn stop(cluster: &Cluster, nodes: &[Node], limit_secs: u64, force: bool) -> Result<u8> {
    let end = Instant::now() + Duration::from_secs(limit_secs);
    let running: Vec<(&Node, ProcessId)> =
        nodes.iter().filter_map(|node| Some((node, cluster.process(node)?))).collect();
    if running.is_empty() {
        println!("nothing runs");
    }
    for (_, process) in &running {
        process.signal(Signal::TERM)?;
        // A paused server would take the signal only when it goes on.
        process.signal(Signal::CONT)?;
    }
    let mut late = Vec::new();
    for (node, process) in running {
        if process.wait_gone(end.saturating_duration_since(Instant::now()))? {
            println!("{}: stopped", node.name);
        } else {
            late.push((node, process));
        }
    }
    if force {
        return kill_all(&late, &format!(", it did not stop within {limit_secs} s"));
    }
    for (node, process) in &late {
        eprintln!(
            "{}: pid {} did not stop within {limit_secs} s. See `quorate logs {0}`; wait longer \
             (--timeout), or kill it (--force): acknowledged transactions survive that",
            node.name, process.pid
        );
    }
    Ok(if late.is_empty() { OK } else { TIMED_OUT })
}

pub fn kill(cluster: &Cluster, nodes: &[Node]) -> Result<u8> {
    let victims: Vec<(&Node, ProcessId)> = nodes
        .iter()
        .map(|node| Ok((node, require_running(cluster, node)?)))
        .collect::<Result<_>>()?;
    kill_all(&victims, "")
}

/// SIGKILL to all at once, then waits for each. `why` follows the word that one is killed.
fn kill_all(victims: &[(&Node, ProcessId)], why: &str) -> Result<u8> {
    for (_, process) in victims {
        process.signal(Signal::KILL)?;
    }
    await_end(victims, DEATH_LIMIT, why)
}

/// Waits for those that were killed.
fn await_end(victims: &[(&Node, ProcessId)], limit: Duration, why: &str) -> Result<u8> {
    let end = Instant::now() + limit;
    let mut code = OK;
    for (node, process) in victims {
        let (name, pid) = (&node.name, process.pid);
        if process.wait_gone(end.saturating_duration_since(Instant::now()))? {
            println!("{name}: killed (pid {pid}){why}");
        } else {
            eprintln!(
                "{name}: pid {pid} was killed{why}, and is still there after {} s. It may write yet, so {} is left \
                 as it is. A disk that hangs can be the cause: see what the kernel says of it (dmesg), then give the \
                 command again. Acknowledged transactions are not lost by that",
                limit.as_secs(),
                node.dir.display()
            );
            code = TIMED_OUT;
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Role, State};
    use std::env::temp_dir;
    use std::io::Read;
    use std::process::{id, Child, Command, Stdio};

    /// A process that does not end at SIGTERM, once it is given back.
    fn stubborn() -> (Child, ProcessId) {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; echo; exec sleep 1000"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        (child, process)
    }

    /// A directory of a cluster whose only node runs as this process.
    fn described(name: &str, process: ProcessId) -> Cluster {
        let dir = temp_dir().join(format!("quorate-down-{name}-{}", id()));
        fs::create_dir_all(&dir).unwrap();
        let mut state = State::new(3400, "root");
        state.add_node(Role::Voter);
        state.nodes[0].process = Some(process);
        state.write(&dir).unwrap();
        Cluster::open(&dir).unwrap()
    }

    #[test]
    fn a_process_that_is_still_there_is_not_called_killed() {
        let (mut child, process) = stubborn();
        let cluster = described("late", process);
        let node = cluster.node(1);
        let victims = [(&node, process)];
        assert_eq!(await_end(&victims, Duration::from_millis(1), "").unwrap(), TIMED_OUT);
        assert_eq!(kill_all(&victims, "").unwrap(), OK);
        child.wait().unwrap();
        fs::remove_dir_all(&cluster.dir).unwrap();
    }

    #[test]
    fn a_directory_is_deleted_once_all_have_ended() {
        let (mut child, process) = stubborn();
        let dir = described("wiped", process).dir;
        // Not 0: another test that starts a process has the lock's file open for a moment, too.
        let down = |force| down(&dir, &Down { wipe: true, yes: true, force, timeout: 1 }).unwrap();
        assert_eq!(down(false), TIMED_OUT);
        assert!(State::exists(&dir) && process.is_alive());
        assert_eq!(down(true), OK);
        assert!(!dir.exists() && !process.is_alive());
        child.wait().unwrap();
    }
}
