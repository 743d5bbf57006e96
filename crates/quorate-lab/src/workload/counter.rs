//! Additions to few counters: in place, and by reading and writing back.

use super::client::{first, statement, transaction, Client};
use super::Workload;
use crate::check::{counter, Finding};
use crate::history::{Action, Operation};
use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::Conn;

const COUNTERS: u64 = 4;

pub struct Counter;

impl Workload for Counter {
    fn name(&self) -> &'static str {
        "counter"
    }

    fn tables(&self) -> Vec<String> {
        vec![
            "CREATE TABLE lab.counters (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB"
                .to_owned(),
            format!("INSERT INTO lab.counters SELECT seq, 0 FROM seq_0_to_{}", COUNTERS - 1),
        ]
    }

    fn step(&self, client: &mut Client) -> Result<()> {
        let counter = client.random.below(COUNTERS);
        let way = client.random.below(3);
        let node = client.writer();
        let lock = if way == 1 { " FOR UPDATE" } else { "" };
        client.attempt(
            node,
            |connection| {
                let update = |value: &str| {
                    format!("UPDATE counters SET value = {value} WHERE id = {counter}")
                };
                if way == 0 {
                    return statement(connection, update("value + 1"));
                }
                transaction(connection, |connection| {
                    let read = format!("SELECT value FROM counters WHERE id = {counter}{lock}");
                    let value = first::<i64>(connection, read)?.unwrap_or_default();
                    connection.query_drop(update(&(value + 1).to_string()))
                })
            },
            |_| Action::Add { counter: counter as u32 },
        )
    }

    fn read_final(&self, connection: &mut Conn) -> mysql::Result<Vec<Action>> {
        let all = "SELECT value FROM lab.counters ORDER BY id";
        Ok(vec![Action::Counters(connection.query(all)?)])
    }

    fn check(&self, history: &[Operation]) -> Vec<Finding> {
        counter::check(history)
    }
}
