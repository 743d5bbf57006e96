//! A system as it runs: a server a host of the lab, data on the real disk.
//!
//! ```text
//! folder/node1/{my.cnf,error.log,mariadb.sock,data,log,tmp}   of /var/tmp, gone with the fleet
//! ```
//!
//! Clients connect through unix sockets, from outside: no delay of the lab lies between a client and the
//! member that it is beside. Members are counted from 0; member 0 is shown as `node1`.

mod backup;
mod faults;
mod setup;
mod wait;

use crate::system::{Ground, System};
use anyhow::{Context, Result};
use mysql::Conn;
use quorate_lab::cluster::Seat;
use quorate_lab::leftovers::Folder;
use quorate_lab::net::{Network, Topology};
use quorate_lab::process::{Activity, Syncs};
use quorate_lab::server::{self, sql, Account, Node, Ports};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// For what a client waits for, a long statement included.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Root, whom sockets authenticate in MariaDB, and who has no password in MySQL.
pub const USER: &str = "root";

/// Lives until it is dropped. All calls may be made from any thread. Fields are dropped in order: servers
/// before the hosts that they run on, those before the data.
pub struct Fleet {
    seats: Vec<Seat>,
    network: Network,
    system: Arc<dyn System>,
    topology: Topology,
    account: Account,
    /// Of all servers.
    syncs: Syncs,
    folder: Folder,
}

impl Fleet {
    /// Makes hosts and datadirs, starts all members and waits until they are up. Systems that cannot
    /// have so many members have as many as they can.
    pub fn start(system: Arc<dyn System>, topology: Topology, members: usize) -> Result<Fleet> {
        Fleet::start_with(system, topology, members, Syncs::Done)
    }

    /// The same with servers whose syncs are done, or not.
    pub fn start_with(
        system: Arc<dyn System>,
        topology: Topology,
        members: usize,
        syncs: Syncs,
    ) -> Result<Fleet> {
        system.check()?;
        let account = Account::choose()?;
        let folder = Folder::new()?;
        account.admit(folder.path(), 0o750)?;
        let members = system.members(members);
        let network = Network::new(members, topology)?;
        let seat = |index: usize| {
            let host = network.hosts()[index].address().into();
            let node = Node::new(folder.path(), index as u16 + 1, Ports::USUAL);
            Seat::new(Node { host, ..node }, index, &network)
        };
        let seats = (0..members).map(seat).collect();
        let fleet = Fleet { seats, network, system, topology, account, syncs, folder };
        fleet.install()?;
        fleet.system.form(&fleet).with_context(|| fleet.log_ends())?;
        let all: Vec<usize> = fleet.members().collect();
        fleet.wait_up(&all)?;
        Ok(fleet)
    }

    fn install(&self) -> Result<()> {
        for member in self.members() {
            let node = self.node(member);
            server::make_folders(node, &self.account)?;
            server::write_config(node, &self.account, "", &self.options(member)?, "")?;
        }
        let all: Vec<usize> = self.members().collect();
        self.make_datadirs(&all)
    }

    /// All that a member's server is given.
    fn options(&self, member: usize) -> Result<Vec<(String, String)>> {
        let nodes: Vec<Node> = self.seats.iter().map(|seat| seat.node.clone()).collect();
        let ground = Ground { nodes: &nodes, account: &self.account, folder: self.folder.path() };
        let own = self.system.options(&ground, member)?;
        Ok([server::common_options(self.node(member)), own].concat())
    }

    /// Gives members that do not run datadirs of equal content, without any of the system's data.
    pub(crate) fn make_datadirs(&self, members: &[usize]) -> Result<()> {
        let nodes: Vec<Node> = members.iter().map(|member| self.node(*member).clone()).collect();
        let template = self.folder.path().join("template");
        self.system.program().make_datadirs(&nodes, &template, &self.account)
    }

    pub fn members(&self) -> Range<usize> {
        0..self.seats.len()
    }

    pub fn system(&self) -> &dyn System {
        &*self.system
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    pub fn topology(&self) -> Topology {
        self.topology
    }

    pub fn node(&self, member: usize) -> &Node {
        &self.seats[member].node
    }

    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    pub fn socket(&self, member: usize) -> PathBuf {
        self.node(member).socket()
    }

    /// Connects as one who may do everything; each read and write is given up after two minutes.
    pub fn connect(&self, member: usize) -> Result<Conn> {
        self.connect_for(member, CLIENT_TIMEOUT)
            .with_context(|| format!("connecting to node{}", member + 1))
    }

    /// Each read and write is given up after `timeout`.
    pub fn connect_for(&self, member: usize, timeout: Duration) -> mysql::Result<Conn> {
        sql::connect(&self.socket(member), USER, timeout)
    }

    /// For one question to a member that may be gone, or stand still.
    pub(crate) fn try_connect(&self, member: usize) -> mysql::Result<Conn> {
        self.connect_for(member, sql::STATUS_TIMEOUT)
    }

    /// All members but this one.
    pub fn others(&self, than: usize) -> impl DoubleEndedIterator<Item = usize> {
        self.members().filter(move |member| *member != than)
    }

    /// The member to write to; an error if there is none now.
    pub fn primary(&self) -> Result<usize> {
        let claim = |member: usize| {
            let mut connection = self.try_connect(member).ok()?;
            let rank = self.system.primacy(&mut connection).ok()??;
            Some((rank, std::cmp::Reverse(member)))
        };
        let first = self.members().filter_map(claim).max();
        Ok(first.context("no member is the primary")?.1 .0)
    }

    /// How many transactions a member has applied, see [`System::applied`].
    pub fn applied(&self, member: usize) -> Result<u64> {
        self.system.applied(&mut self.try_connect(member)?)
    }

    pub fn activity(&self, member: usize) -> Activity {
        self.seats[member].activity()
    }

    /// The pid of the member's server, if it runs.
    pub fn pid(&self, member: usize) -> Option<i32> {
        self.seats[member].with_server(|server| Ok(server.pid())).ok()
    }

    /// Starts a member's server.
    pub(crate) fn launch(&self, member: usize, arguments: &[String]) -> Result<()> {
        let mut command = self.system.program().command()?;
        command.arg(format!("--defaults-file={}", self.node(member).config().display()));
        command.args(self.account.switch.then(|| format!("--user={}", self.account.name)));
        command.args(arguments);
        self.seats[member].run_with(command, &self.account, self.syncs)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // All at once: each takes a while to give its memory back.
        for seat in &self.seats {
            if let Err(error) = seat.kill() {
                eprintln!("{error:#}");
            }
        }
    }
}
