//! MySQL Group Replication, with a single primary.

use super::{ask, owned, Ground, Hold, Program, System, REPLICATION_PASSWORD, REPLICATION_USER};
use crate::fleet::Fleet;
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

const GROUP: &str = "7d3b9c1e-5f14-4c0e-9a37-2b1f0c6e8d55";
const GROUP_PORT: u16 = 33061;
/// Others keep a member that was killed for ten seconds, and do not let it in meanwhile.
const START_LIMIT: Duration = Duration::from_secs(90);
const RETRY: Duration = Duration::from_secs(1);
/// "The server is not configured properly to be an active member of the group", and what else keeps it
/// out for now.
const CANNOT_START: u16 = 3092;

pub(super) struct GroupReplication {
    name: &'static str,
    title: &'static str,
    consistency: &'static str,
    /// `group_replication_paxos_single_leader`, and `replica_parallel_workers`.
    tuning: [&'static str; 2],
    program: Program,
}

/// As its users get it, and as it was published.
const USUAL: [&str; 2] = ["OFF", "4"];
/// For a single primary: commits wait for the members that are nearest, and the applier's coordinator, which spins
/// while all workers are busy, does so less often.
const TUNED: [&str; 2] = ["ON", "16"];

impl GroupReplication {
    pub fn eventual(root: Option<PathBuf>) -> GroupReplication {
        let title = "MySQL Group Replication, EVENTUAL, double 1";
        GroupReplication::new("gr-eventual", title, "EVENTUAL", USUAL, root)
    }

    pub fn tuned(root: Option<PathBuf>) -> GroupReplication {
        let title = "MySQL Group Replication, EVENTUAL, tuned, double 1";
        GroupReplication::new("gr-tuned", title, "EVENTUAL", TUNED, root)
    }

    pub fn after(root: Option<PathBuf>) -> GroupReplication {
        let title = "MySQL Group Replication, AFTER, double 1";
        GroupReplication::new("gr-after", title, "AFTER", USUAL, root)
    }

    fn new(
        name: &'static str,
        title: &'static str,
        consistency: &'static str,
        tuning: [&'static str; 2],
        root: Option<PathBuf>,
    ) -> GroupReplication {
        GroupReplication { name, title, consistency, tuning, program: Program::MySql { root } }
    }

    /// Starts a server on a new datadir, and tells it how to fetch what it misses.
    fn prepare(&self, fleet: &Fleet, member: usize) -> Result<()> {
        fleet.launch(member, &[])?;
        let mut connection = fleet.wait_answer(member)?;
        let user = format!("{REPLICATION_USER}@'%'");
        for statement in [
            "SET SESSION sql_log_bin = OFF".to_owned(),
            format!("CREATE USER {user} IDENTIFIED BY '{REPLICATION_PASSWORD}'"),
            format!("GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN ON *.* TO {user}"),
            format!("GRANT GROUP_REPLICATION_STREAM ON *.* TO {user}"),
            format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_USER='{REPLICATION_USER}', \
                 SOURCE_PASSWORD='{REPLICATION_PASSWORD}' FOR CHANNEL 'group_replication_recovery'"
            ),
        ] {
            connection.query_drop(&statement).with_context(|| statement)?;
        }
        Ok(())
    }
}

impl System for GroupReplication {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn options(&self, ground: &Ground, member: usize) -> Result<Vec<(String, String)>> {
        let host = ground.nodes[member].host.to_string();
        let address = format!("{host}:{GROUP_PORT}");
        let seeds: Vec<String> =
            ground.nodes.iter().map(|node| format!("{}:{GROUP_PORT}", node.host)).collect();
        let number = (member + 1).to_string();
        let mut options = self.program.options();
        options.extend(owned([
            ("server_id", &number),
            ("report_host", &host),
            ("mysqlx", "OFF"),
            // The folder that Debian's build names is not there.
            ("secure_file_priv", "NULL"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("sync_binlog", "1"),
            ("log_bin", "binlog"),
            ("gtid_mode", "ON"),
            ("enforce_gtid_consistency", "ON"),
            ("plugin_load_add", "group_replication.so"),
            ("group_replication_group_name", GROUP),
            ("group_replication_local_address", &address),
            ("group_replication_group_seeds", &seeds.join(",")),
            ("group_replication_start_on_boot", "OFF"),
            // Passwords go over connections that are not encrypted.
            ("group_replication_recovery_get_public_key", "ON"),
            ("group_replication_single_primary_mode", "ON"),
            ("group_replication_consistency", self.consistency),
            ("group_replication_paxos_single_leader", self.tuning[0]),
            ("replica_parallel_workers", self.tuning[1]),
            // As published.
            ("group_replication_flow_control_mode", "DISABLED"),
        ]));
        Ok(options)
    }

    fn form(&self, fleet: &Fleet) -> Result<()> {
        fleet.members().try_for_each(|member| self.prepare(fleet, member))?;
        found(&mut fleet.connect(0)?)?;
        fleet.members().skip(1).try_for_each(|member| enter(&mut fleet.connect(member)?))
    }

    fn start_again(&self, fleet: &Fleet, member: usize) -> Result<()> {
        fleet.launch(member, &[])?;
        let mut others = fleet.others(member);
        let exists = others.any(|other| {
            fleet
                .try_connect(other)
                .is_ok_and(|mut connection| self.is_up(&mut connection).unwrap_or(false))
        });
        let mut connection = fleet.wait_answer(member)?;
        match exists {
            true => enter(&mut connection),
            false => found(&mut connection),
        }
    }

