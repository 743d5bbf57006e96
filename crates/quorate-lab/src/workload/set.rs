//! Unique inserts, each in one transaction: single rows and small groups of rows (`set`), thousands of
//! rows among single ones (`large`), or megabytes among single rows (`bulky`), which replicate in parts.

use super::client::{statement, transaction, Attempt, Client};
use super::Workload;
use crate::check::{set, Finding};
use crate::history::{Action, IdSet, Operation};
use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::Conn;
use std::ops::Range;

const FEW_ROWS: u64 = 4;
const MANY_ROWS: u64 = 5000;
/// One transaction in this many is large: all rows are to be read at the end.
const LARGE_EVERY: u64 = 200;
/// One in this many has [`BULKY_ROWS`] or twice as many: the nodes' disks are in memory, and the group's log
/// keeps what it has for a while.
const BULKY_EVERY: u64 = 1500;
/// More than is replicated in one piece.
const BULKY_ROWS: u64 = 5;
const BODY_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inserts {
    Unique,
    Large,
    Bulky,
}

impl Inserts {
    fn table(self) -> &'static str {
        match self {
            Inserts::Unique => "uniques",
            Inserts::Large => "large",
            Inserts::Bulky => "bulky",
        }
    }

    /// How many rows the next transaction inserts.
    fn rows(self, client: &mut Client) -> u64 {
        let random = &mut client.random;
        match self {
            Inserts::Unique if random.below(LARGE_EVERY) < 30 => 2 + random.below(FEW_ROWS - 1),
            Inserts::Large if random.below(LARGE_EVERY) == 0 => 500 + random.below(MANY_ROWS),
            Inserts::Bulky if random.below(BULKY_EVERY) == 0 => {
                BULKY_ROWS + random.below(BULKY_ROWS)
            }
            _ => 1,
        }
    }
}

impl Workload for Inserts {
    fn name(&self) -> &'static str {
        match self {
            Inserts::Unique => "set",
            Inserts::Large => "large",
            Inserts::Bulky => "bulky",
        }
    }

    fn tables(&self) -> Vec<String> {
        // The id is no unique key: what is applied twice must be seen to be there twice.
        vec![format!(
            "CREATE TABLE lab.{} (seq BIGINT AUTO_INCREMENT PRIMARY KEY, id BIGINT NOT NULL, \
             filler CHAR(100) NOT NULL, body MEDIUMBLOB, KEY (id)) ENGINE=InnoDB",
            self.table()
        )]
    }

    fn clients_per_node(&self) -> usize {
        match self {
            Inserts::Unique => 2,
            Inserts::Large | Inserts::Bulky => 1,
        }
    }

    fn step(&self, client: &mut Client) -> Result<()> {
        let rows = self.rows(client);
        let first = client.unique();
        client.serial += rows - 1;
        let (table, node) = (self.table(), client.writer());
        let insert = format!("INSERT INTO {table} (id, filler)");
        let own = client.first_unique()..first;
        let seed = client.random.below(u64::MAX);
        client.attempt(
            node,
            |connection| match rows {
                1 => statement(connection, format!("{insert} VALUES ({first}, 'one')")),
                _ if *self == Inserts::Bulky => {
                    insert_bulky(connection, table, own, first..first + rows, seed)
                }
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
        read_ids(connection, self.table())
    }

    fn check(&self, history: &[Operation]) -> Vec<Finding> {
        set::check(history)
    }
}

/// Inserts these ids with bodies, and takes the bodies of its `own` earlier ones away.
fn insert_bulky(
    connection: &mut Conn,
    table: &str,
    own: Range<u64>,
    ids: Range<u64>,
    seed: u64,
) -> Attempt<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut body = vec![0; BODY_BYTES];
    transaction(connection, |connection| {
        connection.query_drop(format!(
            "UPDATE {table} SET body = NULL WHERE id >= {} AND id < {} AND body IS NOT NULL",
            own.start, own.end
        ))?;
        for id in ids {
            // Every other one is worth compressing.
            match id % 2 {
                0 => random.fill(&mut body),
                _ => body.fill(b'b'),
            }
            let insert = format!("INSERT INTO {table} (id, filler, body) VALUES (?, 'bulky', ?)");
            connection.exec_drop(insert, (id, &body))?;
        }
        Ok(())
    })
}

pub(super) fn read_ids(connection: &mut Conn, table: &str) -> mysql::Result<Vec<Action>> {
    let ids: Vec<u64> = connection.query(format!("SELECT id FROM lab.{table} ORDER BY id"))?;
    Ok(vec![Action::Present(IdSet::from_sorted(ids))])
}
