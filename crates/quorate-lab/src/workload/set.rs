//! Unique inserts: single rows and small groups of rows (`set`), or thousands of rows among single
//! ones (`large`), each in one transaction.

use super::client::{statement, transaction, Client};
use super::Workload;
use crate::check::{set, Finding};
use crate::history::{Action, IdSet, Operation};
use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::Conn;

const FEW_ROWS: u64 = 4;
const MANY_ROWS: u64 = 5000;
/// One transaction in this many is large: all rows are to be read at the end.
const LARGE_EVERY: u64 = 200;

pub struct Inserts {
    table: &'static str,
    large: bool,
}

impl Inserts {
    pub fn unique() -> Inserts {
        Inserts { table: "uniques", large: false }
    }

    pub fn large() -> Inserts {
        Inserts { table: "large", large: true }
    }
}

impl Workload for Inserts {
    fn name(&self) -> &'static str {
        if self.large {
            "large"
        } else {
            "set"
        }
    }

    fn tables(&self) -> Vec<String> {
        // The id is no unique key: what is applied twice must be seen to be there twice.
        vec![format!(
            "CREATE TABLE lab.{} (seq BIGINT AUTO_INCREMENT PRIMARY KEY, id BIGINT NOT NULL, \
             filler CHAR(100) NOT NULL, KEY (id)) ENGINE=InnoDB",
            self.table
        )]
    }

    fn clients_per_node(&self) -> usize {
        if self.large {
            1
        } else {
            2
        }
    }

    fn step(&self, client: &mut Client) -> Result<()> {
        let rows = match client.random.below(LARGE_EVERY) {
            0 if self.large => 500 + client.random.below(MANY_ROWS),
            1..=30 if !self.large => 2 + client.random.below(FEW_ROWS - 1),
            _ => 1,
        };
        let first = client.unique();
        client.serial += rows - 1;
        let (table, node) = (self.table, client.writer());
        let insert = format!("INSERT INTO {table} (id, filler)");
        client.attempt(
            node,
            |connection| match rows {
                1 => statement(connection, format!("{insert} VALUES ({first}, 'one')")),
                ..=FEW_ROWS => transaction(connection, |connection| {
                    (first..first + rows).try_for_each(|id| {
                        connection.query_drop(format!("{insert} VALUES ({id}, 'few')"))
                    })
                }),
                _ => statement(
                    connection,
                    format!("{insert} SELECT {first} + seq, 'many' FROM seq_0_to_{}", rows - 1),
                ),
            },
            |_| Action::Insert { first, rows: rows as u32 },
        )
    }

    fn read_final(&self, connection: &mut Conn) -> mysql::Result<Vec<Action>> {
        read_ids(connection, self.table)
    }

    fn check(&self, history: &[Operation]) -> Vec<Finding> {
        set::check(history)
    }
}

pub(super) fn read_ids(connection: &mut Conn, table: &str) -> mysql::Result<Vec<Action>> {
    let ids: Vec<u64> = connection.query(format!("SELECT id FROM lab.{table} ORDER BY id"))?;
    Ok(vec![Action::Present(IdSet::from_sorted(ids))])
}
