//! What clients do while things fail. Each workload makes its tables, knows one step of a client,
//! what to read at the end, and the checker for it.

mod append;
mod bank;
mod causal;
mod client;
mod counter;
mod ddl;
mod references;
mod set;

pub use client::{Client, Site, Writers};

use crate::check::{level, Finding};
use crate::history::{Action, Operation};
use anyhow::Result;
use mysql::Conn;

pub trait Workload: Send + Sync {
    fn name(&self) -> &'static str;

    /// Statements that make its tables, in the database `lab`.
    fn tables(&self) -> Vec<String>;

    /// Clients that work at each node.
    fn clients_per_node(&self) -> usize {
        1
    }

    /// Session settings of every connection.
    fn session(&self) -> &'static str {
        "SET SESSION lock_wait_timeout = 5, innodb_lock_wait_timeout = 5"
    }

    /// One operation (or none, if the node cannot be reached), recorded. An error is the
    /// recorder's.
    fn step(&self, client: &mut Client) -> Result<()>;

    /// What is there after all is healed.
    fn read_final(&self, connection: &mut Conn) -> mysql::Result<Vec<Action>>;

    /// What a complete history proves to be wrong.
    fn check(&self, history: &[Operation]) -> Vec<Finding>;

    /// [`Workload::check`], and that all nodes ended alike.
    fn judge(&self, history: &[Operation]) -> Vec<Finding> {
        let mut findings = self.check(history);
        findings.extend(level::check(history));
        findings
    }
}

/// Names of all workloads and what they do.
pub const NAMES: [(&str, &str); 9] = [
    ("set", "unique inserts: acknowledged = present, once, everywhere"),
    ("bank", "transfers: the total is the same in every read"),
    ("counter", "additions: none is lost, none counts twice"),
    ("append", "reads of lists and appends to them: isolation, by cycles of dependencies"),
    ("causal", "reads under wsrep_sync_wait: none is stale"),
    ("ddl", "inserts among ALTER, CREATE and DROP TABLE"),
    ("large", "transactions of thousands of rows among small ones"),
    ("bulky", "transactions of megabytes, which travel in parts, among small ones"),
    ("references", "foreign keys with cascading deletes"),
];

/// The workload of that name.
pub fn named(name: &str) -> Option<Box<dyn Workload>> {
    Some(match name {
        "set" => Box::new(set::Inserts::Unique),
        "large" => Box::new(set::Inserts::Large),
        "bulky" => Box::new(set::Inserts::Bulky),
        "bank" => Box::new(bank::Bank),
        "counter" => Box::new(counter::Counter),
        "append" => Box::new(append::Append::default()),
        "causal" => Box::new(causal::Causal),
        "ddl" => Box::new(ddl::Ddl),
        "references" => Box::new(references::References::default()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_workload_of_that_name() {
        for (name, _) in NAMES {
            assert_eq!(named(name).unwrap().name(), name);
        }
        assert!(named("none").is_none());
    }
}
