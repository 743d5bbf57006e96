//! Clients that insert rows and remember what was acknowledged, and when.
//!
//! A row counts as acknowledged once the server said OK to its INSERT. A row whose INSERT ended
//! in an error or with a lost connection may or may not exist; nothing is claimed of it.
//!
//! Clients that fail over are what an application with a pool is: connecting, and every statement,
//! is given up after a time; then, as after an error, the client turns to the next server. One that
//! did not even answer to a connect is left alone for ten seconds, as ProxySQL and MaxScale do.
//!
//! * [`table`]: what they insert into, and whether it is there. [`Acks`]: what they were told.

mod acks;
pub mod table;

pub use acks::{Ack, Acks};

use crate::fleet::USER;
use anyhow::{ensure, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_lab::server::sql;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
const POLL: Duration = Duration::from_millis(5);

/// How a client reaches a server. What it asks there is given up after the time given.
pub type Door = Arc<dyn Fn(Duration) -> mysql::Result<Conn> + Send + Sync>;

/// The door of a server's socket.
pub fn door(socket: &Path) -> Door {
    let socket = socket.to_owned();
    Arc::new(move |timeout| sql::connect(&socket, USER, timeout))
}

/// One client.
#[derive(Clone)]
pub struct Client {
    /// Its servers, the preferred one first.
    pub doors: Vec<Door>,
    /// After which it gives a server up.
    pub timeout: Duration,
    /// After each row.
    pub pause: Duration,
}

impl Client {
    /// One that has a single server.
    pub fn of(door: Door) -> Client {
        Client { doors: vec![door], timeout: CLIENT_TIMEOUT, pause: Duration::ZERO }
    }

    /// So many that begin with the first of these servers; those that they turn to differ.
    pub fn failing_over(doors: &[Door], count: usize) -> Vec<Client> {
        let client = |number: usize| {
            let mut doors = doors.to_vec();
            if let Some(others) = doors.get_mut(1..).filter(|others| !others.is_empty()) {
                others.rotate_left(number % others.len());
            }
            Client { doors, timeout: FAILOVER_TIMEOUT, pause: Duration::ZERO }
        };
        (0..count).map(client).collect()
    }

    /// A connection to the first of its servers from `next` on that is not shunned and lets it in;
    /// `next` is then the one after it. None if nobody does.
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

    fn insert_until_end(&self, shared: &Shared, first_id: u64) -> Told {
        let mut told = Told::default();
        let mut shunned = vec![None; self.doors.len()];
        let (mut next, mut id) = (0, first_id);
        let mut connection: Option<Conn> = None;
        while !shared.stop.load(Ordering::Relaxed) {
            let Some(open) = &mut connection else {
                connection = self.connect(&mut next, &mut shunned);
                if connection.is_none() {
                    // Nobody is there: not so fast, but then everybody counts again.
                    shunned.fill(None);
                    thread::sleep(RECONNECT_PAUSE);
                }
                continue;
            };
            id += 1;
            let sent = Instant::now();
            match open.query_drop(table::insert(id)) {
                Ok(()) => {
                    told.acks.push(Ack { id, sent, at: Instant::now() });
                    shared.latest_ns.fetch_max(shared.since_begin(sent), Ordering::Relaxed);
                    thread::sleep(self.pause);
                }
                // A conflict or a node that takes no writes at the moment; the connection is good.
                Err(mysql::Error::MySqlError(failed)) => {
                    told.failed.push(failed.to_string());
                    thread::sleep(RECONNECT_PAUSE);
                    if self.doors.len() > 1 {
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
}

/// Clients at work. They end when this is dropped.
pub struct Writers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Told>>,
}

/// What all clients have in common.
struct Shared {
    begin: Instant,
    stop: AtomicBool,
    /// When the latest of the acknowledged statements was sent, in nanoseconds since the begin.
    latest_ns: AtomicU64,
}

impl Shared {
    fn since_begin(&self, time: Instant) -> u64 {
        time.duration_since(self.begin).as_nanos() as u64
    }
}

/// What one client was told.
#[derive(Default)]
struct Told {
    acks: Vec<Ack>,
    failed: Vec<String>,
}

impl Writers {
    /// Lets clients write. `run` tells the ids of one run from those of another.
    pub fn start(clients: Vec<Client>, run: u64) -> Writers {
        let (stop, latest_ns) = (AtomicBool::new(false), AtomicU64::new(0));
        let shared = Arc::new(Shared { begin: Instant::now(), stop, latest_ns });
        let threads = clients
            .into_iter()
            .enumerate()
            .map(|(number, client)| {
                let shared = shared.clone();
                let first_id = table::first_of(run) | ((number as u64) << 32);
                thread::spawn(move || client.insert_until_end(&shared, first_id))
            })
            .collect();
        Writers { shared, threads }
    }

    /// Waits until a row is acknowledged that was sent after this time.
    pub fn wait_acked(&self, sent_after: Instant, limit: Duration) -> Result<()> {
        let (end, goal) = (Instant::now() + limit, self.shared.since_begin(sent_after));
        while self.shared.latest_ns.load(Ordering::Relaxed) < goal {
            ensure!(Instant::now() < end, "no row is acknowledged within {limit:?}");
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Stops the clients and collects what they know.
    pub fn stop(mut self) -> Acks {
        self.tell_to_stop();
        let end = Instant::now();
        let (mut acks, mut failed) = (Vec::new(), Vec::new());
        for thread in std::mem::take(&mut self.threads) {
            let told = thread.join().expect("a writer panicked");
            acks.extend(told.acks);
            failed.extend(told.failed);
        }
        Acks::new(self.shared.begin, end, acks, failed)
    }

    fn tell_to_stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// A measurement that fails leaves no clients that write on.
impl Drop for Writers {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}
