//! A cluster under test, as workloads and schedules see it. Nodes are counted from 0.

use crate::cluster::Cluster;
use crate::disk::{Disk, Loss, Lost};
use crate::net::Network;
use crate::process;
use crate::schedule::Means;
use crate::server::error_log;
use crate::server::sql::WsrepStatus;
use anyhow::{bail, Result};
use mysql::Conn;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the provider says before it ends a server that is to be started again.
const RESTART_WANTED: &str = "a service manager that restarts servers which ended abnormally";
/// Lines of a server that ends, after that.
const LAST_WORDS: usize = 12;

/// All calls may be made from any thread.
pub trait Target: Sync {
    /// The servers.
    fn nodes(&self) -> usize;

    /// All that can be hurt: the servers, and then members that have no database, to which nobody
    /// connects.
    fn members(&self) -> usize {
        self.nodes()
    }

    /// A server that is to have no vote.
    fn is_learner(&self, _node: usize) -> bool {
        false
    }

    /// Whether one of the members after the servers runs, and counts for majorities.
    fn has_vote(&self, _member: usize) -> bool {
        true
    }

    /// Connects as an account that may do everything; each read and write is given up after
    /// `timeout`.
    fn connect(&self, node: usize, timeout: Duration) -> mysql::Result<Conn>;

    /// The node's `wsrep_*` status variables.
    fn status(&self, node: usize) -> mysql::Result<WsrepStatus>;

    /// The node that leads; none where nobody does, as in Galera.
    fn leader(&self) -> Option<usize>;

    fn is_running(&self, node: usize) -> bool;

    /// kill -9 of all of `nodes`, at once; waits until they are gone.
    fn kill(&self, nodes: &[usize]) -> Result<()>;

    /// SIGSTOP.
    fn pause(&self, node: usize) -> Result<()>;

    fn resume(&self, node: usize) -> Result<()>;

    /// SIGTERM; an error if it does not end within `limit`.
    fn stop(&self, node: usize, limit: Duration) -> Result<()>;

    /// Starts a node that does not run; does not wait until it is Synced.
    fn start_node(&self, node: usize) -> Result<()>;

    /// Starts all that do not run, after whatever happened.
    fn start_all(&self) -> Result<()>;

    /// Takes data and log from a node that does not run.
    fn wipe(&self, node: usize) -> Result<()>;

    /// Waits until all nodes are Synced and have committed the same.
    fn wait_level(&self, limit: Duration) -> Result<()>;

    /// Copies configuration and error logs of all nodes to `folder`.
    fn save_logs(&self, folder: &Path) -> Result<()>;

    /// Where the node's server writes its error log.
    fn error_log(&self, node: usize) -> PathBuf;

    /// The server ended by itself, and asks its service manager for another start.
    fn wants_restart(&self, node: usize) -> bool {
        !self.is_running(node)
            && error_log::tail(&self.error_log(node), LAST_WORDS)
                .iter()
                .any(|line| line.contains(RESTART_WANTED))
    }

    /// None: the nodes are not on a network that can fail.
    fn network(&self) -> Option<&Network> {
        None
    }

    /// None: the node is not on a disk that can fail.
    fn disk(&self, _node: usize) -> Option<&Disk> {
        None
    }

    /// What can be done besides.
    fn means(&self) -> Means {
        Means::NONE
    }

    /// Sets the wall clock of the node's server this many seconds before (negative) or after the
    /// machine's.
    fn set_clock(&self, _node: usize, _offset_seconds: i64) -> Result<()> {
        bail!("these nodes have no clocks that can be set")
    }

    /// Gives the node's server only this share of one processor; none: what it wants.
    fn starve(&self, _node: usize, _share: Option<f64>) -> Result<()> {
        bail!("these nodes cannot be starved of processor time")
    }

    /// Cuts the power of all of `nodes`, at once. Only where there are disks.
    fn cut_power(&self, _nodes: &[usize], _loss: Loss) -> Result<Vec<Lost>> {
        bail!("these nodes have no disks whose power can be cut")
    }
}

impl Target for Cluster {
    fn nodes(&self) -> usize {
        Cluster::nodes(self).len()
    }

    fn members(&self) -> usize {
        Cluster::loggers(self).end
    }

    fn is_learner(&self, node: usize) -> bool {
        Cluster::is_learner(self, node)
    }

    fn has_vote(&self, member: usize) -> bool {
        Cluster::has_vote(self, member)
    }

    fn connect(&self, node: usize, timeout: Duration) -> mysql::Result<Conn> {
        Cluster::connect(self, node, timeout)
    }

    fn status(&self, node: usize) -> mysql::Result<WsrepStatus> {
        Cluster::status(self, node)
    }

    fn leader(&self) -> Option<usize> {
        Cluster::leader(self)
    }

    fn is_running(&self, node: usize) -> bool {
        self.activity(node) != crate::process::Activity::Gone
    }

    fn kill(&self, nodes: &[usize]) -> Result<()> {
        Cluster::kill(self, nodes)
    }

    fn pause(&self, node: usize) -> Result<()> {
        Cluster::pause(self, node)
    }

    fn resume(&self, node: usize) -> Result<()> {
        Cluster::resume(self, node)
    }

    fn stop(&self, node: usize, limit: Duration) -> Result<()> {
        Cluster::stop(self, node, limit)
    }

    fn start_node(&self, node: usize) -> Result<()> {
        Cluster::start_node(self, node)
    }

    fn start_all(&self) -> Result<()> {
        Cluster::start_all(self)
    }

    fn wipe(&self, node: usize) -> Result<()> {
        Cluster::wipe(self, node)
    }

    fn wait_level(&self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        let all: Vec<usize> = Cluster::nodes(self).collect();
        Cluster::wait_level(self, &all, limit)?;
        let loggers: Vec<usize> = Cluster::loggers(self).collect();
        self.wait_votes(&loggers, end.saturating_duration_since(Instant::now()))
    }

    fn save_logs(&self, folder: &Path) -> Result<()> {
        Cluster::save_logs(self, folder)
    }

    fn error_log(&self, node: usize) -> PathBuf {
        Cluster::error_log(self, node)
    }

    fn network(&self) -> Option<&Network> {
        Some(Cluster::network(self))
    }

    fn disk(&self, node: usize) -> Option<&Disk> {
        Some(Cluster::disk(self, node))
    }

    fn means(&self) -> Means {
        Means { clocks: self.plan().clocks, processors: process::can_starve(), ..Means::ALL }
    }

    fn set_clock(&self, node: usize, offset_seconds: i64) -> Result<()> {
        Cluster::set_clock(self, node, offset_seconds)
    }

    fn starve(&self, node: usize, share: Option<f64>) -> Result<()> {
        Cluster::starve(self, node, share)
    }

    fn cut_power(&self, nodes: &[usize], loss: Loss) -> Result<Vec<Lost>> {
        Cluster::cut_power(self, nodes, loss)
    }
}
