//! Clients that commit one row after the other.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use std::time::{Duration, Instant};

const DATABASE: &str = "commits";
const INSERT: &str = "INSERT INTO commits.t (v) VALUES (?)";
/// Connections, plans and caches are not what is to be measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// Below that, a 95th percentile says nothing.
const COUNT_MIN: usize = 20;

/// Makes the table; through the primary, before anybody commits.
pub fn prepare(connection: &mut Conn) -> Result<()> {
    connection.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
    connection.query_drop(format!(
        "CREATE TABLE IF NOT EXISTS {DATABASE}.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)"
    ))?;
    Ok(())
}

/// One row.
pub fn insert(connection: &mut Conn) -> mysql::Result<()> {
    // The connection keeps it prepared.
    connection.exec_drop(INSERT, (1,))
}

/// How long each commit took, in order, for so long.
pub fn run(connection: &mut Conn, time: Duration) -> Result<Vec<Duration>> {
    let begin = Instant::now();
    let mut times = Vec::new();
    loop {
        let sent = Instant::now();
        if sent - begin > WARM_UP + time {
            break;
        }
        insert(connection).context("committing a row")?;
        if sent - begin > WARM_UP {
            times.push(sent.elapsed());
        }
    }
    ensure!(times.len() >= COUNT_MIN, "{} commits are too few: measure longer", times.len());
    Ok(times)
}
