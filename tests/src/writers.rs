//! Clients that insert rows and remember what was acknowledged, and when.
//!
//! A row counts as acknowledged once the server said OK to its INSERT. A row whose INSERT ended
//! in an error or with a lost connection may or may not exist; nothing is claimed of it.
//!
//! Clients that fail over are what an application with a pool is: connecting, and every statement,
//! is given up after 300 ms; then, as after an error, the client turns to the next server. One that
//! did not even answer to a connect is left alone for ten seconds, as ProxySQL and MaxScale do.

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
/// How long they leave a server alone that does not let them in.
const SHUNNED: Duration = Duration::from_secs(10);
/// For reading all rows.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Ids of one run have its number from this bit on.
const RUN_SHIFT: u32 = 48;
const TABLE: &str = "quorate_test.acked";

/// How a client reaches a server. What it asks there is given up after the time given.
pub type Door = Arc<dyn Fn(Duration) -> mysql::Result<Conn> + Send + Sync>;

pub struct Writers {
    stop: Arc<AtomicBool>,
    begin: Instant,
    threads: Vec<JoinHandle<Told>>,
}

/// What one client was told.
#[derive(Default)]
struct Told {
    acks: Vec<Ack>,
    failed: Vec<String>,
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
    /// What statements ended with that were not acknowledged.
    pub failed: Vec<String>,
}

/// Makes the table that writers insert into.
pub fn create_table(cluster: &TestCluster) -> Result<()> {
    create_table_at(&cluster.socket(1))
}

/// The same at a server's socket.
pub fn create_table_at(socket: &Path) -> Result<()> {
    create_table_through(&mut quorate_cli::sql::connect(socket, "root", CLIENT_TIMEOUT)?)
}

/// The same through a connection.
pub fn create_table_through(connection: &mut Conn) -> Result<()> {
    connection.query_drop("CREATE DATABASE IF NOT EXISTS quorate_test")?;
    connection.query_drop(format!(
        "CREATE TABLE IF NOT EXISTS {TABLE} (id BIGINT UNSIGNED PRIMARY KEY, filler CHAR(60) NOT \
         NULL) ENGINE=InnoDB"
    ))?;
    Ok(())
}

/// Empties it.
pub fn empty_table_through(connection: &mut Conn) -> Result<()> {
    Ok(connection.query_drop(format!("TRUNCATE TABLE {TABLE}"))?)
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
        let clients = sockets.iter().flat_map(|socket| (0..per_node).map(|_| door(socket)));
        let clients = clients.map(|door| Servers { doors: vec![door], timeout: CLIENT_TIMEOUT });
        Writers::spawn(clients.collect(), run)
    }

    /// Starts `count` clients that write to the first of `nodes` that serves them.
    pub fn start_failing_over(
        cluster: &TestCluster,
        nodes: &[u16],
        count: usize,
        run: u64,
    ) -> Writers {
        let doors: Vec<Door> = nodes.iter().map(|node| door(&cluster.socket(*node))).collect();
        Writers::start_through(&doors, count, run)
    }

    /// The same with servers behind these doors. All begin with the first; those that they turn
    /// to differ.
    pub fn start_through(doors: &[Door], count: usize, run: u64) -> Writers {
        let servers = |client: usize| {
            let mut doors = doors.to_vec();
            if let Some(others) = doors.get_mut(1..).filter(|others| !others.is_empty()) {
                others.rotate_left(client % others.len());
            }
            Servers { doors, timeout: FAILOVER_TIMEOUT }
        };
        Writers::spawn((0..count).map(servers).collect(), run)
    }

    fn spawn(clients: Vec<Servers>, run: u64) -> Writers {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = clients
            .into_iter()
            .enumerate()
            .map(|(number, servers)| {
                let stop = stop.clone();
                let first_id = (run << RUN_SHIFT) | ((number as u64) << 32);
                thread::spawn(move || insert_until(&stop, &servers, first_id))
            })
            .collect();
        Writers { stop, begin: Instant::now(), threads }
    }

    /// Stops the clients and collects what they know.
    pub fn stop(self) -> Acks {
        self.stop.store(true, Ordering::Relaxed);
        let end = Instant::now();
        let (mut acks, mut failed) = (Vec::new(), Vec::new());
        for thread in self.threads {
            let told = thread.join().expect("a writer panicked");
            acks.extend(told.acks);
            failed.extend(told.failed);
        }
        acks.sort_by_key(|ack: &Ack| ack.at);
        Acks { begin: self.begin, end, acks, failed }
    }
}

fn door(socket: &Path) -> Door {
    let socket = socket.to_owned();
    Arc::new(move |timeout| quorate_cli::sql::connect(&socket, "root", timeout))
}

