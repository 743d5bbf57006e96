//! All tables of all nodes, byte for byte: definitions, and rows in the order of the primary key;
//! and the state that certification has.

use crate::check::{Anomaly, Finding, Findings};
use crate::target::Target;
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};
use twox_hash::XxHash3_64;

const TIMEOUT: Duration = Duration::from_secs(120);
const CERTIFIERS_LEVEL: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);
/// Differing rows that are told, of each table.
const ROWS_SHOWN: usize = 5;
/// What replicates besides the users' databases: accounts, routines, events, plugins.
const SYSTEM_TABLES: &str = "'global_priv','proc','event','func','servers'";

/// A table's definition, rows and their digest.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    definition: String,
    rows: u64,
    digest: u64,
}

/// What differs between the first of `nodes` and each other. No client may be writing.
pub fn tables(target: &dyn Target, nodes: &[usize]) -> Result<Vec<Finding>> {
    let mut connections = nodes
        .iter()
        .map(|node| {
            let name = format!("node{}", node + 1);
            let connection = target.connect(*node, TIMEOUT);
            Ok((connection.with_context(|| format!("connecting to {name}"))?, name))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut findings = Findings::default();
    let mut contents = Vec::new();
    for (connection, name) in &mut connections {
        contents.push(read_all(connection).with_context(|| format!("reading all of {name}"))?);
    }
    for other in 1..contents.len() {
        let names: BTreeSet<String> =
            contents[0].keys().chain(contents[other].keys()).cloned().collect();
        for table in names {
            let (here, there) = (contents[0].get(&table), contents[other].get(&table));
            if here != there {
                let differing = match (here, there) {
                    (Some(_), Some(_)) => difference(&mut connections, other, &table)?,
                    _ => String::new(),
                };
                findings.add(
                    Anomaly::Diverged,
                    format!(
                        "{table}: {} {here:?}, {} {there:?}{differing}",
                        connections[0].1, connections[other].1
                    ),
                );
            }
        }
    }
    Ok(findings.finish())
}

/// The certifiers' states, as far as the provider tells of them: the same log, the same state.
pub fn certification(target: &dyn Target, nodes: &[usize]) -> Result<Vec<Finding>> {
    let end = Instant::now() + CERTIFIERS_LEVEL;
    loop {
        let states = nodes
            .iter()
            .map(|node| {
                let status = target.status(*node);
                let status = status.with_context(|| format!("asking node{}", node + 1))?;
                let get = |name: &str| status.get(name).unwrap_or_default().to_owned();
                Ok((get("wsrep_last_committed"), get("wsrep_quorate_cert_digest")))
            })
            .collect::<Result<Vec<_>>>()?;
        if states.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(Vec::new());
        }
        // Something (a view, say) may still be on its way.
        if Instant::now() > end {
            let mut findings = Findings::default();
            let evidence =
                format!("last committed and certifier's digest of nodes {nodes:?}: {states:?}");
            findings.add(Anomaly::Diverged, evidence);
            return Ok(findings.finish());
        }
        thread::sleep(POLL);
    }
}

fn read_all(connection: &mut Conn) -> mysql::Result<BTreeMap<String, Content>> {
    table_names(connection)?
        .into_iter()
        .map(|table| {
            let content = read_table(connection, &table)?;
            Ok((table.name, content))
        })
        .collect()
}

struct Table {
    name: String,
    /// Columns by which its rows have one order.
    key: String,
}

fn table_names(connection: &mut Conn) -> mysql::Result<Vec<Table>> {
    let query = format!(
        "SELECT CONCAT('`', table_schema, '`.`', table_name, '`'), \
           (SELECT GROUP_CONCAT('`', column_name, '`' ORDER BY ordinal_position) \
            FROM information_schema.key_column_usage AS k WHERE k.constraint_name = 'PRIMARY' \
            AND k.table_schema = t.table_schema AND k.table_name = t.table_name) \
         FROM information_schema.tables AS t \
         WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND \
         (table_schema NOT IN ('information_schema', 'performance_schema', 'sys', 'mysql') OR \
          table_schema = 'mysql' AND table_name IN ({SYSTEM_TABLES}))"
    );
    let names: Vec<(String, Option<String>)> = connection.query(query)?;
    // Replicated tables have a primary key; the first column is as good as any other for one
    // that has none.
    Ok(names
        .into_iter()
        .map(|(name, key)| Table { name, key: key.unwrap_or_else(|| "1".to_owned()) })
        .collect())
}

fn read_table(connection: &mut Conn, table: &Table) -> mysql::Result<Content> {
    let name = &table.name;
    let definition: Option<(String, String)> =
        connection.query_first(format!("SHOW CREATE TABLE {name}"))?;
    let definition = without_counter(&definition.unwrap_or_default().1);
    let mut digest = 0;
    let mut rows = 0;
    for row in connection.query_iter(format!("SELECT * FROM {name} ORDER BY {}", table.key))? {
        // Each row's digest goes into the next, so that order counts.
        digest = XxHash3_64::oneshot_with_seed(digest, shown(&row?).as_bytes());
        rows += 1;
    }
    Ok(Content { definition, rows, digest })
}

/// Each node hands out its own numbers of AUTO_INCREMENT, so where it stands may differ.
fn without_counter(definition: &str) -> String {
    let words = definition.split(' ').filter(|word| !word.starts_with("AUTO_INCREMENT="));
    words.collect::<Vec<_>>().join(" ")
}

fn shown(row: &Row) -> String {
    let values = (0..row.len()).map(|column| match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    });
    values.collect::<Vec<_>>().join("\t")
}

/// Rows that only one of the first node and `other` has.
fn difference(
    connections: &mut [(Conn, String)],
    other: usize,
    table: &str,
) -> mysql::Result<String> {
    let mut rows = |node: usize| -> mysql::Result<BTreeSet<String>> {
        let connection = &mut connections[node].0;
        connection
            .query_iter(format!("SELECT * FROM {table}"))?
            .map(|row| row.map(|row| shown(&row)))
            .collect()
    };
    let (here, there) = (rows(0)?, rows(other)?);
    let only = |title: String, rows: &BTreeSet<String>, others: &BTreeSet<String>| {
        let different: Vec<&String> = rows.difference(others).collect();
        let first: Vec<String> =
            different.iter().take(ROWS_SHOWN).map(|row| format!("\n    {row}")).collect();
        format!("\n  only on {title}: {} rows{}", different.len(), first.concat())
    };
    let name = |node: usize| connections[node].1.clone();
    Ok(only(name(0), &here, &there) + &only(name(other), &there, &here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_counter_stands_is_no_difference() {
        let text = "CREATE TABLE `t` (...) ENGINE=InnoDB AUTO_INCREMENT=17 DEFAULT CHARSET=utf8mb4";
        let expected = "CREATE TABLE `t` (...) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";
        assert_eq!(without_counter(text), expected);
    }
}
