//! What a server says of itself.

use super::dial::{dial, host_and_port, CONNECT_TIMEOUT};
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use quorate_lab::server::Ports;
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Round trips of which the median counts.
const LOOKS: usize = 11;
/// So many tables of a kind are named.
const NAMED: usize = 5;
/// What belongs to the server, and is replicated by other means or not at all.
const SYSTEM: &str = "('mysql', 'sys', 'performance_schema', 'information_schema')";
/// No views and sequences. MariaDB tells tables with a history apart from others.
const TABLES: &str = "('BASE TABLE', 'SYSTEM VERSIONED')";

/// Who asks.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: String,
    pub password: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub address: String,
    pub version: String,
    pub variables: HashMap<String, String>,
    pub status: HashMap<String, String>,
    /// In milliseconds.
    pub round_trip_ms: f64,
    /// The server's clock less this host's.
    pub clock_ahead_ms: f64,
    /// Tables of applications that are not InnoDB's: some of them, and how many.
    pub other_engines: (Vec<Table>, u64),
    /// Tables that the server cannot open: no engine is told of them, but why.
    pub unreadable: (Vec<Table>, u64),
    /// InnoDB's tables without a primary key.
    pub without_key: (Vec<Table>, u64),
    /// Tables that are encrypted on disk, each for itself.
    pub encrypted: (Vec<Table>, u64),
    /// Transactions that were prepared and wait for their coordinator.
    pub prepared: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// `schema.table`
    pub name: String,
    /// Or, if the server cannot open it, why.
    pub engine: String,
}

impl Facts {
    /// Asks the server at `host:port`.
    pub fn ask(address: &str, account: &Account) -> Result<Facts> {
        let (host, port) = host_and_port(address, Ports::USUAL.client);
        // Told apart from whatever the server says: nobody may be there at all.
        let dialled = dial(host, port).and_then(|dialled| dialled.outcome);
        dialled.with_context(|| format!("connecting to {address}"))?;
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(host))
            .tcp_port(port)
            .user(Some(&account.user))
            .pass(account.password.as_ref())
            .prefer_socket(false)
            .tcp_connect_timeout(Some(CONNECT_TIMEOUT))
            .read_timeout(Some(TIMEOUT))
            .write_timeout(Some(TIMEOUT));
        let mut connection = Conn::new(options)
            .with_context(|| format!("logging in as {} at {address}", account.user))?;
        Facts::read(address, &mut connection).with_context(|| format!("asking {address}"))
    }

    fn read(address: &str, connection: &mut Conn) -> Result<Facts> {
        let (round_trip_ms, clock_ahead_ms) = clock(connection)?;
        let pairs = |connection: &mut Conn, what: &str| -> Result<HashMap<String, String>> {
            let rows: Vec<(String, String)> = connection.query(format!("SHOW GLOBAL {what}"))?;
            Ok(rows.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect())
        };
        let variables = pairs(connection, "VARIABLES")?;
        Ok(Facts {
            address: address.to_owned(),
            version: variables.get("version").cloned().unwrap_or_default(),
            status: pairs(connection, "STATUS")?,
            variables,
            round_trip_ms,
            clock_ahead_ms,
            other_engines: tables(connection, "t.engine NOT IN ('InnoDB', 'SEQUENCE')")?,
            unreadable: tables(connection, "t.engine IS NULL")?,
            without_key: tables(
                connection,
                "t.engine = 'InnoDB' AND NOT EXISTS (SELECT 1 FROM information_schema.statistics s \
                 WHERE s.table_schema = t.table_schema AND s.table_name = t.table_name \
                 AND s.index_name = 'PRIMARY')",
            )?,
            encrypted: tables(connection, "t.create_options REGEXP '(?i)encrypted.?=.?yes'")?,
            prepared: connection.query::<mysql::Row, _>("XA RECOVER")?.len() as u64,
        })
    }

    pub fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }
}

/// The median round trip, and how far the server's clock is ahead, as seen in the shortest one; milliseconds.
fn clock(connection: &mut Conn) -> Result<(f64, f64)> {
    let mut looks = Vec::with_capacity(LOOKS);
    for _ in 0..LOOKS {
        let (began, here) = (Instant::now(), SystemTime::now());
        let there: Option<f64> = connection.query_first("SELECT UNIX_TIMESTAMP(NOW(6)) + 0e0")?;
        let took = began.elapsed().as_secs_f64();
        let here = here.duration_since(UNIX_EPOCH)?.as_secs_f64() + took / 2.0;
        looks.push((took * 1000.0, (there.unwrap_or(here) - here) * 1000.0));
    }
    looks.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok((looks[LOOKS / 2].0, looks[0].1))
}

fn tables(connection: &mut Conn, which: &str) -> Result<(Vec<Table>, u64)> {
    let from = format!(
        "FROM information_schema.tables t WHERE t.table_type IN {TABLES} \
         AND t.table_schema NOT IN {SYSTEM} AND {which}"
    );
    let count: Option<u64> = connection.query_first(format!("SELECT COUNT(*) {from}"))?;
    let named: Vec<(String, String)> = connection.query(format!(
        "SELECT CONCAT(t.table_schema, '.', t.table_name), COALESCE(t.engine, t.table_comment) {from} ORDER BY 1 LIMIT {NAMED}"
    ))?;
    let named = named.into_iter().map(|(name, engine)| Table { name, engine });
    Ok((named.collect(), count.unwrap_or(0)))
}
