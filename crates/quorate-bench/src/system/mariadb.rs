//! MariaDB by itself: one server, or a primary with replicas that read its binary log.

use super::{ask, owned, Ground, Hold, Program, System, REPLICATION_PASSWORD, REPLICATION_USER};
use crate::fleet::Fleet;
use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Row};

/// The member that is written to, as long as nobody changes that by hand.
const PRIMARY: usize = 0;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Replication {
    None,
    Asynchronous,
    SemiSynchronous,
}

pub(super) struct MariaDb {
    replication: Replication,
    /// "Double 1": redo log and binary log are synced at each commit.
    durable: bool,
    program: Program,
}

impl MariaDb {
    pub fn new(replication: Replication, durable: bool) -> MariaDb {
        MariaDb { replication, durable, program: Program::MariaDb }
    }

    fn synced(&self) -> &'static str {
        match self.durable {
            true => "1",
            false => "0",
        }
    }

    /// Makes a replica of a server that has everything up to its `gtid_slave_pos`.
    fn follow(&self, fleet: &Fleet, member: usize) -> Result<()> {
        let source = fleet.node(PRIMARY);
        let (host, port) = (source.host, source.ports.client);
        // By default a replica that lost its primary tries again only after a minute.
        let change = format!(
            "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, \
             MASTER_USER='{REPLICATION_USER}', MASTER_PASSWORD='{REPLICATION_PASSWORD}', \
             MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1"
        );
        let mut connection = fleet.connect(member)?;
        connection.query_drop(change)?;
        Ok(connection.query_drop("START SLAVE")?)
    }
}

impl System for MariaDb {
    fn name(&self) -> &'static str {
        match (self.replication, self.durable) {
            (Replication::None, true) => "standalone",
            (Replication::None, false) => "standalone-relaxed",
            (Replication::Asynchronous, _) => "async",
            (Replication::SemiSynchronous, _) => "semisync",
        }
    }

    fn title(&self) -> &'static str {
        match (self.replication, self.durable) {
            (Replication::None, true) => "MariaDB alone, double 1",
            (Replication::None, false) => "MariaDB alone, relaxed: a crash loses the last second",
            (Replication::Asynchronous, _) => "MariaDB, asynchronous, double 1",
            (Replication::SemiSynchronous, _) => "MariaDB, semi-synchronous, double 1",
        }
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn members(&self, asked: usize) -> usize {
        match self.replication {
            Replication::None => 1,
            _ => asked,
        }
    }

    fn options(&self, _ground: &Ground, member: usize) -> Result<Vec<(String, String)>> {
        let number = (member + 1).to_string();
        let mut options = owned([
            ("server_id", &number),
            ("log_bin", "binlog"),
            // As the others replicate.
            ("binlog_format", "ROW"),
            // As in the other systems of this server: else they would abort what this one lets pass.
            ("innodb_snapshot_isolation", "ON"),
            ("innodb_flush_log_at_trx_commit", self.synced()),
            ("sync_binlog", self.synced()),
        ]);
        if self.replication == Replication::None {
            return Ok(options);
        }
        options.extend(owned([
            // A replica is to be able to take the primary's place.
            ("log_slave_updates", "ON"),
            ("gtid_strict_mode", "ON"),
            ("slave_parallel_mode", "optimistic"),
            ("slave_parallel_threads", "4"),
        ]));
        if member != PRIMARY {
            options.extend(owned([("read_only", "ON")]));
        }
        if self.replication == Replication::SemiSynchronous {
            let role = match member {
                PRIMARY => "rpl_semi_sync_master_enabled",
                _ => "rpl_semi_sync_slave_enabled",
            };
            options.extend(owned([
                (role, "ON"),
                ("rpl_semi_sync_master_wait_point", "AFTER_SYNC"),
                // An hour: it never becomes asynchronous.
                ("rpl_semi_sync_master_timeout", "3600000"),
            ]));
        }
        Ok(options)
    }

    fn form(&self, fleet: &Fleet) -> Result<()> {
        fleet.members().try_for_each(|member| fleet.launch(member, &[]))?;
        for member in fleet.members() {
            let mut connection = fleet.wait_answer(member)?;
            if self.replication != Replication::None {
                make_account(&mut connection)?;
            }
        }
        let mut replicas = fleet.others(PRIMARY);
        replicas.try_for_each(|member| self.follow(fleet, member))
    }

    /// Replicas go on by themselves, from the position that is in their tables.
    fn start_again(&self, fleet: &Fleet, member: usize) -> Result<()> {
        fleet.launch(member, &[])
    }

    /// Streams a backup of the primary over the network, as the manual shows it.
    fn join(&self, fleet: &Fleet, member: usize) -> Result<()> {
        ensure!(member != PRIMARY, "{}: there is nobody to take the data from", self.name());
        fleet.receive_backup(PRIMARY, member)?;
        let data = fleet.node(member).data();
        let info = ["xtrabackup_binlog_info", "mariadb_backup_binlog_info"]
            .iter()
            .find_map(|name| std::fs::read_to_string(data.join(name)).ok())
            .context("the backup does not say where in the binary log it ends")?;
        let position = position_of_backup(&info)?;
        fleet.launch(member, &["--skip-slave-start".to_owned()])?;
        let mut connection = fleet.wait_answer(member)?;
        connection.query_drop(format!("SET GLOBAL gtid_slave_pos = '{position}'"))?;
        self.follow(fleet, member)
    }

    fn is_up(&self, connection: &mut Conn) -> Result<bool> {
        let Some(mut row) = connection.query_first::<Row, _>("SHOW SLAVE STATUS")? else {
            return Ok(true);
        };
        let mut field = |name: &str| row.take::<String, _>(name).unwrap_or_default();
        if field("Last_SQL_Errno") != "0" {
            bail!("the replica has stopped: {}", field("Last_SQL_Error"));
        }
        Ok(field("Slave_IO_Running") == "Yes" && field("Slave_SQL_Running") == "Yes")
    }

    fn primacy(&self, connection: &mut Conn) -> Result<Option<u64>> {
        Ok((ask(connection, "SELECT @@read_only")? == "0").then_some(0))
    }

    /// Only a replica looks at another member, its primary.
    fn view(&self, connection: &mut Conn) -> Result<String> {
        let row = connection.query_first::<Row, _>("SHOW SLAVE STATUS")?;
        let running = row.and_then(|mut row| row.take::<String, _>("Slave_IO_Running"));
        Ok(running.unwrap_or_default())
    }

    fn applied(&self, connection: &mut Conn) -> Result<u64> {
        count(&ask(connection, "SELECT @@gtid_current_pos")?)
    }

    fn durability(&self) -> Vec<(&'static str, &'static str)> {
        let mut variables = vec![
            ("innodb_flush_log_at_trx_commit", self.synced()),
            ("sync_binlog", self.synced()),
            ("log_bin", "ON"),
            ("binlog_format", "ROW"),
            ("innodb_snapshot_isolation", "ON"),
        ];
        if self.replication == Replication::SemiSynchronous {
            variables.push(("rpl_semi_sync_master_wait_point", "AFTER_SYNC"));
            variables.push(("rpl_semi_sync_master_timeout", "3600000"));
        }
        variables
    }

    fn relaxed(&self) -> Vec<(&'static str, &'static str)> {
        vec![("innodb_flush_log_at_trx_commit", "0"), ("sync_binlog", "0")]
    }

    fn tells(&self) -> &'static [&'static str] {
        match self.replication {
            Replication::None => &["innodb_buffer_pool_size"],
            _ => &["innodb_buffer_pool_size", "slave_parallel_mode", "slave_parallel_threads"],
        }
    }

    fn roles(&self) -> &'static [&'static str] {
        match self.replication {
            Replication::None => &[],
            Replication::Asynchronous => &["read_only"],
            Replication::SemiSynchronous => {
                &["read_only", "rpl_semi_sync_master_enabled", "rpl_semi_sync_slave_enabled"]
            }
        }
    }

    fn fails_over(&self) -> bool {
        false
    }

    fn is_multi_primary(&self) -> bool {
        false
    }

    /// Semi-synchronous replicas acknowledge what they have received.
    fn hold(&self) -> Option<Hold> {
        let hold = Hold { hold: "STOP SLAVE SQL_THREAD", release: "START SLAVE SQL_THREAD" };
        (self.replication != Replication::None).then_some(hold)
    }
}

