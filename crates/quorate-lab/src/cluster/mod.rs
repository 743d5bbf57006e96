//! A cluster of database servers: each on its own host, with datadir and log on its own disk.
//!
//! What is not on a node's disk, because no fault of the disk should touch it: its configuration,
//! error log and socket.

mod clock;
mod member;
mod plan;
mod seat;
mod wait;

pub use plan::{Plan, System};
pub use seat::Seat;

use crate::disk::{Disk, Loss, Lost};
use crate::leftovers::Folder;
use crate::net::Network;
use crate::process::Activity;
use crate::server::sql::{self, WsrepStatus};
use crate::server::{self, Account, Node, Settings, Start};
use anyhow::{bail, ensure, Context, Result};
use clock::Clocks;
use member::Member;
use parking_lot::Mutex;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For a server to become Synced after a start; state transfers take their time.
const START_LIMIT: Duration = Duration::from_secs(120);
/// For a killed server to be gone.
const DEATH_LIMIT: Duration = Duration::from_secs(30);
/// `wsrep_cluster_name`.
const GROUP: &str = "lab";
const LEARNER: &str = "quorate.role=learner";
/// Root, whom the socket authenticates.
const USER: &str = "root";

/// A cluster that lives until it is dropped. All calls may be made from any thread. Fields are
/// dropped in order: servers before the hosts that they run on.
pub struct Cluster {
    members: Vec<Member>,
    network: Network,
    plan: Plan,
    account: Account,
    mariadbd: PathBuf,
    clocks: Option<Clocks>,
    /// The group's uuid, once it exists.
    group: Mutex<Option<String>>,
    folder: Folder,
}

impl Cluster {
    /// Makes hosts, disks and datadirs, starts all servers and waits until they are Synced.
    pub fn start(plan: &Plan) -> Result<Cluster> {
        server::require_programs()?;
        let cluster = Cluster::make(plan)?;
        cluster.install()?;
        let founder = Start { new_cluster: true, position: None };
        cluster.launch(0, &founder)?;
        cluster.wait_synced(&[0], START_LIMIT)?;
        let status = cluster.status(0)?;
        let group = status.get("wsrep_cluster_state_uuid").context("node1 names no group")?;
        *cluster.group.lock() = Some(group.to_owned());
        // All have the founder's content: nobody needs a state transfer.
        let beginning = Start { new_cluster: false, position: Some(format!("{group}:0")) };
        for node in cluster.nodes().skip(1) {
            cluster.launch(node, &beginning)?;
        }
        let all: Vec<usize> = cluster.nodes().collect();
        cluster.wait_synced(&all, START_LIMIT)?;
        let loggers: Vec<usize> = cluster.loggers().collect();
        loggers.iter().try_for_each(|logger| cluster.start_logger(*logger))?;
        cluster.wait_votes(&loggers, START_LIMIT)?;
        // Galera fills its joiners by state transfers, which do not sync what they write. Any real
        // cluster is old enough that the kernel has written that out.
        for member in &cluster.members {
            member.disk.sync_all();
        }
        Ok(cluster)
    }

    fn make(plan: &Plan) -> Result<Cluster> {
        let account = Account::choose()?;
        let mariadbd = server::find_mariadbd()?;
        let clocks = plan.clocks.then(Clocks::find).transpose()?;
        let folder = Folder::new()?;
        let all = plan.servers() + plan.loggers;
        let network = Network::new(all, plan.topology)?;
        let member = |index| Member::new(index, &network, plan.disk, folder.path(), &account);
        let members = (0..all).map(member).collect::<Result<_>>()?;
        let group = Mutex::new(None);
        let plan = plan.clone();
        Ok(Cluster { members, network, plan, account, mariadbd, clocks, group, folder })
    }

    /// Writes configurations and makes the datadirs.
    fn install(&self) -> Result<()> {
        let extra = self.folder.path().join("extra.cnf");
        fs::write(&extra, format!("[mariadbd]\n{}\n", self.plan.server_options))
            .with_context(|| format!("writing {}", extra.display()))?;
        self.account.admit(&extra, 0o640)?;
        let group = self.group_addresses();
        let provider = server::readable_provider(
            self.plan.system.provider(),
            &self.folder.path().join("lib"),
            &self.account,
        )?;
        let secret = server::make_secret(self.folder.path(), &self.account)?;
        let of_learners = format!("{LEARNER};{}", self.plan.provider_options);
        for index in self.nodes() {
            let learns = self.is_learner(index);
            let settings = Settings {
                cluster: GROUP,
                group: &group,
                provider: &provider,
                provider_options: if learns { &of_learners } else { &self.plan.provider_options },
                secret: Some(&secret),
                account: &self.account,
            };
            settings.write(&self.members[index].seat.node, &extra)?;
            if let Some(clocks) = &self.clocks {
                clocks.set(&self.members[index].seat.node, 0)?;
            }
        }
        let servers = &self.members[self.nodes()];
        let nodes: Vec<Node> = servers.iter().map(|member| member.seat.node.clone()).collect();
        server::make_datadirs(&nodes, &self.folder.path().join("template"), &self.account)?;
        for member in &self.members {
            member.disk.sync_all();
        }
        Ok(())
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The servers.
    pub fn nodes(&self) -> Range<usize> {
        0..self.plan.servers()
    }

    /// Members after the servers, which have no database.
    pub fn loggers(&self) -> Range<usize> {
        self.plan.servers()..self.members.len()
    }

    /// A server that is to have no vote.
    pub fn is_learner(&self, node: usize) -> bool {
        (self.plan.nodes..self.plan.servers()).contains(&node)
    }

    fn group_addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| member.seat.node.group_address()).collect()
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    pub fn disk(&self, node: usize) -> &Disk {
        &self.members[node].disk
    }

