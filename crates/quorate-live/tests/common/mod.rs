//! Real members in one process, on loopback, with real directories.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod authority;
mod machine;

pub use self::machine::Shared;
use self::machine::{Ear, Machine};

use bytes::Bytes;
use parking_lot::RwLock;
use quorate_consensus::{Index, MemberId};
use quorate_live::{
    Author, Group, GroupError, GroupOptions, GroupStatus, OpenInfo, Operator, OrderError, Security,
    View,
};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A process that is being forked has all that is open, for a moment: a log directory that is let go of
/// meanwhile stays in use.
static FORKS: RwLock<()> = RwLock::new(());

pub const PATIENCE: Duration = Duration::from_secs(30);

/// Gives an order of switchover, and gives it again while nobody takes over in time: the machine is busy.
pub fn in_time<T: Debug>(order: impl Fn() -> T) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = order();
        let is_late = format!("{answer:?}").contains("did not take over in time");
        if !is_late || Instant::now() >= deadline {
            return answer;
        }
    }
}

/// Below the ports that the kernel hands out for outgoing connections, and given out once only: a
/// node that is down keeps its address.
fn free_address() -> String {
    const PORTS: std::ops::Range<u64> = 10_000..19_000;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let size = PORTS.end - PORTS.start;
    let first = u64::from(std::process::id()) * 61;
    (0..size)
        .map(|_| PORTS.start + (first + NEXT.fetch_add(1, Ordering::SeqCst)) % size)
        .map(|port| format!("127.0.0.1:{port}"))
        .find(|addr| TcpListener::bind(addr).is_ok())
        .expect("a free port")
}

/// One node: its directory and address outlive its members.
pub struct Node {
    pub options: GroupOptions,
    pub group: Option<Arc<Group>>,
    pub shared: Arc<Shared>,
    pub info: Option<OpenInfo>,
    /// Up to which index its database has everything, as its next start is to find it.
    pub database: Index,
    serial: AtomicU64,
}

pub struct Cluster {
    pub nodes: Vec<Node>,
    root: PathBuf,
}

impl Cluster {
    /// `count` nodes; nothing runs yet. Their folder is their own, whoever has the same name.
    pub fn new(name: &str, count: usize) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = format!("quorate-{name}-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(folder);
        let _absent = std::fs::remove_dir_all(&root);
        let addrs: Vec<_> = (0..count).map(|_| free_address()).collect();
        let node = |at: usize| {
            let mut options = GroupOptions::new(root.join(format!("n{at}")), name, &addrs[at]);
            options.seeds = addrs.clone();
            options.bootstrap = at == 0;
            options.name = format!("n{at}");
            options.incoming = format!("client{at}");
            options.election_timeout = Duration::from_millis(500);
            options.primary_timeout = Duration::from_millis(1000);
            options.suspect_timeout = Duration::from_millis(1500);
            options.segment_bytes = 1 << 20;
            options.retain_bytes = 1 << 20;
            options.proposal_bytes_max = 64 << 20;
            Node {
                options,
                group: None,
                shared: Arc::default(),
                info: None,
                database: 0,
                serial: AtomicU64::new(0),
            }
        };
        Self { nodes: (0..count).map(node).collect(), root }
    }

    /// Nodes that form a group, all in the view.
    pub fn started(name: &str, count: usize) -> Self {
        let mut cluster = Self::new(name, count);
        for at in 0..count {
            cluster.nodes[at].start().unwrap();
            cluster.nodes[at].joined();
        }
        let all: Vec<_> = (0..count).collect();
        cluster.await_members(&all);
        cluster
    }

    /// One by one, each in its own security, until all are members.
    pub fn secured(name: &str, count: usize, security: impl Fn(usize) -> Security) -> Self {
        let mut cluster = Self::new(name, count);
        for (at, node) in cluster.nodes.iter_mut().enumerate() {
            node.options.security = security(at);
            node.start().unwrap();
            node.joined();
        }
        cluster.await_members(&(0..count).collect::<Vec<_>>());
        cluster
    }

    /// All have what was proposed; then each is killed and comes back, and they go on.
    pub fn works_and_returns(&mut self) {
        let mut proposals: Vec<_> = self.nodes.iter().map(Node::propose).collect();
        proposals.push(self.nodes[1].propose_padded(20 << 20));
        self.await_applied(&proposals);
        let all: Vec<usize> = (0..self.nodes.len()).collect();
        for at in &all {
            self.nodes[*at].kill();
            self.nodes[*at].start().unwrap();
            self.await_members(&all);
            proposals.push(self.nodes[*at].propose());
            self.await_applied(&proposals);
        }
    }

    /// Waits until each of these shows a view of exactly them (but for loggers, which are in no
    /// view), and all are voters, with no change under way.
    pub fn await_members(&self, nodes: &[usize]) {
        let ids: BTreeSet<_> = nodes.iter().map(|at| self.nodes[*at].id()).collect();
        for at in nodes {
            self.nodes[*at].wait("view and voters", |node| {
                let status = node.status();
                let voters = status.voters.into_iter().collect::<BTreeSet<_>>();
                let loggers = status.loggers.into_iter().collect::<BTreeSet<_>>();
                let shown = node.view().members.iter().map(|m| m.id).collect::<BTreeSet<_>>();
                let settled = !status.config.is_joint();
                voters == ids && settled && shown == &ids - &loggers
            });
        }
        // A node that was away may show the same members by a view from before.
        let newest = nodes.iter().map(|at| self.nodes[*at].view().number).max();
        for at in nodes {
            self.nodes[*at].wait("newest view", |node| Some(node.view().number) >= newest);
        }
    }

