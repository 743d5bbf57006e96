//! A model of the server: one start of it, with its sessions and appliers, around the node's real code.

use crate::baton::{installed, Process};
use crate::engine::{decode, Disk, Engine, Owner, Writes};
use crate::group::{id_of, Member, Network, HISTORY};
use crate::oracle::{Mark, Oracle, Tag};
use crate::plant::Plant;
use crate::session::{self, Client};
use parking_lot::Mutex as Plain;
use quorate_certify::{flags, Constants};
use simulated_node::applier::RecvEnd;
use simulated_node::blocking::{now, Condvar, Mutex};
use simulated_node::connection::observer::NodeObserver;
use simulated_node::host::{Answer, Level, ViewStatus};
use simulated_node::host::{ApplyCall, Host, HostCtx, HostView};
use simulated_node::node::{LocalState, Node, NodeConfig};
use simulated_node::settings::{Settings, Words};
use simulated_node::start::genesis::Genesis;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Contexts from here on are those of sessions that replay.
pub const REPLAYERS: usize = 1 << 20;
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

    fn boot(self: Arc<Self>, network: &Arc<Network>, data_dir: PathBuf) {
        let settings =
            Settings { queue_bytes: self.load.queue_bytes as usize, ..Settings::default() };
        let config = NodeConfig {
            name: format!("n{}", self.number),
            address: String::new(),
            incoming: format!("n{}:3306", self.number),
            data_dir,
            proto_ver: 4,
            start: None,
            words: WORDS,
        };
        let node = Arc::new(Node::new(Box::new(Callbacks(self.clone())), config, settings));
        *self.node.lock() = Some(node.clone());
        let position = self.engine.position() - i64::from(self.tells_too_little());
        let member = Member::open(network.clone(), self.number, self.incarnation, self.process);
        self.say(|| format!("starts at {position} as {:x}", member.uuid()));
        let constants = Constants { window: self.load.window, ..Default::default() };
        let genesis = Genesis::of_group(HISTORY, &constants);
        let limits = constants.limits();
        let identity = (id_of(self.number), self.incarnation);
        let machine = node.attach(member.clone(), identity, genesis, Some(position), limits);
        let observer = Arc::new(NodeObserver::new(&node));
        if let Err(why) =
            member.start(Box::new(machine), network.snapshot(Some(position)), observer)
        {
            return self.oracle.fail(why);
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

    fn tells_too_little(&self) -> bool {
        self.plant == Some(Plant::AppliedTwice) && self.engine.position() > 1
    }

    fn apply_loop(&self, applier: u64) {
        let Some(node) = self.node() else { return };
        let end = node.recv(HostCtx(applier as usize));
        self.say(|| format!("applier {applier} ends: {end:?}"));
        if end != RecvEnd::Done {
            self.must_stop(&format!("an applier ended as {end:?}"));
        }
        self.thread_ends();
    }

    fn thread_ends(&self) {
        *self.threads.lock() -= 1;
        self.ended.notify_all();
    }

    pub fn say(&self, line: impl FnOnce() -> String) {
        self.oracle.tell(|| format!("n{} {}", self.number, line()));
    }

    pub fn node(&self) -> Option<Arc<Node>> {
        self.node.lock().clone()
    }

    /// The process is gone: nothing may hold the node any more.
    pub fn forget(&self) {
        let node = self.node.lock().take();
        if let Some(node) = node {
            node.set_link(None);
        }
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

    /// Runs DDL in its turn; its error, if it gives one (the same on all servers). Transactions that
    /// use the table are aborted.
    pub fn run_ddl(&self, seqno: i64, tag: Tag) -> &'static str {
        for key in 0..self.load.rows {
            self.engine.lock_ordered(seqno, key, |id| self.abort(seqno, id));
        }
        if tag % 4 == 0 {
            self.oracle.mark(Mark::DdlFails);
            return "there is no such column";
        }
        self.oracle.mark(Mark::Ddl);
        if let Err(error) = self.engine.execute(seqno, tag, self.load.rows) {
            self.oracle.fail(error.to_string());
        }
        ""
    }

    pub fn kill_somebody(&self) {
        let ids: Vec<u64> = self.clients.lock().keys().copied().collect();
        if !ids.is_empty() {
            self.oracle.mark(Mark::Killed);
            let id = installed().random(|rng| ids[rng.index(ids.len())]);
            self.abort(0, id);
        }
    }

    /// As long as the session is not aborted itself.
    pub fn wait_for_replayers(&self, aborted: impl Fn() -> bool) {
        let mut replaying = self.replaying.lock();
        while *replaying > 0 && !aborted() {
            self.replayed.wait(&mut replaying);
        }
    }

    /// Whoever waits in this server looks again whether it still should.
    pub fn wake_waiting(&self) {
        self.engine.wake();
        self.replayed.notify_all();
    }

    pub fn begins_to_replay(&self) {
        *self.replaying.lock() += 1;
    }

    pub fn has_replayed(&self) {
        *self.replaying.lock() -= 1;
        self.replayed.notify_all();
    }

    pub fn causal_read(&self, node: &Node) {
        let before = self.oracle.last_acknowledged();
        if node.sync_wait(None, 2) == Answer::Done {
            self.oracle.mark(Mark::CausalRead);
            let rows = self.engine.rows();
            self.oracle.check_read(self.number, before, &rows);
        }
    }

    /// `FLUSH TABLES WITH READ LOCK`, as a backup takes it.
    pub fn pause_for_a_while(&self, node: &Node) {
        self.oracle.mark(Mark::Desynced);
        node.desync();
        self.oracle.mark(Mark::Paused);
        let at = node.pause();
        if at < 0 {
            self.must_be_withdrawn("a pause failed");
            return node.resync();
        }
        let before = self.engine.position();
        let time = installed().random(|rng| rng.millis(1, 200));
        installed().sleep(time);
        let after = self.engine.position();
        if before != at || after != at {
            self.oracle.fail(format!(
                "n{} was paused at {at}, and its position went from {before} to {after}",
                self.number
            ));
        }
        node.resume();
        node.resync();
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
        let applied = node.apply.last_left() == link.progress.seqno();
        *self.threads.lock() <= self.load.appliers
            && heard
            && applied
            && node.local_state() == LocalState::Synced
    }

    /// A clean stop: sessions are killed, the connection is closed, and everything ends by itself.
    pub fn stop(&self) {
        let Some(node) = self.node() else { return };
        self.stopping.store(true, Ordering::Release);
        let ids: Vec<u64> = self.clients.lock().keys().copied().collect();
        ids.into_iter().for_each(|id| self.abort(0, id));
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

/// The server, as the node sees it.
struct Callbacks(Arc<Server>);

impl Callbacks {
    fn enter(&self, call: &ApplyCall<'_>) -> Option<Arc<Node>> {
        let node = self.0.node()?;
        let code = node.commit_order_enter(call.handle);
        if code != Answer::Done {
            self.0.must_be_withdrawn(&format!("commit_order_enter of an applier answers {code:?}"));
            return None;
        }
        Some(node)
    }

    fn leave(&self, node: &Node, call: &ApplyCall<'_>) {
        let code = node.commit_order_leave(call.handle, &[]);
        if code != Answer::Done {
            self.0.must_be_withdrawn(&format!("commit_order_leave of an applier answers {code:?}"));
        }
    }

    fn apply_rows(&self, call: &ApplyCall<'_>, writes: &Writes) -> Result<(), ()> {
        let server = &self.0;
        let seqno = call.meta.seqno;
        for write in writes {
            server.engine.lock_ordered(seqno, write.key, |id| server.abort(seqno, id));
        }
        let node = self.enter(call).ok_or(())?;
        server.engine.commit(seqno, writes);
        self.leave(&node, call);
        server.engine.unlock(Owner::Ordered(seqno));
        Ok(())
    }
}

impl Callbacks {
    fn apply_ddl(&self, call: &ApplyCall<'_>) -> Result<(), ()> {
        let server = &self.0;
        let seqno = call.meta.seqno;
        let tag = Tag::from_le_bytes(call.data.try_into().map_err(|_| ())?);
        let node = self.enter(call).ok_or(())?;
        let error = server.run_ddl(seqno, tag);
        server.engine.commit(seqno, &Writes::new());
        let code = node.commit_order_leave(call.handle, error.as_bytes());
        server.engine.unlock(Owner::Ordered(seqno));
        if code == Answer::Done {
            return Ok(());
        }
        // It could not ask the others before it had to stop.
        if !server.stopping() {
            server.oracle.fail(format!("a node is outvoted with the error of all, at {seqno}"));
        }
        Err(())
    }
}

impl Host for Callbacks {
    fn log(&self, level: Level, message: &str) {
        // A server that is stopped while others are away may have to say that it could not ask them.
        if level == Level::Error && !self.0.stopping() {
            self.0.oracle.fail(format!("n{} logs an error: {message}", self.0.number));
        }
        self.0.say(|| format!("log: {message}"));
    }

    fn connected(&self, view: &HostView) -> Result<(), ()> {
        self.0.oracle.mark(Mark::Connected);
        if view.my_index < 0 {
            self.0.oracle.fail("the server is connected by a view without itself");
        }
        Ok(())
    }

    fn view(&self, _ctx: HostCtx, view: &HostView) -> Result<(), ()> {
        let server = &self.0;
        server.say(|| {
            let members: Vec<&str> = view.members.iter().map(|m| m.name.as_str()).collect();
            format!("view at {}, status {:?}: {members:?}", view.seqno, view.status)
        });
        match view.status {
            ViewStatus::Primary => {
                server.oracle.mark(Mark::ViewSeen);
                server.non_primary.store(false, Ordering::Release);
                if view.seqno > server.engine.position() {
                    server.engine.commit(view.seqno, &Writes::new());
                }
            }
            ViewStatus::NonPrimary => {
                server.oracle.mark(Mark::NonPrimarySeen);
                server.non_primary.store(true, Ordering::Release);
            }
            _ => {}
        }
        Ok(())
    }

    fn sst_request(&self) -> Result<Vec<u8>, ()> {
        self.0.oracle.fail("a state transfer is asked for, which no start here needs");
        Err(())
    }

    fn donate(&self, _: HostCtx, _: &[u8], _: [u8; 16], _: i64, _: bool) -> Result<(), ()> {
        Err(())
    }

    fn synced(&self) -> Result<(), ()> {
        self.0.oracle.mark(Mark::Synced);
        Ok(())
    }

    fn apply(&self, ctx: HostCtx, call: &ApplyCall<'_>) -> Result<bool, ()> {
        let server = &self.0;
        let seqno = call.meta.seqno;
        server.say(|| {
            let who = if ctx.0 >= REPLAYERS { "a session replays" } else { "applies" };
            format!("{who} {seqno}, flags {:x}, depends on {}", call.flags, call.meta.depends_on)
        });
        if call.flags & flags::ISOLATION != 0 {
            return self.apply_ddl(call).map(|()| false);
        }
        if call.flags & flags::ROLLBACK != 0 {
            server.oracle.mark(Mark::Dummy);
            let node = self.enter(call).ok_or(())?;
            server.engine.commit(seqno, &Writes::new());
            self.leave(&node, call);
            return Ok(false);
        }
        server.oracle.mark(Mark::Applied);
        let writes = decode(call.data).ok_or(())?;
        self.apply_rows(call, &writes)?;
        Ok(false)
    }
}
