//! What can happen to a member, and what brings it back.

use super::Fleet;
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_lab::process::Activity;
use quorate_lab::server;
use std::fs;
use std::time::Duration;

/// For a killed server to be gone.
const DEATH_LIMIT: Duration = Duration::from_secs(60);

/// Members that apply nothing as long as this lives.
pub(crate) struct Held {
    connections: Vec<Conn>,
    release: &'static str,
}

impl Held {
    pub(crate) fn release(mut self) -> Result<()> {
        let mut each = self.connections.iter_mut();
        each.try_for_each(|connection| connection.query_drop(self.release).context(self.release))
    }
}

impl Fleet {
    /// kill -9; does not wait until it is gone.
    pub fn strike(&self, member: usize) -> Result<()> {
        self.seats[member].kill()
    }

    /// kill -9; waits until it is gone.
    pub fn kill(&self, member: usize) -> Result<()> {
        self.strike(member)?;
        let gone = self.seats[member].collect(DEATH_LIMIT)?;
        ensure!(gone, "node{} does not end, though killed", member + 1);
        Ok(())
    }

    /// SIGSTOP.
    pub fn pause(&self, member: usize) -> Result<()> {
        self.seats[member].with_server(|server| server.pause())
    }

    pub fn resume(&self, member: usize) -> Result<()> {
        self.seats[member].with_server(|server| server.resume())
    }

    /// Gives it only this share of one processor; none: as much as it wants.
    pub fn starve(&self, member: usize, share: Option<f64>) -> Result<()> {
        self.seats[member].with_server(|server| server.starve(share))
    }

    /// SIGTERM; an error if it does not end within `limit`.
    pub fn stop(&self, member: usize, limit: Duration) -> Result<()> {
        self.seats[member].with_server(|server| server.terminate())?;
        let gone = self.seats[member].collect(limit)?;
        ensure!(gone, "node{} did not stop within {limit:?}", member + 1);
        Ok(())
    }

    /// Starts a member that does not run; [`Fleet::wait_up`] waits for it.
    pub fn start_again(&self, member: usize) -> Result<()> {
        self.system.start_again(self, member).with_context(|| self.log_ends())
    }

    /// Keeps all members but the primary from applying what they receive.
    pub(crate) fn hold_others(&self, primary: usize) -> Result<Held> {
        let how = self.system.hold().context("nobody can be held back here")?;
        let held = |member: usize| {
            let mut connection = self.connect(member)?;
            connection.query_drop(how.hold).context(how.hold)?;
            Ok(connection)
        };
        let others = self.others(primary);
        Ok(Held { connections: others.map(held).collect::<Result<_>>()?, release: how.release })
    }

    /// Takes everything from a member that does not run: data and log.
    pub fn wipe(&self, member: usize) -> Result<()> {
        let running = self.activity(member) != Activity::Gone;
        ensure!(!running, "node{} runs: it is not wiped", member + 1);
        let node = self.node(member);
        for folder in [node.data(), node.log(), node.tmp()].iter().filter(|path| path.exists()) {
            fs::remove_dir_all(folder).with_context(|| format!("clearing {}", folder.display()))?;
        }
        server::make_folders(node, &self.account)
    }

    /// Installs what a member that was wiped needs before it can [`Fleet::join`].
    pub fn make_joiner(&self, member: usize) -> Result<()> {
        self.system.make_joiner(self, member).with_context(|| self.log_ends())
    }

    /// Lets such a member in, so that it gets the data of the others; [`Fleet::wait_up`] waits until it has
    /// them.
    pub fn join(&self, member: usize) -> Result<()> {
        self.system.join(self, member).with_context(|| self.log_ends())
    }
}
