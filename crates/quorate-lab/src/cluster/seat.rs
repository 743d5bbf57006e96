//! A node's place on a host: where its server process is started, watched and ended.

use crate::net::Network;
use crate::process::{Activity, Process, Syncs};
use crate::server::{open_error_log, Account, Node};
use anyhow::{ensure, Context, Result};
use parking_lot::Mutex;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The server ends when this is dropped.
pub struct Seat {
    server: Mutex<Option<Arc<Process>>>,
    pub node: Node,
    index: usize,
    network: Network,
}

impl Seat {
    /// `node` on the host of this index.
    pub fn new(node: Node, index: usize, network: &Network) -> Seat {
        Seat { server: Mutex::new(None), node, index, network: network.clone() }
    }

    pub fn activity(&self) -> Activity {
        self.server().map_or(Activity::Gone, |server| server.activity())
    }

    /// Not held while it is used: others ask for it while somebody waits for its end.
    fn server(&self) -> Option<Arc<Process>> {
        self.server.lock().clone()
    }

    /// An error if the node does not run.
    pub fn with_server<T>(&self, act: impl FnOnce(&Process) -> Result<T>) -> Result<T> {
        let server = self.server().filter(|server| server.activity() != Activity::Gone);
        act(&*server.with_context(|| format!("{} does not run", self.node.name))?)
    }

    /// Starts the node's server on its host. What it prints goes to the node's error log.
    pub fn run(&self, command: Command, account: &Account) -> Result<()> {
        self.run_with(command, account, Syncs::Done)
    }

    /// The same for a server whose syncs are done, or not.
    pub fn run_with(&self, mut command: Command, account: &Account, syncs: Syncs) -> Result<()> {
        let mut server = self.server.lock();
        let runs = server.as_ref().is_some_and(|server| server.activity() != Activity::Gone);
        ensure!(!runs, "{} runs already", self.node.name);
        let log = open_error_log(&self.node, account)?;
        command
            .current_dir(&self.node.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("duplicating a file")?)
            .stderr(log);
        let host = &self.network.hosts()[self.index];
        *server = Some(Arc::new(Process::start_with(host, &mut command, syncs)?));
        Ok(())
    }

    /// kill -9, if it runs; does not wait.
    pub fn kill(&self) -> Result<()> {
        match self.server() {
            Some(server) => server.kill(),
            None => Ok(()),
        }
    }

    /// Waits until the server is gone; `false` if `limit` passed first.
    pub fn collect(&self, limit: Duration) -> Result<bool> {
        match self.server() {
            Some(server) => server.wait_gone(limit),
            None => Ok(true),
        }
    }
}
