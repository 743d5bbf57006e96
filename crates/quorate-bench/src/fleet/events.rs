//! The events of a MariaDB server's binary log, applied by that server once more: what they cost whoever applies them.

use super::{Fleet, USER};
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use std::time::{Duration, Instant};

/// A place in a binary log.
pub(crate) struct EventPlace {
    file: String,
    position: u64,
}

impl EventPlace {
    /// Where the next event will stand; `None`: the server has no binary log.
    pub fn next(connection: &mut Conn) -> Result<Option<EventPlace>> {
        let row: Option<Row> = connection.query_first("SHOW MASTER STATUS")?;
        let Some(row) = row else { return Ok(None) };
        let place =
            |row: &Row| Some(EventPlace { file: row.get("File")?, position: row.get("Position")? });
        place(&row).context("SHOW MASTER STATUS has no file and position").map(Some)
    }
}

impl Fleet {
    /// Has `member` apply all events of one database from a place of its own log on, in one session, and without
    /// logging them again. How long that took.
    pub(crate) fn apply_again(
        &self,
        member: usize,
        from: &EventPlace,
        database: &str,
        limit: Duration,
    ) -> Result<Duration> {
        let logs: Vec<(String, u64)> = self.connect(member)?.query("SHOW BINARY LOGS")?;
        let data = self.node(member).data();
        let files: Vec<String> = logs
            .into_iter()
            .map(|(name, _)| name)
            .skip_while(|name| *name != from.file)
            .map(|name| data.join(name).display().to_string())
            .collect();
        ensure!(!files.is_empty(), "the binary log {} is gone", from.file);
        let pipeline = format!(
            "mariadb-binlog --disable-log-bin --database={database} --start-position={} {} \
             | mariadb --no-defaults --binary-mode --user={USER} --socket={}",
            from.position,
            files.join(" "),
            self.socket(member).display()
        );
        let begin = Instant::now();
        let process = self.shell(member, &pipeline)?;
        let ended = process.wait_gone(limit)?;
        let success = process.exit_status().is_some_and(|status| status.success());
        ensure!(ended && success, "the events of {database} cannot be applied again");
        Ok(begin.elapsed())
    }
}
