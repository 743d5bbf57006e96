//! One client: connects, tries, and tells apart what was done, what was refused, and what may or
//! may not have been done.

use crate::history::{Action, Outcome, Recorder};
use crate::random::Random;
use crate::target::Target;
use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A server that hangs is left after this long; what was asked of it is unknown then.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Between attempts to reach a node that refuses connections.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Errors of a statement that has no effect, if it was the last of its transaction: deadlock and
/// failed certification, lock wait timeout, changed since the snapshot, duplicate key, foreign
/// key, node not ready, table or column changed.
const REFUSALS: [u16; 11] = [1213, 1205, 1020, 1062, 1451, 1452, 1047, 1054, 1060, 1091, 1146];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// All clients write to one node; to another when it fails them.
    One,
    /// Each client writes to its own node.
    Everywhere,
}

/// What the clients of one workload share.
pub struct Site<'a> {
    pub target: &'a dyn Target,
    pub recorder: &'a Recorder,
    pub writers: Writers,
    /// The node that is written to, for [`Writers::One`]; shared by all workloads.
    pub primary: &'a AtomicUsize,
    pub stop: &'a AtomicBool,
    pub session: &'static str,
}

/// Why an attempt did not succeed.
pub enum Failed {
    /// It has no effect.
    Refused(Error),
    /// It may have an effect, now or later.
    Unknown(Error),
}

pub type Attempt<T> = std::result::Result<T, Failed>;

pub struct Client<'a> {
    site: &'a Site<'a>,
    pub process: u32,
    /// The node it is at: reads, and writes if everybody writes at home.
    pub home: usize,
    pub random: Random,
    /// Counts what it did, for values of its own.
    pub serial: u64,
    connections: Vec<Option<Conn>>,
}

impl<'a> Client<'a> {
    pub fn new(site: &'a Site<'a>, process: u32, home: usize, random: Random) -> Client<'a> {
        let connections = (0..site.target.nodes()).map(|_| None).collect();
        Client { site, process, home, random, serial: 0, connections }
    }

    pub fn nodes(&self) -> usize {
        self.site.target.nodes()
    }

    /// A number that no other client gets.
    pub fn unique(&mut self) -> u64 {
        self.serial += 1;
        u64::from(self.process) << 32 | self.serial
    }

    /// Not above any [`unique`](Client::unique) number of this client.
    pub fn first_unique(&self) -> u64 {
        u64::from(self.process) << 32
    }

    /// The node to write to now.
    pub fn writer(&self) -> usize {
        match self.site.writers {
            Writers::One => self.site.primary.load(Ordering::Relaxed),
            Writers::Everywhere => self.home,
        }
    }

    /// Tries `work` on a node and records it as `action`, completed by `done` with what was read.
    /// A node that cannot be reached leaves no record.
    pub fn attempt<T>(
        &mut self,
        node: usize,
        work: impl FnOnce(&mut Conn) -> Attempt<T>,
        action: impl FnOnce(Option<T>) -> Action,
    ) -> Result<()> {
        let Some(mut connection) = self.connection(node) else { return Ok(()) };
        let begin_us = self.site.recorder.now_us();
        let (outcome, read, error) = match work(&mut connection) {
            Ok(read) => (Outcome::Ok, Some(read), None),
            Err(Failed::Refused(error)) => (Outcome::Fail, None, Some(error)),
            Err(Failed::Unknown(error)) => (Outcome::Unknown, None, Some(error)),
        };
        let note = error.as_ref().map(Error::to_string).unwrap_or_default();
        let who = (self.process, node as u16 + 1);
        self.site.recorder.ended(begin_us, who, outcome, action(read), note)?;
        match error {
            None => self.connections[node] = Some(connection),
            // An ordinary conflict: the connection is as good as before.
            Some(Error::MySqlError(error)) if matches!(error.code, 1213 | 1020 | 1062 | 1452) => {
                if connection.query_drop("ROLLBACK").is_ok() {
                    self.connections[node] = Some(connection);
                }
            }
            Some(_) => self.leave(node),
        }
        Ok(())
    }

    fn connection(&mut self, node: usize) -> Option<Conn> {
        if let Some(connection) = self.connections[node].take() {
            return Some(connection);
        }
        let connection = self.site.target.connect(node, TIMEOUT).and_then(|mut connection| {
            connection.query_drop(self.site.session)?;
            connection.query_drop("USE lab")?;
            Ok(connection)
        });
        if connection.is_err() {
            thread::sleep(RETRY_PAUSE);
            self.leave(node);
        }
        connection.ok()
    }

    /// The node failed this client: a writer goes to another, if it is still the one in use.
    fn leave(&self, node: usize) {
        let (site, nodes) = (self.site, self.nodes());
        let is_primary = site.primary.load(Ordering::Relaxed) == node;
        if site.writers != Writers::One || !is_primary || site.stop.load(Ordering::Relaxed) {
            return;
        }
        let ready =
            |other: &usize| site.target.status(*other).is_ok_and(|status| status.is_synced());
        let next = (1..=nodes).map(|step| (node + step) % nodes).find(ready);
        if let Some(next) = next {
            // Lost against another client that has moved it already: as good.
            let _ = site.primary.compare_exchange(node, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// What the error of a statement that commits means.
pub fn classify(error: Error) -> Failed {
    match &error {
        Error::MySqlError(server) if REFUSALS.contains(&server.code) => Failed::Refused(error),
        _ => Failed::Unknown(error),
    }
}

/// One statement that commits by itself.
pub fn statement(connection: &mut Conn, text: impl AsRef<str>) -> Attempt<()> {
    connection.query_drop(text).map_err(classify)
}

/// A transaction. What fails before COMMIT is asked for has no effect: it is rolled back, or its
/// connection is left, which has the server do so.
pub fn transaction<T>(
    connection: &mut Conn,
    body: impl FnOnce(&mut Conn) -> mysql::Result<T>,
) -> Attempt<T> {
    connection.query_drop("BEGIN").map_err(Failed::Refused)?;
    let read = body(connection).map_err(Failed::Refused)?;
    connection.query_drop("COMMIT").map_err(classify)?;
    Ok(read)
}

/// A read; a failed one has no effect.
pub fn reading<T>(
    connection: &mut Conn,
    body: impl FnOnce(&mut Conn) -> mysql::Result<T>,
) -> Attempt<T> {
    body(connection).map_err(Failed::Refused)
}

/// The first row's value, if there is a row. Reads to the end of the result: a transaction that is
/// aborted while it reads is told so only there, after the rows.
pub fn first<T: mysql::prelude::FromValue>(
    connection: &mut Conn,
    query: impl AsRef<str>,
) -> mysql::Result<Option<T>> {
    let rows: Vec<T> = connection.query(query)?;
    Ok(rows.into_iter().next())
}