    /// A server without any data but its own.
    fn make_joiner(&self, fleet: &Fleet, member: usize) -> Result<()> {
        fleet.make_datadirs(&[member])?;
        self.prepare(fleet, member)
    }

    /// From the binary logs of the others, which is what is done by default.
    fn join(&self, fleet: &Fleet, member: usize) -> Result<()> {
        enter(&mut fleet.connect(member)?)
    }

    fn is_up(&self, connection: &mut Conn) -> Result<bool> {
        Ok(ask(connection, &own("COUNT(*)"))? == "1")
    }

    /// Of two, the one is that sees more of the group.
    fn primacy(&self, connection: &mut Conn) -> Result<Option<u64>> {
        let primary = ask(connection, &format!("{} AND MEMBER_ROLE = 'PRIMARY'", own("COUNT(*)")))?;
        if primary == "0" {
            return Ok(None);
        }
        let seen = "SELECT COUNT(*) FROM performance_schema.replication_group_members \
                    WHERE MEMBER_STATE = 'ONLINE'";
        Ok(Some(ask(connection, seen)?.parse()?))
    }

    fn view(&self, connection: &mut Conn) -> Result<String> {
        let states = "SELECT COALESCE(GROUP_CONCAT(CONCAT(MEMBER_HOST, ' ', MEMBER_STATE, ' ', \
                      MEMBER_ROLE) ORDER BY MEMBER_HOST), '') \
                      FROM performance_schema.replication_group_members";
        ask(connection, states)
    }

    fn applied(&self, connection: &mut Conn) -> Result<u64> {
        count(&ask(connection, "SELECT @@global.gtid_executed")?)
    }

    fn durability(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("innodb_flush_log_at_trx_commit", "1"),
            ("sync_binlog", "1"),
            ("log_bin", "ON"),
            ("group_replication_consistency", self.consistency),
            ("group_replication_flow_control_mode", "DISABLED"),
            ("group_replication_paxos_single_leader", self.tuning[0]),
            ("replica_parallel_workers", self.tuning[1]),
        ]
    }

    fn relaxed(&self) -> Vec<(&'static str, &'static str)> {
        vec![("innodb_flush_log_at_trx_commit", "0"), ("sync_binlog", "0")]
    }

    fn has_group_log(&self) -> bool {
        true
    }

    fn flow_control(&self, threshold: Option<u32>) -> Vec<String> {
        let set = |name: &str, value: &str| {
            format!("SET GLOBAL group_replication_flow_control_{name}={value}")
        };
        let Some(threshold) = threshold else { return vec![set("mode", "'DISABLED'")] };
        let limit = threshold.to_string();
        vec![
            set("applier_threshold", &limit),
            set("certifier_threshold", &limit),
            set("mode", "'QUOTA'"),
        ]
    }

    fn tells(&self) -> &'static [&'static str] {
        &[
            "innodb_buffer_pool_size",
            "replica_parallel_workers",
            "group_replication_single_primary_mode",
            "group_replication_paxos_single_leader",
            "group_replication_flow_control_mode",
        ]
    }

    fn roles(&self) -> &'static [&'static str] {
        &["super_read_only"]
    }

    fn fails_over(&self) -> bool {
        true
    }

    fn weigh(&self, fleet: &Fleet, weights: &[u8]) -> Result<()> {
        for (member, weight) in fleet.members().zip(weights) {
            let set = format!("SET GLOBAL group_replication_member_weight = {weight}");
            fleet.connect(member)?.query_drop(set)?;
        }
        Ok(())
    }

    fn is_multi_primary(&self) -> bool {
        false
    }

    /// The applier's channel cannot be stopped by itself while the member is in the group. And with AFTER a commit
    /// waits until all have applied it.
    fn hold(&self) -> Option<Hold> {
        (self.consistency == "EVENTUAL").then_some(Hold::READ_LOCK)
    }
}

/// Something of the member's own row, if it is online.
fn own(what: &str) -> String {
    format!(
        "SELECT {what} FROM performance_schema.replication_group_members \
         WHERE MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE'"
    )
}

/// Begins a group with this member, or begins it again when all were down.
fn found(connection: &mut Conn) -> Result<()> {
    connection.query_drop("SET GLOBAL group_replication_bootstrap_group = ON")?;
    let started = enter(connection);
    connection.query_drop("SET GLOBAL group_replication_bootstrap_group = OFF")?;
    started
}

/// Tries until the others let it in.
fn enter(connection: &mut Conn) -> Result<()> {
    let end = Instant::now() + START_LIMIT;
    loop {
        match connection.query_drop("START GROUP_REPLICATION") {
            Err(Error::MySqlError(error)) if error.code == CANNOT_START && Instant::now() < end => {
                thread::sleep(RETRY);
            }
            result => return result.context("START GROUP_REPLICATION"),
        }
    }
}

/// The transactions of a GTID set, `uuid:tag:1-5:7,...`.
fn count(set: &str) -> Result<u64> {
    let parts = set.split(',').flat_map(|of_uuid| of_uuid.trim().split(':').skip(1));
    let mut sum = 0;
    for part in parts.filter(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| -> Result<u64> {
            text.parse().with_context(|| format!("no GTID set: {set:?}"))
        };
        sum += number(last)? - number(first)? + 1;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_counted_with_their_holes() {
        assert_eq!(count("").unwrap(), 0);
        assert_eq!(count(&format!("{GROUP}:1-4711")).unwrap(), 4711);
        let set = format!("{GROUP}:1-10:12,\n3E11FA47-71CA-11E1-9E33-C80AA9429562:7-9:tag:1-2");
        assert_eq!(count(&set).unwrap(), 16);
        assert!(count("uuid:1-x").is_err());
    }
}
