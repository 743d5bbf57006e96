//! A server's options that replication is served by, or harmed.
//!
//! Invariant: what `quorate setup` changes anyway is nothing to mend before: MariaDB's defaults are wrong for a member,
//! and right for a single server.

use super::{finding, provider, Finding, Weight};
use crate::check::facts::Facts;
use quorate_lab::server::SERVER_OPTIONS;

/// The bit of `wsrep_ignore_apply_errors` that stands for all errors of DDL.
const IGNORES_DDL: i64 = 4;

pub fn settings(facts: &Facts, found: &mut Vec<Finding>) {
    let is_member = provider(facts).is_some();
    for (name, wanted) in SERVER_OPTIONS {
        let has = facts.variable(name);
        let is = |value: &str| has.eq_ignore_ascii_case(value);
        let number: i64 = has.parse().unwrap_or(0);
        let weight_and_why = match name {
            "binlog_format" if !is("ROW") => (Weight::Error, "write sets are made of row events"),
            "innodb_autoinc_lock_mode" if number != 2 => {
                (Weight::Error, "appliers that insert into one table would wait for each other's locks for ever")
            }
            "default_storage_engine" if !is("InnoDB") => {
                (Weight::Warning, "new tables would not be replicated unless they name InnoDB")
            }
            "innodb_snapshot_isolation" if !is("ON") => {
                (Weight::Warning, "REPEATABLE READ loses updates, on a single server too")
            }
            "wsrep_ignore_apply_errors" if number & IGNORES_DDL != 0 => (
                Weight::Warning,
                "a server on which a DDL statement fails, because its disk is full, say, goes on without it, and differs \
                 from the others without a word",
            ),
            "innodb_flush_log_at_trx_commit" if number != 0 => (
                Weight::Note,
                "each commit waits for a sync of InnoDB's log, too; the group's log on a majority of disks is what \
                 makes it durable",
            ),
            "sync_binlog" if number != 0 => {
                (Weight::Note, "each commit waits for a sync of the binary log, too, where there is one")
            }
            "wsrep_slave_threads" if number < 2 => {
                (Weight::Warning, "write sets that do not touch the same rows are applied one after the other")
            }
            _ => continue,
        };
        let (weight, why) = weight_and_why;
        let (weight, advice) = match is_member {
            true => (weight, format!("set {name} = {wanted}")),
            false => (Weight::Note, format!("quorate setup writes {name} = {wanted}")),
        };
        found.push(finding(weight, format!("{name} is {has}: {why}"), advice));
    }
    if facts.variable("tx_isolation") == "SERIALIZABLE" {
        found.push(finding(
            Weight::Warning,
            "transactions are SERIALIZABLE on their own server only",
            "read what is to be serialized with FOR UPDATE, or write on one server (quorate.primary_mode=single)",
        ));
    }
    if facts.variable("lower_case_table_names") == "2" {
        found.push(finding(
            Weight::Warning,
            "lower_case_table_names is 2",
            "0 or 1, the same on all servers",
        ));
    }
}
