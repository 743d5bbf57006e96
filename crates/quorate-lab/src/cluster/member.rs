//! One node of a cluster: its host, its disk and its server.

use crate::disk::{self, Disk};
use crate::net::Network;
use crate::process::{Activity, Process};
use crate::server::{self, open_error_log, Account, Node, Ports, Start};
use anyhow::{ensure, Context, Result};
use parking_lot::Mutex;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// As everywhere: each node has an address of its own.
const PORTS: Ports = Ports { client: 3306, group: 4567, ist: 4568, sst: 4444 };

/// Fields are dropped in order: the server before its disk.
pub(super) struct Member {
    server: Mutex<Option<Arc<Process>>>,
    pub node: Node,
    pub disk: Disk,
    index: usize,
    network: Network,
}

impl Member {
    pub fn new(
        index: usize,
        network: &Network,
        disk: disk::Options,
        folder: &Path,
        account: &Account,
    ) -> Result<Member> {
        let disk = Disk::new(disk)?;
        let node = Node {
            host: network.hosts()[index].address().into(),
            disk: disk.path().to_owned(),
            ..Node::new(folder, index as u16 + 1, PORTS)
        };
        let network = network.clone();
        let member = Member { server: Mutex::new(None), node, disk, index, network };
        member.prepare(account)?;
        Ok(member)
    }

    /// Makes the folders that the server needs, on an empty disk.
    fn prepare(&self, account: &Account) -> Result<()> {
        account.own(self.disk.path(), 0o700)?;
        server::make_folders(&self.node, account)?;
        self.disk.sync_all();
        Ok(())
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

    pub fn start(
        &self,
        mariadbd: &Path,
        account: &Account,
        start: &Start,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<()> {
        let mut command = Command::new(mariadbd);
        command.args(start.arguments(&self.node, account));
        prepare(&mut command);
        self.run(command, account)
    }

    /// A member without a database. `group`: the addresses of all.
    pub fn start_logger(&self, program: &Path, account: &Account, group: &[String]) -> Result<()> {
        let mut command = Command::new(program);
        command
            .args(["logger", "--cluster-name", super::GROUP, "--name", &self.node.name])
            .args(["--address", &self.node.group_address(), "--join", &group.join(",")])
            .arg("--log-dir")
            .arg(self.node.log());
        self.run(command, account)
    }

    fn run(&self, mut command: Command, account: &Account) -> Result<()> {
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
        *server = Some(Arc::new(Process::start(host, &mut command)?));
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

    pub fn wipe(&self, account: &Account) -> Result<()> {
        self.disk.wipe()?;
        self.prepare(account)
    }

    /// What Galera's book says to do on the node that a dead cluster is to begin with again.
    pub fn allow_bootstrap(&self) -> Result<()> {
        let path = self.node.data().join("grastate.dat");
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let allowed = text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
        fs::write(&path, allowed).with_context(|| format!("writing {}", path.display()))
    }
}

/// The start with the highest position.
pub(super) fn furthest(starts: &[Start]) -> Option<usize> {
    let seqno = |start: &Start| -> Option<i64> {
        // `uuid:seqno`, with a domain's position behind a comma if there is one.
        let (_, seqno) = start.position.as_ref()?.split_once(':')?;
        seqno.split(',').next()?.parse().ok()
    };
    (0..starts.len()).max_by_key(|index| seqno(&starts[*index]))
}
