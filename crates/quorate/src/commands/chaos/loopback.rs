//! Plain processes of this machine as a target: what can be hurt without root's namespaces and
//! file systems. Networks and disks do not fail here.

use crate::args::{Limit, Up};
use crate::cluster::{Cluster, Node};
use crate::commands::up;
use crate::failure::OK;
use crate::server::{self, find_program, ProcessId};
use crate::sql::{self, WsrepStatus};
use anyhow::{bail, ensure, Context, Result};
use mysql::Conn;
use quorate_lab::leftovers::clear;
use quorate_lab::target::Target;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::{self, DirBuilder};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// On a disk, and short enough for sockets.
const PARENT: &str = "/var/tmp";
const POLL: Duration = Duration::from_millis(100);
const START_SECONDS: u64 = 120;
const DEATH_LIMIT: Duration = Duration::from_secs(20);
/// Below the ports that the kernel hands out.
const PORTS: std::ops::Range<u16> = 12_000..20_000;
const PORTS_PER_CLUSTER: u16 = 100;

/// Servers in a directory of their own, which are gone when this is dropped, or at a signal.
pub struct Loopback {
    cluster: Mutex<Cluster>,
    /// Servers that this process started, to be collected when they have ended.
    children: Mutex<Vec<Child>>,
    _place: Arc<Place>,
}

/// What is to be gone in the end, however far the start got.
struct Place {
    dir: PathBuf,
}

impl Loopback {
    pub fn start(nodes: u16, server_options: &str, provider_options: Option<&str>) -> Result<Self> {
        let dir = Path::new(PARENT).join(format!("quorate-chaos-{}", std::process::id()));
        // Of nobody else: what another user has put there would be run as this one.
        let made = DirBuilder::new().mode(0o755).create(&dir);
        made.with_context(|| {
            format!("making {} (if a killed run has left it: remove it)", dir.display())
        })?;
        let place = Arc::new(Place { dir: dir.clone() });
        end_at_signals(&place)?;
        let extra = dir.join("extra.cnf");
        fs::write(&extra, server_options)
            .with_context(|| format!("writing {}", extra.display()))?;
        let args = Up {
            nodes: Some(nodes),
            learners: None,
            loggers: None,
            base_port: Some(free_ports()?),
            provider: None,
            provider_options: provider_options.map(str::to_owned),
            mariadbd: None,
            limit: Limit { timeout: START_SECONDS },
            new_cluster_on: None,
        };
        let code = up::up(&dir, &args)?;
        ensure!(code == OK, "the cluster did not start");
        let cluster = Mutex::new(Cluster::open(&dir)?);
        Ok(Loopback { cluster, children: Mutex::default(), _place: place })
    }

    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        lock(&self.cluster)
    }

    fn node(&self, node: usize) -> Node {
        self.cluster().node(node as u16 + 1)
    }

    fn process(&self, node: usize) -> Option<ProcessId> {
        let cluster = self.cluster();
        cluster.process(&cluster.node(node as u16 + 1))
    }

    fn signal(&self, node: usize, signal: Signal) -> Result<ProcessId> {
        let process = self.process(node);
        let process = process.with_context(|| format!("node{} does not run", node + 1))?;
        process.signal(signal)?;
        Ok(process)
    }
}

impl Target for Loopback {
    fn nodes(&self) -> usize {
        self.cluster().state.nodes.len()
    }

    fn connect(&self, node: usize, timeout: Duration) -> mysql::Result<Conn> {
        let (socket, user) = {
            let cluster = self.cluster();
            let user = cluster.account.database_user().to_owned();
            (cluster.node(node as u16 + 1).socket(), user)
        };
        sql::connect(&socket, &user, timeout)
    }

    fn status(&self, node: usize) -> mysql::Result<WsrepStatus> {
        let user = self.cluster().account.database_user().to_owned();
        sql::wsrep_status(&self.node(node).socket(), &user)
    }

    fn leader(&self) -> Option<usize> {
        (0..self.nodes()).find(|node| self.status(*node).is_ok_and(|status| status.leads()))
    }

    fn is_running(&self, node: usize) -> bool {
        self.process(node).is_some()
    }

    fn kill(&self, nodes: &[usize]) -> Result<()> {
        let processes = nodes
            .iter()
            .map(|node| self.signal(*node, Signal::KILL))
            .collect::<Result<Vec<_>>>()?;
        for process in processes {
            ensure!(process.wait_gone(DEATH_LIMIT)?, "process {} does not die", process.pid);
        }
        Ok(())
    }

    fn pause(&self, node: usize) -> Result<()> {
        self.signal(node, Signal::STOP).map(drop)
    }

    fn resume(&self, node: usize) -> Result<()> {
        self.signal(node, Signal::CONT).map(drop)
    }

    fn stop(&self, node: usize, limit: Duration) -> Result<()> {
        let process = self.signal(node, Signal::TERM)?;
        ensure!(process.wait_gone(limit)?, "node{} did not stop within {limit:?}", node + 1);
        Ok(())
    }

