//! How a server starts, and how it ends.

use super::callbacks::Callbacks;
use super::Server;
use crate::baton::installed;
use crate::calls;
use crate::group::{id_of, Member, Network, HISTORY};
use crate::oracle::Mark;
use crate::session;
use quorate_consensus::Charter;
use quorate_live::Observer as _;
use simulated_node::applier::ApplierEnd;
use simulated_node::blocking::now;
use simulated_node::host::HostCtx;
use simulated_node::node::NodeObserver;
use simulated_node::node::{LocalState, Node, NodeConfig};
use simulated_node::settings::{Settings, Words};
use simulated_node::start::genesis::Genesis;
use simulated_node::start::resume::{resume, Owner, Start};
use simulated_node::start::{Position, UnusableNote};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// No operator reads what the node says here.
const WORDS: Words = Words {
    start_position: "the start position",
    recover: "the recovery",
    options: "the options",
    found: "the founding",
    reconnect: "a reconnection",
    primary_shown: "the model",
    transfer_method: "the transfer method",
    transfer_methods: "any",
    gtid_domain: "the domain of GTIDs",
};

impl Server {
    pub(super) fn boot(self: Arc<Self>, recovered: Option<i64>, founds: bool) {
        let settings = Settings {
            log_dir: self.data_dir.to_string_lossy().into_owned(),
            queue_bytes: self.load.queue_bytes as usize,
            write_set_bytes_max: self.load.write_set_bytes_max,
            parts: self.load.parts,
            packing: self.load.packing,
            exit: self.load.exit,
            consistency: self.load.consistency,
            consistency_timeout: Duration::from_secs(1),
            flow: self.load.flow,
            ..Settings::default()
        };
        let config = NodeConfig {
            name: format!("n{}", self.number),
            address: String::new(),
            incoming: format!("n{}:3306", self.number),
            data_dir: self.data_dir.clone(),
            proto_ver: 4,
            start: recovered.map(|seqno| Position { uuid: HISTORY, seqno }),
            words: WORDS,
        };
        let node = Arc::new(Node::new(Box::new(Callbacks(self.clone())), config, settings));
        *self.node.lock() = Some(calls::Node::new(node.clone(), self.oracle.clone()));
        if let Err(why) = self.connect(&node, founds) {
            return self.oracle.fail(format!("n{}: {why}", self.number));
        }
        for applier in 0..self.load.appliers {
            let server = self.clone();
            let name = format!("n{}.applier{applier}", self.number);
            installed().start(self.process, &name, move || server.apply_loop(applier));
        }
        for number in 0..self.load.clients {
            let server = self.clone();
            let name = format!("n{}.client{number}", self.number);
            installed().start(self.process, &name, move || {
                session::run(&server, number);
                server.thread_ends();
            });
        }
    }

    /// As the provider connects: where the start continues follows from the database and the log.
    fn connect(&self, node: &Arc<Node>, founded: bool) -> Result<(), String> {
        let constants = self.load.constants();
        let genesis = Genesis::of_group(HISTORY, &constants);
        let unusable = |note: UnusableNote| note.to_string();
        let database = node.database().map_err(unusable)?;
        let identity = (self.number, self.incarnation);
        let blank = database.saved.is_none() && database.recovered.is_none();
        let observer = Arc::new(NodeObserver::new(node));
        let member = Member::open(self.network.clone(), identity, self.process, blank, &self.disk);
        let fresh = member.is_fresh();
        if fresh && !founded {
            observer.may_join(HISTORY, Charter(constants.words()))?;
        }
        let owner = Owner { group: HISTORY, genesis, fresh, founded };
        let beginnings = member.beginnings();
        let start = resume(&database, &owner, &beginnings);
        self.oracle.answered(("resume", calls::name_of(&start)));
        self.say(|| format!("starts as {:x}: {start:?} of {beginnings:?}", member.uuid()));
        let (seqno, snapshot) = match start {
            Start::Continue { seqno, snapshot } => {
                self.oracle.mark(Mark::StartContinues);
                (Some(seqno), snapshot)
            }
            Start::Fetch { snapshot } => {
                self.oracle.mark(Mark::StartFetches);
                (None, snapshot)
            }
            Start::Refuse(sentence) => return Err(sentence),
        };
        node.prefer_donors("");
        let member_id = (id_of(self.number), self.incarnation);
        let machine = node
            .attach(member.clone(), member_id, genesis, seqno, constants.limits())
            .map_err(unusable)?;
        member.start(Box::new(machine), snapshot, observer)
    }

    fn apply_loop(&self, applier: u64) {
        let Some(node) = self.node() else { return };
        let end = node.run_applier(HostCtx(applier as usize));
        self.say(|| format!("applier {applier} ends: {end:?}"));
        match end {
            ApplierEnd::Done => {}
            _ if node.local_state() == LocalState::Joiner => self.exits("it has no state"),
            _ if self.is_harmed() => self.exits("its log was replaced"),
            _ => self.must_stop(&format!("an applier ended as {end:?}")),
        }
        self.thread_ends();
    }

    /// Starts a thread that has to end before the server may.
    pub fn start_thread(self: &Arc<Self>, name: &str, body: impl FnOnce() + Send + 'static) {
        *self.threads.lock() += 1;
        let server = self.clone();
        installed().start(self.process, name, move || {
            body();
            server.thread_ends();
        });
    }

    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Acquire)
    }

    fn thread_ends(&self) {
        *self.threads.lock() -= 1;
        self.ended.notify_all();
    }

    /// The process is gone: nothing may hold the node any more.
    pub fn forget(&self) {
        let node = self.node.lock().take();
        if let Some(node) = node {
            node.abandon_connection();
        }
    }

    /// No new transactions from here on.
    pub fn stop_sessions(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// All sessions have ended, and everything in the log is here.
    pub fn is_at_rest(&self, network: &Network) -> bool {
        let Some(node) = self.node() else { return false };
        let Some(link) = node.link() else { return false };
        let heard = link.progress.index() as usize == network.len();
        let applied = node.last_applied() == link.progress.seqno();
        *self.threads.lock() <= self.load.appliers
            && heard
            && applied
            && self.is_read_only() == self.network.is_secondary(self.number)
            && node.local_state() == LocalState::Synced
    }

    /// A clean stop: sessions are killed, the connection is closed, and everything ends by itself.
    pub fn stop(&self) {
        let Some(node) = self.node() else { return };
        self.stopping.store(true, Ordering::Release);
        let ids: Vec<u64> = self.clients.lock().keys().copied().collect();
        ids.into_iter().for_each(|id| self.abort_session(0, id, false));
        self.shutting_down.store(true, Ordering::Release);
        self.wire.wake();
        node.disconnect();
        let deadline = now() + STOP_PATIENCE;
        let mut threads = self.threads.lock();
        while *threads > 0 {
            if self.ended.wait_until(&mut threads, deadline).timed_out() {
                let waiting = installed().waiting().join("; ");
                self.oracle.fail(format!("n{} does not stop: {waiting}", self.number));
                return;
            }
        }
        drop(threads);
        node.free();
    }
}
