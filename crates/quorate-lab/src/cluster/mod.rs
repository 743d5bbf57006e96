//! A cluster of database servers: each on its own host, with datadir and log on its own disk.

use crate::disk::{self, Disk, Loss, Lost};
use crate::net::{Network, Topology};
use crate::process::Activity;
use anyhow::Result;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What replicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum System {
    /// `libquorate.so` at this path.
    Quorate(PathBuf),
    /// Galera's provider at this path.
    Galera(PathBuf),
}

/// What a cluster is to be.
#[derive(Clone, Debug)]
pub struct Plan {
    pub system: System,
    pub nodes: usize,
    pub topology: Topology,
    pub disk: disk::Options,
    /// Lines for `[mariadbd]` that win over the lab's own.
    pub server_options: String,
    /// `key=value;key=value`.
    pub provider_options: String,
}

/// A cluster that lives until it is dropped. All calls may be made from any thread.
pub struct Cluster {
    plan: Plan,
}

impl System {
    /// Quorate as built beside this program.
    pub fn quorate() -> Result<System> {
        Ok(System::Quorate("libquorate.so".into()))
    }

    /// Galera as installed.
    pub fn galera() -> Result<System> {
        Ok(System::Galera("/usr/lib/galera/libgalera_smm.so".into()))
    }
}

impl Plan {
    /// Three nodes in one data centre.
    pub fn new(system: System) -> Plan {
        Plan {
            system,
            nodes: 3,
            topology: Topology::Lan,
            disk: disk::Options::default(),
            server_options: String::new(),
            provider_options: String::new(),
        }
    }
}

impl Cluster {
    /// Makes hosts, disks and datadirs, starts all servers and waits until they are Synced.
    pub fn start(plan: &Plan) -> Result<Cluster> {
        let _ = plan;
        anyhow::bail!("the cluster is not built yet")
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn nodes(&self) -> std::ops::Range<usize> {
        0..self.plan.nodes
    }

    pub fn network(&self) -> &Network {
        unimplemented!()
    }

    pub fn disk(&self, node: usize) -> &Disk {
        let _ = node;
        unimplemented!()
    }

    /// Connects as root through the node's socket, which no network fault touches. Every read and
    /// write is given up after `timeout`.
    pub fn connect(&self, node: usize, timeout: Duration) -> mysql::Result<mysql::Conn> {
        let _ = (node, timeout);
        unimplemented!()
    }

    /// The node's `wsrep_*` status variables.
    pub fn status(&self, node: usize) -> mysql::Result<HashMap<String, String>> {
        let _ = node;
        unimplemented!()
    }

    pub fn is_synced(&self, node: usize) -> bool {
        let _ = node;
        false
    }

    /// The node that leads, as a majority of the answering nodes sees it; none with Galera.
    pub fn leader(&self) -> Option<usize> {
        None
    }

    pub fn activity(&self, node: usize) -> Activity {
        let _ = node;
        Activity::Gone
    }

    /// kill -9 of all of `nodes`, at once; waits until they are gone.
    pub fn kill(&self, nodes: &[usize]) -> Result<()> {
        let _ = nodes;
        Ok(())
    }

    /// Cuts the power of all of `nodes`, at once: processes end, unsynced writes are forgotten.
    /// The disks are powered again when this returns; [`Cluster::start_node`] boots.
    pub fn cut_power(&self, nodes: &[usize], loss: Loss) -> Result<Vec<Lost>> {
        let _ = (nodes, loss);
        Ok(Vec::new())
    }

    pub fn pause(&self, node: usize) -> Result<()> {
        let _ = node;
        Ok(())
    }

    pub fn resume(&self, node: usize) -> Result<()> {
        let _ = node;
        Ok(())
    }

    /// SIGTERM; an error if it does not end within `limit`.
    pub fn stop(&self, node: usize, limit: Duration) -> Result<()> {
        let _ = (node, limit);
        Ok(())
    }

    /// Starts a node that does not run, from the position its data has; does not wait until it
    /// is Synced.
    pub fn start_node(&self, node: usize) -> Result<()> {
        let _ = node;
        Ok(())
    }

    /// Starts all that do not run, after whatever happened. Galera is bootstrapped by the book if
    /// none runs: from the node that is furthest.
    pub fn start_all(&self) -> Result<()> {
        Ok(())
    }

    /// Empties the disk of a node that does not run.
    pub fn wipe(&self, node: usize) -> Result<()> {
        let _ = node;
        Ok(())
    }

    /// Gives the node's server only this share of one processor; none: what it wants.
    pub fn starve(&self, node: usize, share: Option<f64>) -> Result<()> {
        let _ = (node, share);
        Ok(())
    }

    /// Waits until all of `nodes` are Synced; the error shows the end of their logs.
    pub fn wait_synced(&self, nodes: &[usize], limit: Duration) -> Result<()> {
        let _ = (nodes, limit);
        Ok(())
    }

    /// Waits until all of `nodes` are Synced and have committed the same.
    pub fn wait_level(&self, nodes: &[usize], limit: Duration) -> Result<()> {
        let _ = (nodes, limit);
        Ok(())
    }

    /// The node's error log, which is not on its disk.
    pub fn error_log(&self, node: usize) -> PathBuf {
        PathBuf::from(format!("node{}/error.log", node + 1))
    }

    /// Copies configuration and error logs of all nodes to `folder`.
    pub fn save_logs(&self, folder: &Path) -> Result<()> {
        let _ = folder;
        Ok(())
    }
}