/// The servers of one client, the preferred one first.
struct Servers {
    doors: Vec<Door>,
    timeout: Duration,
}

impl Servers {
    /// A connection to the first of them from `next` on that is not shunned and lets the client
    /// in; `next` is then the one after it. None if nobody does.
    fn connect(&self, next: &mut usize, shunned: &mut [Option<Instant>]) -> Option<Conn> {
        for _ in 0..self.doors.len() {
            let at = *next % self.doors.len();
            *next = at + 1;
            if shunned[at].is_some_and(|since| since.elapsed() < SHUNNED) {
                continue;
            }
            match (self.doors[at])(self.timeout) {
                Ok(connection) => return Some(connection),
                // A single server is asked again and again.
                Err(_) if self.doors.len() > 1 => shunned[at] = Some(Instant::now()),
                Err(_) => {}
            }
        }
        None
    }
}

fn insert_until(stop: &AtomicBool, servers: &Servers, first_id: u64) -> Told {
    let mut told = Told::default();
    let mut shunned = vec![None; servers.doors.len()];
    let (mut next, mut id) = (0, first_id);
    let mut connection: Option<Conn> = None;
    while !stop.load(Ordering::Relaxed) {
        let Some(open) = &mut connection else {
            connection = servers.connect(&mut next, &mut shunned);
            if connection.is_none() {
                // Nobody is there: not so fast, but then everybody counts again.
                shunned.fill(None);
                thread::sleep(RECONNECT_PAUSE);
            }
            continue;
        };
        id += 1;
        match open.query_drop(format!("INSERT INTO {TABLE} VALUES ({id}, 'a row of a writer')")) {
            Ok(()) => told.acks.push(Ack { id, at: Instant::now() }),
            // A conflict or a node that takes no writes at the moment; the connection is good.
            Err(mysql::Error::MySqlError(failed)) => {
                told.failed.push(failed.to_string());
                thread::sleep(RECONNECT_PAUSE);
                if servers.doors.len() > 1 {
                    connection = None;
                }
            }
            Err(lost) => {
                told.failed.push(lost.to_string());
                connection = None;
            }
        }
    }
    told
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
        let count = self.count_in(self.begin + from, self.begin + to);
        count as f64 / (to - from).as_secs_f64()
    }

    /// The longest time without an acknowledgement.
    pub fn longest_gap(&self) -> Duration {
        self.longest_gap_in(self.begin, self.end)
    }

    /// The same between two times.
    pub fn longest_gap_in(&self, from: Instant, to: Instant) -> Duration {
        let times = || self.times(from, to);
        let begins = std::iter::once(from).chain(times());
        let ends = times().chain(std::iter::once(to));
        begins
            .zip(ends)
            .map(|(from, to)| to.saturating_duration_since(from))
            .max()
            .unwrap_or_default()
    }

    /// Rows acknowledged between two times.
    pub fn count_in(&self, from: Instant, to: Instant) -> usize {
        self.times(from, to).count()
    }

    fn times(&self, from: Instant, to: Instant) -> impl Iterator<Item = Instant> + '_ {
        let range = from..to;
        self.acks.iter().map(|ack| ack.at).filter(move |at| range.contains(at))
    }
}

/// Those of `ids` that `node` does not have.
pub fn missing(cluster: &TestCluster, node: u16, ids: &HashSet<u64>) -> Result<Vec<u64>> {
    missing_at(&cluster.socket(node), ids)
}

/// The same at a server's socket.
pub fn missing_at(socket: &Path, ids: &HashSet<u64>) -> Result<Vec<u64>> {
    let mut connection = quorate_cli::sql::connect(socket, "root", READ_TIMEOUT)?;
    missing_through(&mut connection, ids)
        .with_context(|| format!("reading the rows through {}", socket.display()))
}

/// The same through a connection.
pub fn missing_through(connection: &mut Conn, ids: &HashSet<u64>) -> Result<Vec<u64>> {
    missing_since(connection, ids, 0)
}

/// The same where all `ids` are of this run or later ones.
pub fn missing_since(connection: &mut Conn, ids: &HashSet<u64>, run: u64) -> Result<Vec<u64>> {
    connection.query_drop("SET SESSION wsrep_sync_wait = 1")?;
    let select = format!("SELECT id FROM {TABLE} WHERE id >= {}", run << RUN_SHIFT);
    let present: HashSet<u64> = connection.query_map(select, |id: u64| id)?.into_iter().collect();
    let mut missing: Vec<u64> = ids.difference(&present).copied().collect();
    missing.sort_unstable();
    Ok(missing)
}
