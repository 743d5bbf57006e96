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
pub const COUNT_MIN: usize = 20;

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

/// The client.
pub struct Commits {
    connection: Conn,
}

impl Commits {
    /// Has warmed up when this returns.
    pub fn begin(connection: Conn) -> Result<Commits> {
        let mut commits = Commits { connection };
        commits.times(WARM_UP, usize::MAX)?;
        Ok(commits)
    }

    /// How long each commit took, in order, for so long, or until there are so many.
    pub fn run(&mut self, time: Duration, count_max: usize) -> Result<Vec<Duration>> {
        let times = self.times(time, count_max)?;
        ensure!(times.len() >= COUNT_MIN, "{} commits are too few: measure longer", times.len());
        Ok(times)
    }

    fn times(&mut self, time: Duration, count_max: usize) -> Result<Vec<Duration>> {
        let begin = Instant::now();
        let mut times = Vec::new();
        while begin.elapsed() < time && times.len() < count_max {
            let sent = Instant::now();
            insert(&mut self.connection).context("committing a row")?;
            times.push(sent.elapsed());
        }
        Ok(times)
    }
}