    fn start_node(&self, node: usize) -> Result<()> {
        if self.is_running(node) {
            return Ok(());
        }
        let node = self.node(node);
        let snapshot = self.cluster().clone();
        server::prepare(&snapshot, &node)?;
        let start = up::beginning(&snapshot, &node)?;
        let launched = server::launch(&mut self.cluster(), &node, &start)?;
        let mut children = lock(&self.children);
        children.extend(launched.child);
        // One whose end cannot be told is kept.
        children.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
        Ok(())
    }

    fn start_all(&self) -> Result<()> {
        thread::scope(|scope| {
            let starts: Vec<_> =
                (0..self.nodes()).map(|node| scope.spawn(move || self.start_node(node))).collect();
            starts.into_iter().try_for_each(|start| start.join().expect("a starter panicked"))
        })
    }

    fn wipe(&self, node: usize) -> Result<()> {
        let node = self.node(node);
        [node.data(), node.log(), node.tmp()].iter().try_for_each(|folder| clear(folder))
    }

    fn wait_level(&self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            let states: Vec<String> = (0..self.nodes())
                .map(|node| match self.status(node) {
                    Ok(status) => {
                        let get = |name| status.get(name).unwrap_or_default();
                        format!("{} {}", get("wsrep_local_state"), get("wsrep_last_committed"))
                    }
                    Err(_) => "no answer".to_owned(),
                })
                .collect();
            if states[0].starts_with("4 ") && states.iter().all(|state| *state == states[0]) {
                return Ok(());
            }
            if Instant::now() > end {
                bail!(
                    "the nodes did not become level within {limit:?}; wsrep_local_state and \
                     wsrep_last_committed: {states:?}"
                );
            }
            thread::sleep(POLL);
        }
    }

    fn error_log(&self, node: usize) -> PathBuf {
        self.node(node).error_log()
    }

    fn save_logs(&self, folder: &Path) -> Result<()> {
        for node in self.cluster().nodes() {
            let to = folder.join(&node.name);
            fs::create_dir_all(&to).with_context(|| format!("making {}", to.display()))?;
            let mut files = vec![node.config(), node.error_log()];
            // Those of the programs that move the state.
            for folder in [node.data(), node.dir.join("transfer-logs")] {
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                files.extend(entries.map(|entry| entry.path()).filter(|path| {
                    path.file_name().is_some_and(|name| {
                        name.to_string_lossy().contains(".log") && path.is_file()
                    })
                }));
            }
            for file in files {
                let name = file.file_name().unwrap_or_default();
                fs::copy(&file, to.join(name))
                    .with_context(|| format!("copying {}", file.display()))?;
            }
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Place {
    /// Without the cluster's file none was started.
    fn running(&self) -> Vec<ProcessId> {
        let Ok(cluster) = Cluster::open(&self.dir) else { return Vec::new() };
        cluster.nodes().iter().filter_map(|node| cluster.process(node)).collect()
    }

    fn remove(&self) {
        let mut are_gone = true;
        let mut ended = Vec::new();
        // Another one may be started meanwhile, and is noted as soon as it runs.
        while let Some(process) = self.running().into_iter().find(|found| !ended.contains(found)) {
            let gone = process.signal(Signal::KILL).and_then(|_| process.wait_gone(DEATH_LIMIT));
            if !matches!(gone, Ok(true)) {
                eprintln!("process {} does not end, though killed: {gone:?}", process.pid);
                are_gone = false;
            }
            ended.push(process);
        }
        if !are_gone {
            eprintln!("{} is left: who uses it still runs", self.dir.display());
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            eprintln!("deleting {}: {error}", self.dir.display());
        }
    }
}

/// The servers are in sessions of their own, so a signal for this process would leave them.
fn end_at_signals(place: &Arc<Place>) -> Result<()> {
    let place = Arc::downgrade(place);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .context("listening for signals")?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if let Some(place) = place.upgrade() {
                place.remove();
            }
            if let Err(error) = signal_hook::low_level::emulate_default_handler(signal) {
                eprintln!("ending at signal {signal}: {error}");
            }
        }
    });
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A base port such that the ports of a cluster from there on are free.
fn free_ports() -> Result<u16> {
    ensure!(find_program("mariadbd").is_some(), "mariadbd is not installed: make packages");
    let first = std::process::id() as u16 % ((PORTS.end - PORTS.start) / PORTS_PER_CLUSTER);
    let blocks = (PORTS.end - PORTS.start) / PORTS_PER_CLUSTER;
    (0..blocks)
        .map(|step| PORTS.start + (first + step) % blocks * PORTS_PER_CLUSTER)
        .find(|base| {
            let mut ports = *base..base + PORTS_PER_CLUSTER;
            ports.all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        })
        .context("no free block of ports")
}
