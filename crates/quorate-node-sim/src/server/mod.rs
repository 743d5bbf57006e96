//! A model of the server: one start of it, with its sessions and appliers, around the node's real code.

mod callbacks;
mod life;
mod work;

use crate::baton::{installed, Process};
use crate::engine::{Disk, Engine};
use crate::group::Network;
use crate::oracle::{Oracle, Tag};
use crate::plant::Plant;
use crate::session::Client;
use parking_lot::Mutex as Plain;
use simulated_node::blocking::{Condvar, Mutex};
use simulated_node::node::{LocalState, Node};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// Contexts from here on are those of sessions that replay.
pub const REPLAYERS: usize = 1 << 20;

/// What is asked of all servers of a world.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub clients: u64,
    pub appliers: u64,
    pub rows: u8,
    pub think_ms: u64,
    pub statement_ms: u64,
    pub queue_bytes: u64,
    pub window: u32,
}

pub struct Server {
    pub number: usize,
    pub incarnation: u32,
    pub process: Process,
    pub engine: Engine,
    pub oracle: Arc<Oracle>,
    pub load: Load,
    pub plant: Option<Plant>,
    node: Plain<Option<Arc<Node>>>,
    clients: Plain<BTreeMap<u64, Arc<Client>>>,
    trx: AtomicU64,
    replaying: Mutex<u32>,
    replayed: Condvar,
    stopping: AtomicBool,
    non_primary: AtomicBool,
    /// Threads that have to end before the server may.
    threads: Mutex<u64>,
    ended: Condvar,
}

/// Where a server starts.
pub struct Place {
    pub number: usize,
    pub incarnation: u32,
    pub disk: Arc<Plain<Disk>>,
    pub data_dir: PathBuf,
}

impl Server {
    /// Starts a server's process: the node on the position that the database recovered, its sequencer,
    /// appliers and sessions.
    pub fn start(
        place: Place,
        network: &Arc<Network>,
        oracle: &Arc<Oracle>,
        load: Load,
        plant: Option<Plant>,
    ) -> Arc<Self> {
        let Place { number, incarnation, disk, data_dir } = place;
        let process = installed().new_process();
        let server = Arc::new(Self {
            number,
            incarnation,
            process,
            engine: Engine::open(number, disk, data_dir.clone(), oracle.clone()),
            oracle: oracle.clone(),
            load,
            plant,
            node: Plain::new(None),
            clients: Plain::default(),
            trx: AtomicU64::new(1),
            replaying: Mutex::new(0),
            replayed: Condvar::new(),
            stopping: AtomicBool::new(false),
            non_primary: AtomicBool::new(false),
            threads: Mutex::new(load.clients + load.appliers),
            ended: Condvar::new(),
        });
        let (own, network) = (server.clone(), network.clone());
        let name = format!("n{number}.main");
        installed().start(process, &name, move || own.boot(&network, data_dir));
        server
    }

    pub fn say(&self, line: impl FnOnce() -> String) {
        self.oracle.tell(|| format!("n{} {}", self.number, line()));
    }

    pub fn node(&self) -> Option<Arc<Node>> {
        self.node.lock().clone()
    }

    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// `wsrep_ready`: whether statements are taken.
    pub fn is_ready(&self) -> bool {
        let state = self.node().map(|node| node.local_state());
        matches!(state, Some(LocalState::Synced | LocalState::Donor))
            && !self.non_primary.load(Ordering::Acquire)
    }

    /// The server ends itself: the provider said that it cannot go on, which nothing here justifies.
    pub fn must_stop(&self, why: &str) {
        self.oracle.fail(format!("n{}: {why}", self.number));
    }

    /// Only a node that leaves the group for good may answer so.
    pub fn must_be_withdrawn(&self, what: &str) {
        if self.node().is_none_or(|node| node.local_state() != LocalState::Error) {
            self.oracle.fail(format!("n{}: {what}", self.number));
        }
    }

    pub fn tag(&self, client: u64, count: u64) -> Tag {
        (self.number as u64) << 56 | u64::from(self.incarnation) << 40 | client << 24 | count
    }

    pub fn new_client(&self) -> Arc<Client> {
        let client = Arc::new(Client::new(self.trx.fetch_add(1, Ordering::Relaxed)));
        self.clients.lock().insert(client.id, client.clone());
        client
    }

    pub fn forget_client(&self, id: u64) {
        self.clients.lock().remove(&id);
    }

    /// An ordered write set wants this session out of its way; 0: an operator's KILL.
    fn abort(&self, bf_seqno: i64, id: u64) {
        if self.plant == Some(Plant::NobodyAborts) && bf_seqno > 0 {
            return;
        }
        let client = self.clients.lock().get(&id).cloned();
        if let (Some(client), Some(node)) = (client, self.node()) {
            client.bf_abort(self, &node, bf_seqno);
        }
    }
}
