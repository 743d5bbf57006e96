//! Each client writes a register of its own, and reads the others' on any node, under
//! `wsrep_sync_wait`.

use super::client::{first, reading, statement, Client};
use super::Workload;
use crate::check::{causal, Finding};
use crate::history::{Action, Operation};
use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::Conn;

pub struct Causal;

impl Workload for Causal {
    fn name(&self) -> &'static str {
        "causal"
    }

    fn tables(&self) -> Vec<String> {
        vec!["CREATE TABLE lab.registers (id INT PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB"
            .to_owned()]
    }

    fn session(&self) -> &'static str {
        "SET SESSION wsrep_sync_wait = 1, innodb_lock_wait_timeout = 5"
    }

    fn step(&self, client: &mut Client) -> Result<()> {
        if client.random.below(2) == 0 {
            let (register, node) = (client.process, client.writer());
            client.serial += 1;
            let value = client.serial;
            return client.attempt(
                node,
                |connection| {
                    // Never back: what hung on one node may be done after its successor.
                    let text = format!(
                        "INSERT INTO registers VALUES ({register}, {value}) \
                         ON DUPLICATE KEY UPDATE value = GREATEST(value, {value})"
                    );
                    statement(connection, text)
                },
                |_| Action::Write { register, value },
            );
        }
        // Clients of this workload are numbered from the same beginning, one for each node.
        let nodes = client.nodes() as u64;
        let lowest = client.process - client.home as u32;
        let register = lowest + client.random.below(nodes) as u32;
        let node = client.random.below(nodes) as usize;
        client.attempt(
            node,
            |connection| {
                reading(connection, |connection| {
                    first(connection, format!("SELECT value FROM registers WHERE id = {register}"))
                })
            },
            |value| Action::Read { register, value: value.flatten().unwrap_or_default() },
        )
    }

    fn read_final(&self, connection: &mut Conn) -> mysql::Result<Vec<Action>> {
        let all: Vec<(u32, u64)> =
            connection.query("SELECT id, value FROM lab.registers ORDER BY id")?;
        Ok(all.into_iter().map(|(register, value)| Action::Read { register, value }).collect())
    }

    fn check(&self, history: &[Operation]) -> Vec<Finding> {
        causal::check(history)
    }
}
