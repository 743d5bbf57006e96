//! A model of the server: one start of it, with its sessions and appliers, around the node's real code.

mod callbacks;
mod exit;
mod life;
mod streams;
mod work;

pub use self::streams::Streams;
use crate::baton::{installed, Process};
use crate::calls::Node;
use crate::engine::{Disk, Engine, Key, Owner};
use crate::group::Network;
use crate::oracle::{Mark, Oracle, Tag};
use crate::plant::Plant;
use crate::session::Client;
use crate::transfer::Wire;
use parking_lot::Mutex as Plain;
use quorate_certify::{Constants, Packing};
use simulated_node::blocking::simulated::Task;
use simulated_node::blocking::{Condvar, Mutex};
use simulated_node::flow::Limits;
use simulated_node::node::LocalState;
use simulated_node::settings::{Consistency, ExitPlan, PartSizes};
use std::collections::{BTreeMap, BTreeSet};
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
    /// How many of a thousand transactions send fragments.
    pub streams: u32,
    pub write_set_bytes_max: u64,
    pub parts: PartSizes,
    pub packing: Option<Packing>,
    pub consistency: Consistency,
    pub flow: Option<Limits>,
    /// What a server does that has no majority for long.
    pub exit: Option<ExitPlan>,
}

impl Load {
    /// Of the group.
    pub fn constants(&self) -> Constants {
        Constants { window: self.window, ..Constants::default() }
    }
}

pub struct Server {
    pub number: usize,
    pub incarnation: u32,
    pub process: Process,
    pub engine: Engine,
    pub oracle: Arc<Oracle>,
    pub load: Load,
    pub plant: Option<Plant>,
    pub network: Arc<Network>,
    pub wire: Arc<Wire>,
    pub disk: Arc<Plain<Disk>>,
    pub data_dir: PathBuf,
    /// Rows that cannot be written here any more; outlives the process.
    pub corrupt: Arc<Plain<BTreeSet<Key>>>,
    /// The server's backup lock.
    pub backup: Mutex<()>,
    pub streams: Streams,
    node: Plain<Option<Arc<Node>>>,
    clients: Plain<BTreeMap<u64, Arc<Client>>>,
    trx: AtomicU64,
    replaying: Mutex<u32>,
    replayed: Condvar,
    stopping: AtomicBool,
    non_primary: AtomicBool,
    shutting_down: AtomicBool,
    exited: AtomicBool,
    /// It met an error that others may not have.
    errs: AtomicBool,
    asked_to_stop: AtomicBool,
    /// Its operator has it give its connection up, in the midst of work.
    gives_up: AtomicBool,
    offline: AtomicBool,
    withdrawn: AtomicBool,
    read_only: AtomicBool,
    /// Sessions whose statement the node has refused, by thread.
    refusals: Plain<BTreeSet<Task>>,
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
    pub corrupt: Arc<Plain<BTreeSet<Key>>>,
    /// What the server recovers from the database and passes on, if its operator has it do so.
    pub recovered: Option<i64>,
    /// The group is founded on its database.
    pub founds: bool,
}

/// What all servers of a world share.
#[derive(Clone)]
pub struct Surroundings {
    pub network: Arc<Network>,
    pub wire: Arc<Wire>,
    pub oracle: Arc<Oracle>,
    pub load: Load,
    pub plant: Option<Plant>,
}

impl Server {
    /// Starts a server's process: the node where its start continues, its sequencer, appliers and
    /// sessions.
    pub fn start(place: Place, around: &Surroundings) -> Arc<Self> {
        let Surroundings { network, wire, oracle, load, plant } = around.clone();
        let Place { number, incarnation, disk, data_dir, corrupt, recovered, founds } = place;
        let process = installed().new_process();
        let server = Arc::new(Self {
            number,
            incarnation,
            process,
            engine: Engine::open(number, disk.clone(), data_dir.clone(), oracle.clone()),
            oracle,
            load,
            plant,
            network,
            wire,
            disk,
            data_dir,
            corrupt,
            backup: Mutex::new(()),
            streams: Streams::default(),
            node: Plain::new(None),
            clients: Plain::default(),
            trx: AtomicU64::new(1),
            replaying: Mutex::new(0),
            replayed: Condvar::new(),
            stopping: AtomicBool::new(false),
            non_primary: AtomicBool::new(false),
            shutting_down: AtomicBool::new(false),
            exited: AtomicBool::new(false),
            errs: AtomicBool::new(false),
            asked_to_stop: AtomicBool::new(false),
            gives_up: AtomicBool::new(false),
            offline: AtomicBool::new(false),
            withdrawn: AtomicBool::new(false),
            read_only: AtomicBool::new(false),
            refusals: Plain::default(),
            threads: Mutex::new(load.clients + load.appliers),
            ended: Condvar::new(),
        });
        let own = server.clone();
        let name = format!("n{number}.main");
        installed().start(process, &name, move || own.boot(recovered, founds));
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

    /// The server ends itself, as it does when it cannot have the state that it needs.
    pub fn exits(&self, why: &str) {
        self.say(|| format!("exits: {why}"));
        self.oracle.mark(Mark::ExitsByItself);
        self.exited.store(true, Ordering::Release);
    }

    pub fn has_exited(&self) -> bool {
        self.exited.load(Ordering::Acquire)
    }

    pub fn is_withdrawn(&self) -> bool {
        self.node().is_some_and(|node| node.local_state() == LocalState::Error)
    }

    /// It has the group's data, and can give it to others.
    pub fn is_dependable(&self) -> bool {
        self.node().is_some_and(|node| node.local_state() == LocalState::Synced)
            && self.network.is_in_reach(self.number)
            && self.corrupt.lock().is_empty()
    }

    pub fn errs(&self) -> bool {
        self.errs.load(Ordering::Acquire)
    }

    /// An error that others may not have. It may be cut off before it has asked them.
    pub fn has_error(&self) {
        self.oracle.mark(Mark::ErrorOfOne);
        self.errs.store(true, Ordering::Release);
        if installed().random(|rng| rng.chance(300)) {
            self.oracle.mark(Mark::CutBeforeVote);
            self.network.cut(self.number, true);
        }
    }

    /// Whether something was done to this server that its node may find it cannot go on with.
    pub fn is_harmed(&self) -> bool {
        self.network.was_left_behind(self.number) || self.errs()
    }

    /// Only a node that leaves the group for good may answer so.
    pub fn must_be_withdrawn(&self, what: &str) {
        let is_withdrawn = |node: &Node| {
            node.local_state() == LocalState::Error || node.link().is_none_or(|link| link.closed())
        };
        if !self.node().is_some_and(|node| is_withdrawn(&node)) {
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

    /// An ordered write set wants this out of its way; 0: an operator's KILL. DDL does so
    /// `in_total_order`.
    fn abort(&self, bf_seqno: i64, holder: Owner, in_total_order: bool) {
        if self.plant == Some(Plant::NobodyAborts) && bf_seqno > 0 {
            return;
        }
        match holder {
            Owner::Local(id) => self.abort_session(bf_seqno, id, in_total_order),
            Owner::Stream(stream) => self.abort_stream(bf_seqno, stream, in_total_order),
            Owner::Ordered(_) => {}
        }
    }

    fn abort_session(&self, bf_seqno: i64, id: u64, in_total_order: bool) {
        let client = self.clients.lock().get(&id).cloned();
        if let (Some(client), Some(node)) = (client, self.node()) {
            client.bf_abort(self, &node, bf_seqno, in_total_order);
        }
    }
}