    /// The node's unix socket, which no network fault touches.
    pub fn socket(&self, node: usize) -> PathBuf {
        self.members[node].seat.node.socket()
    }

    /// Connects as root through the node's socket. Every read and write is given up after
    /// `timeout`.
    pub fn connect(&self, node: usize, timeout: Duration) -> mysql::Result<mysql::Conn> {
        sql::connect(&self.socket(node), USER, timeout)
    }

    /// The node's `wsrep_*` status variables.
    pub fn status(&self, node: usize) -> mysql::Result<WsrepStatus> {
        sql::wsrep_status(&self.members[node].seat.node.socket(), USER)
    }

    pub fn is_synced(&self, node: usize) -> bool {
        self.status(node)
            .is_ok_and(|status| status.is_synced() && (status.has_vote() || self.is_learner(node)))
    }

    /// Whether a logger counts for majorities, as the servers see it.
    pub fn has_vote(&self, logger: usize) -> bool {
        let name = &self.members[logger].seat.node.name;
        self.activity(logger) == Activity::Running
            && self.nodes().any(|node| self.status(node).is_ok_and(|s| s.is_settled(name)))
    }

    /// The node that says it leads; of several, the one in the highest term. None with Galera.
    pub fn leader(&self) -> Option<usize> {
        let leads = |node: &usize| {
            let status = self.status(*node).ok()?;
            let term: u64 = status.get("wsrep_quorate_term")?.parse().ok()?;
            status.leads().then_some((term, *node))
        };
        self.nodes().filter_map(|node| leads(&node)).max().map(|(_, node)| node)
    }

    pub fn activity(&self, node: usize) -> Activity {
        self.members[node].seat.activity()
    }

    /// The pid of the node's server, if it runs.
    pub fn pid(&self, node: usize) -> Option<i32> {
        self.members[node].seat.with_server(|server| Ok(server.pid())).ok()
    }

    /// kill -9 of all of `nodes`, at once; waits until they are gone.
    pub fn kill(&self, nodes: &[usize]) -> Result<()> {
        for node in nodes {
            self.members[*node].seat.kill()?;
        }
        self.collect(nodes)
    }

    /// Cuts the power of all of `nodes`, at once: processes end, unsynced writes are forgotten.
    /// The disks are powered again when this returns; [`Cluster::start_node`] boots.
    ///
    /// To the other nodes it is as in life: they are not told, the host just falls silent. Links
    /// that are cut when this is called stay cut; those that are not are mended at the end.
    pub fn cut_power(&self, nodes: &[usize], loss: Loss) -> Result<Vec<Lost>> {
        let silenced = self.network.silence(nodes);
        // Whoever is killed acknowledges nothing more; what it wrote until then and did not sync
        // is forgotten.
        for node in nodes {
            self.members[*node].seat.kill()?;
        }
        for node in nodes {
            self.members[*node].disk.power_off();
        }
        self.collect(nodes)?;
        let lost = nodes.iter().map(|node| self.members[*node].disk.power_on(loss)).collect();
        self.network.unsilence(&silenced);
        lost
    }

    fn collect(&self, nodes: &[usize]) -> Result<()> {
        for node in nodes {
            let gone = self.members[*node].seat.collect(DEATH_LIMIT)?;
            ensure!(gone, "node{} does not end, though killed", node + 1);
        }
        Ok(())
    }

    /// SIGSTOP.
    pub fn pause(&self, node: usize) -> Result<()> {
        self.members[node].seat.with_server(|server| server.pause())
    }

    pub fn resume(&self, node: usize) -> Result<()> {
        self.members[node].seat.with_server(|server| server.resume())
    }

    /// SIGTERM; an error if it does not end within `limit`.
    pub fn stop(&self, node: usize, limit: Duration) -> Result<()> {
        self.members[node].seat.with_server(|server| server.terminate())?;
        let gone = self.members[node].seat.collect(limit)?;
        ensure!(gone, "node{} did not stop within {limit:?}", node + 1);
        Ok(())
    }

    /// Starts a node that does not run, from the position its data has; does not wait until it
    /// is Synced.
    pub fn start_node(&self, node: usize) -> Result<()> {
        if self.loggers().contains(&node) {
            return self.start_logger(node);
        }
        let start = self.beginning(node)?;
        self.launch(node, &start)
    }

