//! The bench's clients that remember what was acknowledged, at the servers of tests.

pub use quorate_bench::drive::writers::{door, table, Ack, Acks, Client, Door, Writers};

use crate::TestCluster;
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const CREATE_TIMEOUT: Duration = Duration::from_secs(10);
/// For reading all rows.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes the table that writers insert into.
pub fn create_table(cluster: &TestCluster) -> Result<()> {
    create_table_at(&cluster.socket(1))
}

/// The same at a server's socket.
pub fn create_table_at(socket: &Path) -> Result<()> {
    table::create(&mut quorate_cli::sql::connect(socket, "root", CREATE_TIMEOUT)?)
}

/// From now on each row says which server wrote it for a client: servers that apply a row run no triggers.
pub fn sign_rows(cluster: &TestCluster, leader: u16) -> Result<()> {
    let (database, table) = (table::DATABASE, table::TABLE);
    let trigger = format!(
        "CREATE TRIGGER {database}.signed BEFORE INSERT ON {table} FOR EACH ROW SET NEW.filler = @@wsrep_node_name"
    );
    cluster.sql(leader, &trigger)
}

/// What was acknowledged from `begun` on, each row with the server that wrote it, as `node` has them.
pub fn signed(
    cluster: &TestCluster,
    node: u16,
    acks: &Acks,
    begun: Instant,
) -> Result<Vec<(Ack, String)>> {
    let all: Vec<Ack> = acks.acks_in(begun, Instant::now()).copied().collect();
    let first = all.iter().map(|ack| ack.id).min().unwrap_or_default();
    let select = format!("SELECT id, filler FROM {} WHERE id >= {first}", table::TABLE);
    let mut wrote: HashMap<u64, String> =
        cluster.connect(node)?.query(select)?.into_iter().collect();
    let signed = |ack: Ack| {
        let server = wrote.remove(&ack.id);
        Ok((ack, server.with_context(|| format!("node{node} lacks row {}", ack.id))?))
    };
    all.into_iter().map(signed).collect()
}

/// Starts `per_node` clients on each of `nodes`. `run` tells the ids of one run from those of
/// another.
pub fn start(cluster: &TestCluster, nodes: &[u16], per_node: usize, run: u64) -> Writers {
    let sockets: Vec<PathBuf> = nodes.iter().map(|node| cluster.socket(*node)).collect();
    start_at(&sockets, per_node, run)
}

/// The same at servers' sockets.
pub fn start_at(sockets: &[PathBuf], per_node: usize, run: u64) -> Writers {
    let clients = sockets.iter().flat_map(|socket| (0..per_node).map(|_| Client::of(door(socket))));
    Writers::start(clients.collect(), run)
}

/// Starts `count` clients that write to the first of `nodes` that serves them.
pub fn start_failing_over(cluster: &TestCluster, nodes: &[u16], count: usize, run: u64) -> Writers {
    let sockets: Vec<PathBuf> = nodes.iter().map(|node| cluster.socket(*node)).collect();
    start_failing_over_at(&sockets, count, run)
}

/// The same at servers' sockets.
pub fn start_failing_over_at(sockets: &[PathBuf], count: usize, run: u64) -> Writers {
    let doors: Vec<Door> = sockets.iter().map(|socket| door(socket)).collect();
    Writers::start(Client::failing_over(&doors, count), run)
}

/// Those of `ids` that `node` does not have.
pub fn missing(cluster: &TestCluster, node: u16, ids: &HashSet<u64>) -> Result<Vec<u64>> {
    missing_at(&cluster.socket(node), ids)
}

/// The same at a server's socket.
pub fn missing_at(socket: &Path, ids: &HashSet<u64>) -> Result<Vec<u64>> {
    let mut connection = quorate_cli::sql::connect(socket, "root", READ_TIMEOUT)?;
    missing_since(&mut connection, ids, 0)
        .with_context(|| format!("reading the rows through {}", socket.display()))
}

/// The same through a connection, where all `ids` are of this run or later ones.
pub fn missing_since(connection: &mut Conn, ids: &HashSet<u64>, run: u64) -> Result<Vec<u64>> {
    connection.query_drop("SET SESSION wsrep_sync_wait = 1")?;
    table::missing(connection, ids, run)
}
