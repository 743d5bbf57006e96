//! The table of the writers, and which of their rows are in it.

use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::Conn;
use std::collections::HashSet;

/// Where the table is.
pub const DATABASE: &str = "written";
pub const TABLE: &str = "written.acked";
/// Ids of one run have its number from this bit on.
const RUN_SHIFT: u32 = 48;

/// Makes the table, if there is none.
pub fn create(connection: &mut Conn) -> Result<()> {
    connection.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
    connection.query_drop(format!(
        "CREATE TABLE IF NOT EXISTS {TABLE} (id BIGINT UNSIGNED PRIMARY KEY, filler CHAR(60) NOT \
         NULL) ENGINE=InnoDB"
    ))?;
    Ok(())
}

/// Makes the table without any row.
pub fn make_empty(connection: &mut Conn) -> Result<()> {
    create(connection)?;
    empty(connection)
}

/// Empties it.
pub fn empty(connection: &mut Conn) -> Result<()> {
    Ok(connection.query_drop(format!("TRUNCATE TABLE {TABLE}"))?)
}

pub(crate) fn insert(id: u64) -> String {
    format!("INSERT INTO {TABLE} VALUES ({id}, 'a row of a writer')")
}

/// Ids of the run are greater than this one.
pub(super) fn first_of(run: u64) -> u64 {
    run << RUN_SHIFT
}

/// Those of `ids`, all of this run or later ones, that a member does not have by now.
pub fn missing(connection: &mut Conn, ids: &HashSet<u64>, run: u64) -> Result<Vec<u64>> {
    let select = format!("SELECT id FROM {TABLE} WHERE id >= {}", first_of(run));
    let present: HashSet<u64> = connection.query_map(select, |id: u64| id)?.into_iter().collect();
    let mut missing: Vec<u64> = ids.difference(&present).copied().collect();
    missing.sort_unstable();
    Ok(missing)
}