/// On each server by itself: a semi-synchronous primary would wait for replicas that cannot come
/// without it.
fn make_account(connection: &mut Conn) -> Result<()> {
    connection.query_drop("SET SESSION sql_log_bin = OFF")?;
    connection.query_drop(format!(
        "CREATE USER {REPLICATION_USER}@'%' IDENTIFIED BY '{REPLICATION_PASSWORD}'"
    ))?;
    Ok(connection
        .query_drop(format!("GRANT REPLICATION SLAVE ON *.* TO {REPLICATION_USER}@'%'"))?)
}

/// The transactions of a GTID position, `domain-server-number,...`.
fn count(position: &str) -> Result<u64> {
    let numbers = position.split(',').filter(|part| !part.trim().is_empty()).map(|part| {
        let number = part.trim().rsplit('-').next().unwrap_or_default();
        number.parse::<u64>().with_context(|| format!("no GTID position: {position:?}"))
    });
    numbers.sum()
}

/// Of `file<tab>offset<tab>GTID position`, the last. A server that wrote nothing yet has none.
fn position_of_backup(info: &str) -> Result<&str> {
    let fields: Vec<&str> = info.trim_end_matches('\n').split('\t').collect();
    ensure!(fields.len() >= 2, "no position of a backup: {info:?}");
    Ok(fields.get(2).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_over_all_domains() {
        assert_eq!(count("").unwrap(), 0);
        assert_eq!(count("0-1-4711").unwrap(), 4711);
        assert_eq!(count("0-1-4711,1-3-2").unwrap(), 4713);
        assert!(count("0-1-x").is_err());
    }

    #[test]
    fn a_backup_tells_its_position() {
        assert_eq!(position_of_backup("binlog.000001\t342\t0-1-7\n").unwrap(), "0-1-7");
        assert_eq!(position_of_backup("binlog.000001\t342\t\n").unwrap(), "");
        assert!(position_of_backup("").is_err());
    }
}
