//! A cluster on this machine: one directory that says everything.
//!
//! ```text
//! DIR/quorate.json     what the cluster is and which processes run it (state.rs)
//! DIR/secret           by which the nodes know each other; made with the cluster
//! DIR/extra.cnf        server options of the user; written once, never overwritten
//! DIR/node1/my.cnf     generated at each start (config.rs)
//! DIR/node1/data       MariaDB's datadir; state transfer may replace all of it
//! DIR/node1/log        the consensus log: outside the datadir, for that reason
//! DIR/node1/error.log  also mariadb.sock, mariadbd.pid, tmp
//! ```
//!
//! A logger is a node that has of these only the consensus log and the error log.
//!
//! Invariant: only a directory that was empty, or that holds our state file, is ever written to
//! or deleted.

mod config;
mod directory;
mod state;

pub use config::write_config;
pub use directory::{prepare, resolve_dir, Lock};
pub use quorate_lab::server::{check_free, Account, Node, Ports, DEFAULT_BASE};
pub use state::{NodeState, Role, State};

use crate::failure::{Failure, NO_CLUSTER, USAGE};
use crate::server::{Activity, ProcessId};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// An open cluster: its directory and what the state file says.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub dir: PathBuf,
    pub account: Account,
    pub state: State,
}

impl Cluster {
    /// Opens the cluster in `dir`; an error if there is none.
    pub fn open(dir: &Path) -> Result<Cluster> {
        let Some(state) = State::read(dir)? else {
            let message = format!(
                "no cluster of `quorate up` in {}. For a group of installed servers add --cluster NAME (quorate \
                 cluster list shows the names), or --seed HOST:PORT with --operator-file FILE. For a cluster of \
                 `quorate up` in another directory: --dir, or QUORATE_DIR. Nothing was done",
                dir.display()
            );
            return Err(Failure::new(NO_CLUSTER, message).into());
        };
        let account = Account::named(&state.account)?;
        Ok(Cluster { dir: dir.to_owned(), account, state })
    }

    pub fn node(&self, number: u16) -> Node {
        Node::new(&self.dir, number, self.state.nodes[usize::from(number) - 1].ports)
    }

    pub fn nodes(&self) -> Vec<Node> {
        self.state.nodes.iter().map(|node| self.node(node.number)).collect()
    }

    pub fn node_state(&mut self, number: u16) -> &mut NodeState {
        &mut self.state.nodes[usize::from(number) - 1]
    }

    /// Finds a node by `node2` or `2`.
    pub fn find(&self, name: &str) -> Result<Node> {
        let found = self
            .state
            .nodes
            .iter()
            .find(|node| node.name == name || node.number.to_string() == name);
        match found {
            Some(node) => Ok(self.node(node.number)),
            None => {
                let names: Vec<&str> = self.state.nodes.iter().map(|n| n.name.as_str()).collect();
                let (dir, names) = (self.dir.display(), names.join(", "));
                let message = format!("no node '{name}' in {dir}; it has {names}");
                Err(Failure::new(USAGE, message).into())
            }
        }
    }

    /// As [`Cluster::find`]; an error if the node has no database.
    pub fn find_server(&self, name: &str) -> Result<Node> {
        let node = self.find(name)?;
        if self.is_logger(&node) {
            let servers: Vec<String> = self.servers().into_iter().map(|node| node.name).collect();
            let message = format!(
                "{} is a logger, which has a log and a vote but no database: name one of {}",
                node.name,
                servers.join(", ")
            );
            return Err(Failure::new(USAGE, message).into());
        }
        Ok(node)
    }

    /// The nodes that have a database.
    pub fn servers(&self) -> Vec<Node> {
        self.nodes().into_iter().filter(|node| !self.is_logger(node)).collect()
    }

    pub fn is_logger(&self, node: &Node) -> bool {
        self.state.nodes[usize::from(node.number) - 1].logger
    }

    /// Where the group's members reach each other.
    pub fn group_addresses(&self) -> Vec<String> {
        self.nodes().iter().map(Node::group_address).collect()
    }

    /// The node's process, if it is alive.
    pub fn process(&self, node: &Node) -> Option<ProcessId> {
        let process = self.state.nodes[usize::from(node.number) - 1].process?;
        process.is_alive().then_some(process)
    }

    pub fn activity(&self, node: &Node) -> Activity {
        self.process(node).map_or(Activity::Gone, |process| process.activity())
    }

    /// Whether its nodes answer on the group's port: another provider can be tried, too.
    pub fn is_of_quorate(&self) -> bool {
        let file = self.state.provider.file_name().unwrap_or_default();
        file.to_string_lossy().starts_with("libquorate")
    }

    pub fn save(&self) -> Result<()> {
        self.state.write(&self.dir)
    }
}
