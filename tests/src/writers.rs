//! Clients that insert rows and remember what was acknowledged, and when.
//!
//! A row counts as acknowledged once the server said OK to its INSERT. A row whose INSERT ended
//! in an error or with a lost connection may or may not exist; nothing is claimed of it.

use crate::TestCluster;
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const RECONNECT_PAUSE: Duration = Duration::from_millis(20);
/// A server that hangs (SIGSTOP) is left for another connection attempt after this long.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for clients that have another server to turn to.
const FAILOVER_TIMEOUT: Duration = Duration::from_millis(300);
/// For reading all rows.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
const TABLE: &str = "quorate_test.acked";

pub struct Writers {
    stop: Arc<AtomicBool>,
    begin: Instant,
    threads: Vec<JoinHandle<Vec<Ack>>>,
}

#[derive(Clone, Copy, Debug)]
struct Ack {
    id: u64,
    at: Instant,
}

/// What a run of writers was told by the servers.
pub struct Acks {
    begin: Instant,
    end: Instant,
    acks: Vec<Ack>,
}

/// Makes the table that writers insert into.
pub fn create_table(cluster: &TestCluster) -> Result<()> {
    create_table_at(&cluster.socket(1))
}

/// The same at a server's socket.
pub fn create_table_at(socket: &Path) -> Result<()> {
    let mut connection = quorate_cli::sql::connect(socket, "root", CLIENT_TIMEOUT)?;
    connection.query_drop("CREATE DATABASE IF NOT EXISTS quorate_test")?;
    connection.query_drop(format!(
        "CREATE TABLE IF NOT EXISTS {TABLE} (id BIGINT UNSIGNED PRIMARY KEY, filler CHAR(60) NOT \
         NULL) ENGINE=InnoDB"
    ))?;
    Ok(())
}

impl Writers {
    /// Starts `per_node` clients on each of `nodes`. `run` tells the ids of one run from those of
    /// another.
    pub fn start(cluster: &TestCluster, nodes: &[u16], per_node: u64, run: u64) -> Writers {
        let sockets: Vec<PathBuf> = nodes.iter().map(|node| cluster.socket(*node)).collect();
        Writers::start_at(&sockets, per_node, run)
    }

    /// The same at servers' sockets.
    pub fn start_at(sockets: &[PathBuf], per_node: u64, run: u64) -> Writers {
        let clients = sockets.iter().flat_map(|socket| (0..per_node).map(|_| socket.clone()));
        let clients =
            clients.map(|socket| Target { sockets: vec![socket], timeout: CLIENT_TIMEOUT });
        Writers::spawn(clients.collect(), run)
    }

    /// Starts `count` clients that write to the first of `nodes` that serves them: an error or
    /// 300 ms of silence sends them to the next, round and round.
    pub fn start_failing_over(
        cluster: &TestCluster,
        nodes: &[u16],
        count: usize,
        run: u64,
    ) -> Writers {
        let sockets: Vec<PathBuf> = nodes.iter().map(|node| cluster.socket(*node)).collect();
        Writers::spawn(vec![Target { sockets, timeout: FAILOVER_TIMEOUT }; count], run)
    }

    fn spawn(clients: Vec<Target>, run: u64) -> Writers {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = clients
            .into_iter()
            .enumerate()
            .map(|(number, target)| {
                let stop = stop.clone();
                let first_id = (run << 48) | ((number as u64) << 32);
                thread::spawn(move || insert_until(&stop, &target, first_id))
            })
            .collect();
        Writers { stop, begin: Instant::now(), threads }
    }

    /// Stops the clients and collects what they know.
    pub fn stop(self) -> Acks {
        self.stop.store(true, Ordering::Relaxed);
        let end = Instant::now();
        let mut acks: Vec<Ack> = self
            .threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("a writer panicked"))
            .collect();
        acks.sort_by_key(|ack| ack.at);
        Acks { begin: self.begin, end, acks }
    }
}

/// The servers of one client, the preferred one first.
#[derive(Clone)]
struct Target {
    sockets: Vec<PathBuf>,
    timeout: Duration,
}

fn insert_until(stop: &AtomicBool, target: &Target, first_id: u64) -> Vec<Ack> {
    let mut acks = Vec::new();
    let mut sockets = target.sockets.iter().cycle();
    let mut connection: Option<Conn> = None;
    let mut failures = 0;
    let mut id = first_id;
    while !stop.load(Ordering::Relaxed) {
        let Some(open) = &mut connection else {
            let Some(socket) = sockets.next() else { break };
            connection = quorate_cli::sql::connect(socket, "root", target.timeout).ok();
            failures = if connection.is_none() { failures + 1 } else { 0 };
            if failures >= target.sockets.len() {
                // Nobody is there: not so fast.
                thread::sleep(RECONNECT_PAUSE);
                failures = 0;
            }
            continue;
        };
        id += 1;
        match open.query_drop(format!("INSERT INTO {TABLE} VALUES ({id}, 'a row of a writer')")) {
            Ok(()) => acks.push(Ack { id, at: Instant::now() }),
            // A conflict or a node that takes no writes at the moment; the connection is good.
            Err(mysql::Error::MySqlError(_)) => {
                thread::sleep(RECONNECT_PAUSE);
                if target.sockets.len() > 1 {
                    connection = None;
                }
            }
            Err(_) => connection = None,
        }
    }
    acks
}

impl Acks {
    pub fn len(&self) -> usize {
        self.acks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.acks.is_empty()
    }

    pub fn ids(&self) -> HashSet<u64> {
        self.acks.iter().map(|ack| ack.id).collect()
    }

    /// Acknowledged rows of each whole second.
    pub fn per_second(&self) -> Vec<usize> {
        let seconds = (self.end - self.begin).as_secs() as usize;
        let mut counts = vec![0; seconds];
        for ack in &self.acks {
            if let Some(count) = counts.get_mut((ack.at - self.begin).as_secs() as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// Acknowledged rows a second between two times, counted from the begin.
    pub fn rate(&self, from: Duration, to: Duration) -> f64 {
        let range = self.begin + from..self.begin + to;
        let count = self.acks.iter().filter(|ack| range.contains(&ack.at)).count();
        count as f64 / (to - from).as_secs_f64()
    }

    /// The longest time without an acknowledgement.
    pub fn longest_gap(&self) -> Duration {
        let times = || self.acks.iter().map(|ack| ack.at);
        let from = std::iter::once(self.begin).chain(times());
        let to = times().chain(std::iter::once(self.end));
        from.zip(to).map(|(from, to)| to.saturating_duration_since(from)).max().unwrap_or_default()
    }
}

/// Those of `ids` that `node` does not have.
pub fn missing(cluster: &TestCluster, node: u16, ids: &HashSet<u64>) -> Result<Vec<u64>> {
    missing_at(&cluster.socket(node), ids)
}

/// The same at a server's socket.
pub fn missing_at(socket: &Path, ids: &HashSet<u64>) -> Result<Vec<u64>> {
    let mut connection = quorate_cli::sql::connect(socket, "root", READ_TIMEOUT)?;
    connection.query_drop("SET SESSION wsrep_sync_wait = 1")?;
    let present: HashSet<u64> = connection
        .query_map(format!("SELECT id FROM {TABLE}"), |id: u64| id)
        .with_context(|| format!("reading the rows through {}", socket.display()))?
        .into_iter()
        .collect();
    let mut missing: Vec<u64> = ids.difference(&present).copied().collect();
    missing.sort_unstable();
    Ok(missing)
}
