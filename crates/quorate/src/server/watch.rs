//! Watching nodes that were just started until they are Synced, or are not going to be.

use super::LoggerStatus;
use crate::cluster::{Cluster, Node};
use crate::sql;
use crate::view::{NodeLine, Progress};
use quorate_lab::process::{Activity, ProcessId};
use quorate_lab::server::error_log;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A node cannot be asked to report; it is asked this often.
const POLL: Duration = Duration::from_millis(50);
/// When one node has failed, the others are given this long: they may have been waiting for it.
const GRACE: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Synced,
    Failed,
    TimedOut,
}

/// A node to be watched.
#[derive(Debug)]
pub struct Watched {
    pub node: Node,
    pub process: ProcessId,
    /// Known if this command started it; then its exit status can be told.
    pub child: Option<Child>,
    /// What its error log says from here on concerns this start.
    pub log_start: u64,
}

impl Watched {
    /// A node that was running before this command.
    pub fn running(node: &Node, process: ProcessId) -> Watched {
        let log_start = error_log::length(&node.error_log());
        Watched { node: node.clone(), process, child: None, log_start }
    }

    /// Why it will not become Synced, if its process says so.
    fn ended(&mut self) -> Option<String> {
        let status = match &mut self.child {
            // Also collects the child, which would else look alive as a zombie.
            Some(child) => child.try_wait().ok().flatten(),
            None => None,
        };
        match (status, self.process.activity()) {
            (Some(status), _) => Some(format!("its process ended ({status})")),
            (None, Activity::Gone) => Some("its process ended".to_owned()),
            (None, Activity::Paused) => Some(format!(
                "its process is paused (SIGSTOP); let it go on with: kill -CONT {}",
                self.process.pid
            )),
            (None, Activity::Running) => None,
        }
    }
}

/// Watches all of `servers` at once; one that ends is reported when it ends.
/// The result is in the order of `servers`.
pub fn wait_synced(
    cluster: &Cluster,
    servers: &mut [Watched],
    progress: &Progress,
    end: Instant,
) -> Vec<Outcome> {
    let failed = AtomicBool::new(false);
    thread::scope(|scope| {
        let watchers: Vec<_> = servers
            .iter_mut()
            .map(|server| {
                let line = progress.node(&server.node.name);
                let failed = &failed;
                scope.spawn(move || watch(cluster, server, &line, progress, end, failed))
            })
            .collect();
        watchers.into_iter().map(|watcher| watcher.join().unwrap_or(Outcome::Failed)).collect()
    })
}

fn watch(
    cluster: &Cluster,
    server: &mut Watched,
    line: &NodeLine,
    progress: &Progress,
    end: Instant,
    failed: &AtomicBool,
) -> Outcome {
    let mut end = end;
    if server.child.is_some() {
        line.stage("starting");
    }
    loop {
        if let Some(reason) = server.ended() {
            failed.store(true, Ordering::Relaxed);
            line.fail("failed");
            progress.say(&with_log(server, &reason));
            return Outcome::Failed;
        }
        match state(cluster, &server.node) {
            Some((_, true)) => {
                line.done("Synced");
                return Outcome::Synced;
            }
            Some((state, false)) => line.stage(&state),
            // Not listening yet: what it logs is the best news of it.
            None => line.detail(&latest(server)),
        }
        if failed.load(Ordering::Relaxed) {
            end = end.min(Instant::now() + GRACE);
        }
        if Instant::now() >= end {
            line.fail("not Synced in time");
            progress.say(&with_log(server, "not Synced in time; its process keeps running"));
            return Outcome::TimedOut;
        }
        thread::sleep(POLL);
    }
}

/// What the node says of its state, and whether it has become what it is to be.
fn state(cluster: &Cluster, node: &Node) -> Option<(String, bool)> {
    if cluster.is_logger(node) {
        let status = LoggerStatus::ask(cluster, node)?;
        return Some((status.state().to_owned(), status.is_synced()));
    }
    let status = sql::wsrep_status(&node.socket(), cluster.account.database_user()).ok()?;
    let settled = status.has_vote() || status.is_learner(&node.name);
    Some((status.state().to_owned(), status.is_synced() && settled))
}

fn with_log(server: &Watched, reason: &str) -> String {
    let log = server.node.error_log();
    let lines = error_log::errors_since(&log, server.log_start);
    let lines: Vec<String> = lines.iter().map(|line| format!("    {line}")).collect();
    let path = log.display();
    format!("{}: {reason}. From {path}:\n{}", server.node.name, lines.join("\n"))
}

fn latest(server: &Watched) -> String {
    let lines = error_log::tail(&server.node.error_log(), 1);
    let line = lines.first().map_or("", String::as_str);
    // `2026-01-01 10:00:00 0 [Note] WSREP: text`
    line.split_once("] ").map_or(line, |(_, text)| text).to_owned()
}
