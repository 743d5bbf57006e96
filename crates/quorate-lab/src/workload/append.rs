//! Transactions of reads of lists and appends to them.
//!
//! Few lists are in use at a time, so that transactions meet; a list that is long enough is left
//! for a new one, so that reads stay small. Values come from one counter.

use super::client::{first, transaction, Client};
use super::Workload;
use crate::check::{append, Finding};
use crate::history::{Action, Operation, Step};
use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::Conn;
use std::sync::atomic::{AtomicU64, Ordering};

const LISTS_IN_USE: u64 = 5;
/// Appends after which all lists in use are left for new ones.
const GENERATION: u64 = 300;
const STEPS_MAX: u64 = 5;
/// Lists are spread over them.
const TABLES: u32 = 3;

#[derive(Default)]
pub struct Append {
    values: AtomicU64,
}

impl Workload for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn tables(&self) -> Vec<String> {
        let table = |number| {
            format!(
                "CREATE TABLE lab.lists{number} (id INT PRIMARY KEY, list LONGTEXT NOT NULL) \
                 ENGINE=InnoDB"
            )
        };
        (0..TABLES).map(table).collect()
    }

    fn clients_per_node(&self) -> usize {
        2
    }

    fn step(&self, client: &mut Client) -> Result<()> {
        let generation = self.values.load(Ordering::Relaxed) / GENERATION;
        let count = 1 + client.random.below(STEPS_MAX);
        let steps: Vec<Step> = (0..count)
            .map(|_| {
                let key = (generation * LISTS_IN_USE + client.random.below(LISTS_IN_USE)) as u32;
                match client.random.below(2) {
                    0 => Step::Read { key, list: None },
                    _ => {
                        Step::Append { key, value: self.values.fetch_add(1, Ordering::Relaxed) + 1 }
                    }
                }
            })
            .collect();
        let node = client.writer();
        let mut done = steps.clone();
        client.attempt(
            node,
            |connection| {
                transaction(connection, |connection| {
                    done.iter_mut().try_for_each(|step| run(connection, step))?;
                    Ok(done)
                })
            },
            |done| Action::Txn(done.unwrap_or(steps)),
        )
    }

    fn read_final(&self, connection: &mut Conn) -> mysql::Result<Vec<Action>> {
        let mut steps = Vec::new();
        for table in 0..TABLES {
            let query = format!("SELECT id, list FROM lab.lists{table} ORDER BY id");
            let lists: Vec<(u32, String)> = connection.query(query)?;
            steps.extend(
                lists.iter().map(|(key, list)| Step::Read { key: *key, list: Some(values(list)) }),
            );
        }
        Ok(vec![Action::Txn(steps)])
    }

    fn check(&self, history: &[Operation]) -> Vec<Finding> {
        append::check(history)
    }
}

fn run(connection: &mut Conn, step: &mut Step) -> mysql::Result<()> {
    match step {
        Step::Append { key, value } => connection.query_drop(format!(
            "INSERT INTO lists{} VALUES ({key}, '{value}') \
             ON DUPLICATE KEY UPDATE list = CONCAT(list, ',', '{value}')",
            *key % TABLES
        )),
        Step::Read { key, list } => {
            let query = format!("SELECT list FROM lists{} WHERE id = {key}", *key % TABLES);
            let text: Option<String> = first(connection, query)?;
            *list = Some(values(&text.unwrap_or_default()));
            Ok(())
        }
    }
}

fn values(list: &str) -> Vec<u64> {
    // What is no number is told as 0, which nobody appends: the checker reports it.
    list.split(',').filter(|word| !word.is_empty()).map(|word| word.parse().unwrap_or(0)).collect()
}
