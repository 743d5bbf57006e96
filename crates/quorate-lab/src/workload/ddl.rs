//! Inserts into a table whose columns and indexes come and go, beside tables that come and go.

use super::client::{statement, Client};
use super::set::read_ids;
use super::Workload;
use crate::check::{set, Finding};
use crate::history::{Action, Operation};
use anyhow::Result;
use mysql::Conn;

/// One statement in this many is DDL.
const DDL_EVERY: u64 = 100;
/// Columns, indexes and side tables that come and go, each.
const THINGS: u64 = 3;

pub struct Ddl;

impl Workload for Ddl {
    fn name(&self) -> &'static str {
        "ddl"
    }

    fn tables(&self) -> Vec<String> {
        vec![
            "CREATE TABLE lab.altered (seq BIGINT AUTO_INCREMENT PRIMARY KEY, id BIGINT NOT NULL, \
              KEY (id)) ENGINE=InnoDB"
                .to_owned(),
        ]
    }

    fn step(&self, client: &mut Client) -> Result<()> {
        let node = client.writer();
        if client.random.below(DDL_EVERY) > 0 {
            let first = client.unique();
            return client.attempt(
                node,
                |connection| {
                    statement(connection, format!("INSERT INTO altered (id) VALUES ({first})"))
                },
                |_| Action::Insert { first, rows: 1 },
            );
        }
        let thing = client.random.below(THINGS);
        let text = match client.random.below(6) {
            0 => {
                format!("ALTER TABLE altered ADD COLUMN IF NOT EXISTS c{thing} INT DEFAULT {thing}")
            }
            1 => format!("ALTER TABLE altered DROP COLUMN IF EXISTS c{thing}"),
            2 => format!("CREATE INDEX IF NOT EXISTS i{thing} ON altered (id, seq)"),
            3 => format!("DROP INDEX IF EXISTS i{thing} ON altered"),
            4 => {
                format!("CREATE TABLE IF NOT EXISTS side{thing} (a INT PRIMARY KEY) ENGINE=InnoDB")
            }
            _ => format!("DROP TABLE IF EXISTS side{thing}"),
        };
        client.attempt(
            node,
            |connection| statement(connection, &text),
            |_| Action::Statement(text.clone()),
        )
    }

    fn read_final(&self, connection: &mut Conn) -> mysql::Result<Vec<Action>> {
        read_ids(connection, "altered")
    }

    fn check(&self, history: &[Operation]) -> Vec<Finding> {
        set::check(history)
    }
}
