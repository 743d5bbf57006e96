//! Transfers between few accounts, in three ways, and reads of all accounts.

use super::client::{first, reading, transaction, Client};
use super::Workload;
use crate::check::{bank, Finding};
use crate::history::{Action, Operation};
use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::Conn;

const ACCOUNTS: u64 = 8;
const OPENING: i64 = 100;
const AMOUNT_MAX: u64 = 5;
const ALL: &str = "SELECT balance FROM lab.accounts ORDER BY id";

pub struct Bank;

impl Workload for Bank {
    fn name(&self) -> &'static str {
        "bank"
    }

    fn tables(&self) -> Vec<String> {
        vec![
            "CREATE TABLE lab.accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL) ENGINE=InnoDB"
                .to_owned(),
            format!(
                "INSERT INTO lab.accounts SELECT seq, {OPENING} FROM seq_0_to_{}",
                ACCOUNTS - 1
            ),
        ]
    }

    fn step(&self, client: &mut Client) -> Result<()> {
        if client.random.below(3) == 0 {
            let home = client.home;
            return client.attempt(
                home,
                |connection| reading(connection, |connection| connection.query(ALL)),
                |balances| Action::Balances(balances.unwrap_or_default()),
            );
        }
        let from = client.random.below(ACCOUNTS);
        let to = (from + 1 + client.random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let amount = 1 + client.random.below(AMOUNT_MAX) as i64;
        let way = client.random.below(3);
        let node = client.writer();
        client.attempt(
            node,
            |connection| {
                transaction(connection, |connection| {
                    change(connection, way, from, -amount)?;
                    change(connection, way, to, amount)
                })
            },
            |_| Action::Transfer { from: from as u32, to: to as u32, amount },
        )
    }

    fn read_final(&self, connection: &mut Conn) -> mysql::Result<Vec<Action>> {
        Ok(vec![Action::Balances(connection.query(ALL)?)])
    }

    fn check(&self, history: &[Operation]) -> Vec<Finding> {
        bank::check(history, OPENING)
    }
}

/// In place; or read and written back, with the row locked, or on the snapshot alone.
fn change(connection: &mut Conn, way: u64, account: u64, change: i64) -> mysql::Result<()> {
    let read = format!("SELECT balance FROM accounts WHERE id = {account}");
    let value = match way {
        0 => format!("balance + ({change})"),
        1 => (first::<i64>(connection, format!("{read} FOR UPDATE"))?.unwrap_or_default() + change)
            .to_string(),
        _ => (first::<i64>(connection, read)?.unwrap_or_default() + change).to_string(),
    };
    connection.query_drop(format!("UPDATE accounts SET balance = {value} WHERE id = {account}"))
}