    /// Starts all that do not run, after whatever happened; the error is of one that cannot be
    /// started, and keeps no other. Galera is bootstrapped by the book if none runs: from the node
    /// that is furthest.
    pub fn start_all(&self) -> Result<()> {
        let stopped: Vec<usize> =
            self.nodes().filter(|node| self.activity(*node) == Activity::Gone).collect();
        let beginnings: Vec<Result<Start>> = std::thread::scope(|scope| {
            let recoveries: Vec<_> =
                stopped.iter().map(|node| scope.spawn(|| self.beginning(*node))).collect();
            recoveries
                .into_iter()
                .map(|r| r.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut result = Ok(());
        let (mut nodes, mut starts) = (Vec::new(), Vec::new());
        for (node, beginning) in stopped.iter().zip(beginnings) {
            match beginning {
                Ok(start) => {
                    nodes.push(*node);
                    starts.push(start);
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        let bootstrap =
            matches!(self.plan.system, System::Galera(_)) && stopped.len() == self.members.len();
        let first = if bootstrap { member::furthest(&starts) } else { None };
        if let Some(first) = first {
            let start = Start { new_cluster: true, ..starts[first].clone() };
            server::allow_bootstrap(&self.members[nodes[first]].seat.node)?;
            self.launch(nodes[first], &start)?;
            self.wait_synced(&[nodes[first]], START_LIMIT)?;
        }
        for (index, (node, start)) in nodes.iter().zip(&starts).enumerate() {
            if first != Some(index) {
                result = result.and(self.launch(*node, start));
            }
        }
        for logger in self.loggers().filter(|logger| self.activity(*logger) == Activity::Gone) {
            result = result.and(self.start_logger(logger));
        }
        result
    }

    /// Empties the disk of a node that does not run.
    pub fn wipe(&self, node: usize) -> Result<()> {
        let running = self.activity(node) != Activity::Gone;
        ensure!(!running, "node{} runs: its disk is not wiped", node + 1);
        self.members[node].wipe(&self.account)
    }

    /// Gives the node's server only this share of one processor; none: what it wants.
    pub fn starve(&self, node: usize, share: Option<f64>) -> Result<()> {
        self.members[node].seat.with_server(|server| server.starve(share))
    }

    /// Whether a plan may have clocks on this machine.
    pub fn clocks_can_be_set() -> bool {
        clock::library().is_ok()
    }

    /// Sets the wall clock of the node's server this many seconds before (negative) or after the
    /// machine's; it notices within a second. Only where the plan has clocks.
    pub fn set_clock(&self, node: usize, offset_seconds: i64) -> Result<()> {
        let Some(clocks) = &self.clocks else {
            bail!("the clocks of this cluster cannot be set: its plan has no clocks");
        };
        clocks.set(&self.members[node].seat.node, offset_seconds)
    }

    /// The node's error log, which is not on its disk.
    pub fn error_log(&self, node: usize) -> PathBuf {
        self.members[node].seat.node.error_log()
    }

    /// Copies configuration, error logs and what is left of the logs of state transfers of all nodes to
    /// `folder`.
    pub fn save_logs(&self, folder: &Path) -> Result<()> {
        for member in &self.members {
            let node = &member.seat.node;
            let own = folder.join(&node.name);
            fs::create_dir_all(&own).with_context(|| format!("making {}", own.display()))?;
            let mut files =
                vec![(node.config(), "my.cnf".into()), (node.error_log(), "error.log".into())];
            // The script's last one, and what it has put aside: it says what a donor failed for.
            let transfers = [node.data(), node.dir.join("transfer-logs")];
            for path in transfers.iter().flat_map(|folder| files_in(folder)) {
                let name = path.file_name().unwrap_or_default().to_os_string();
                if name.to_string_lossy().starts_with("mariabackup.") {
                    files.push((path, name));
                }
            }
            // Loggers have no configuration.
            for (from, name) in files.into_iter().filter(|(from, _)| from.exists()) {
                fs::copy(&from, own.join(name))
                    .with_context(|| format!("copying {}", from.display()))?;
            }
        }
        Ok(())
    }

    fn launch(&self, node: usize, start: &Start) -> Result<()> {
        let member = &self.members[node];
        self.clocks.as_ref().map_or(Ok(()), Clocks::sweep)?;
        member.start(&self.mariadbd, &self.account, start, |command| {
            if let Some(clocks) = &self.clocks {
                clocks.follow(command, &member.seat.node);
            }
        })
    }

    fn start_logger(&self, logger: usize) -> Result<()> {
        let (program, group) = (&self.plan.logger_program, self.group_addresses());
        let secret = server::make_secret(self.folder.path(), &self.account)?;
        let security = server::security(&self.plan.provider_options, Some(&secret))?;
        self.members[logger].start_logger(program, &self.account, &group, &security)
    }

    fn beginning(&self, node: usize) -> Result<Start> {
        let group = self.group.lock().clone();
        Start::of(&self.members[node].seat.node, &self.account, &self.mariadbd, group.as_deref())
    }
}

/// None of a folder that is not there, or cannot be read.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // All at once; who waits for a frozen disk ends when the disk is without power.
        for member in &self.members {
            if let Err(error) = member.seat.kill() {
                eprintln!("{error:#}");
            }
            member.disk.power_off();
        }
    }
}