    pub fn leader(&self) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for (at, node) in self.nodes.iter().enumerate() {
                if node.group.is_some() && node.status().is_leader {
                    return at;
                }
            }
            assert!(Instant::now() < deadline, "no leader");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn follower(&self) -> usize {
        let leader = self.leader();
        (0..self.nodes.len()).find(|at| *at != leader && self.nodes[*at].group.is_some()).unwrap()
    }

    /// Waits until all running nodes have applied all of these, and compares their orders.
    pub fn await_applied(&self, proposals: &[String]) {
        let running: Vec<_> = self.nodes.iter().filter(|node| node.group.is_some()).collect();
        for node in &running {
            node.await_applied(proposals);
        }
        let last = running.iter().map(|node| node.shared.state.lock().last).max().unwrap();
        for node in &running {
            node.wait("the last index", |node| node.shared.state.lock().last >= last);
        }
        let first = running[0].shared.state.lock().applied.clone();
        for node in &running[1..] {
            let other = node.shared.state.lock().applied.clone();
            let common = first.len().min(other.len());
            assert_eq!(first[..common], other[..common]);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            node.kill();
        }
        let _left = std::fs::remove_dir_all(&self.root);
    }
}

impl Node {
    pub fn start(&mut self) -> Result<(), GroupError> {
        self.start_with(&mut |_, _| true)
    }

    pub fn start_with(
        &mut self,
        accept: &mut dyn FnMut(Index, &Bytes) -> bool,
    ) -> Result<(), GroupError> {
        self.shared = Arc::default();
        self.shared.database.store(self.database, Ordering::SeqCst);
        let ear = Arc::new(Ear(self.shared.clone()));
        let (group, info) = Group::open(self.options.clone(), ear)?;
        let group = Arc::new(group);
        *self.shared.own.lock() = format!("{}/{}/", self.options.name, info.incarnation);
        *self.shared.group.lock() = Some(group.clone());
        self.serial.store(0, Ordering::SeqCst);
        self.info = Some(info);
        self.group = Some(group.clone());
        group.start(Box::new(Machine(self.shared.clone())), accept)?;
        Ok(())
    }

    pub fn joined(&self) {
        self.group().wait_joined(PATIENCE).unwrap();
    }

    /// Ends without taking leave.
    pub fn cannot_join(&self) {
        let refused = self.group().wait_joined(Duration::from_secs(2));
        assert!(
            matches!(refused, Err(GroupError::Order(OrderError::NotJoined { .. }))),
            "{refused:?}"
        );
    }

    /// In another security from now on.
    pub fn restart_in(&mut self, security: Security) {
        self.kill();
        self.options.security = security;
        self.start().unwrap();
    }

    pub fn kill(&mut self) {
        let _no_fork = FORKS.read();
        if let Some(group) = self.group.take() {
            group.close();
            self.shared.group.lock().take();
        }
    }

    pub fn wipe(&mut self) {
        self.kill();
        std::fs::remove_dir_all(&self.options.dir).unwrap();
    }

    pub fn group(&self) -> &Arc<Group> {
        self.group.as_ref().expect("the node runs")
    }

    /// Somebody who may give orders here.
    pub fn operator(&self) -> Operator<'_> {
        let author = Author { name: "tester".into(), from: "socket".into() };
        self.group().operator(author)
    }

    pub fn id(&self) -> MemberId {
        self.info.as_ref().unwrap().member
    }

    pub fn status(&self) -> GroupStatus {
        self.group().status()
    }

    pub fn view(&self) -> View {
        let state = self.shared.state.lock();
        state.views.last().map(|(_, view)| view.clone()).unwrap_or_default()
    }

    /// Proposes one; gives back what will be applied.
    pub fn propose(&self) -> String {
        self.propose_padded(0)
    }

    pub fn propose_padded(&self, bytes: usize) -> String {
        let serial = self.serial.fetch_add(1, Ordering::SeqCst) + 1;
        let incarnation = self.info.as_ref().unwrap().incarnation;
        let text = format!("{}/{incarnation}/{serial}", self.options.name);
        let mut data = text.clone().into_bytes();
        data.resize(data.len().max(bytes), b'.');
        self.group().propose(serial, Bytes::from(data)).unwrap();
        text
    }

    pub fn await_applied(&self, proposals: &[String]) {
        self.wait("its proposals", |node| {
            let state = node.shared.state.lock();
            proposals.iter().all(|proposal| state.seen.contains(proposal))
        });
    }

    pub fn has_line(&self, part: &str) -> bool {
        self.shared.lines.lock().iter().any(|(_, line)| line.contains(part))
    }

    pub fn wait(&self, what: &str, done: impl Fn(&Node) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done(self) {
            if Instant::now() >= deadline {
                let state = self.shared.state.lock().clone();
                let lines = self.shared.lines.lock().clone();
                panic!(
                    "node {} waited in vain for {what}: {:?}\nviews {:?}\napplied {}\nlog {:#?}",
                    self.options.name,
                    self.status(),
                    state.views,
                    state.applied.len(),
                    &lines[lines.len().saturating_sub(30)..]
                );
            }
            let mut state = self.shared.state.lock();
            self.shared.changed.wait_for(&mut state, Duration::from_millis(5));
        }
    }
}
