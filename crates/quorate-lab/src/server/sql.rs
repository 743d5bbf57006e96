//! Asking a running server, through its unix socket.

use mysql::prelude::Queryable;
use mysql::{Conn, DriverError, OptsBuilder};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A server that is stopped (SIGSTOP) or overloaded does not answer; nobody waits longer.
pub const STATUS_TIMEOUT: Duration = Duration::from_millis(1500);
/// A command may wait for an election or two.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// What a session is told whose order goes on after its statement; and how long, and how often looked at.
const GOES_ON: &str = "and goes on for up to";
const ORDER_TIMEOUT: Duration = Duration::from_secs(25);
const ORDER_LOOK: Duration = Duration::from_millis(50);
/// Given so that the driver does not ask for it: a server that has no primary view refuses.
const PACKET_BYTES_MAX: usize = 16 << 20;

/// Connects; every read and write is given up after `timeout`.
pub fn connect(socket: &Path, user: &str, timeout: Duration) -> mysql::Result<Conn> {
    let options = OptsBuilder::new()
        .socket(Some(socket.display().to_string()))
        .user(Some(user))
        .prefer_socket(false)
        .read_timeout(Some(timeout))
        .write_timeout(Some(timeout))
        .max_allowed_packet(Some(PACKET_BYTES_MAX));
    Conn::new(options)
}

/// The server's `wsrep_` status variables.
pub fn wsrep_status(socket: &Path, user: &str) -> mysql::Result<WsrepStatus> {
    WsrepStatus::ask(&mut connect(socket, user, STATUS_TIMEOUT)?)
}

/// Gives the node a command by way of its provider options. Its answer; the provider's own words if it
/// refuses.
pub fn command(socket: &Path, user: &str, name: &str, value: &str) -> anyhow::Result<String> {
    order(&mut connect(socket, user, COMMAND_TIMEOUT)?, name, value)
}

/// As [`command`], in a session that is there: each is shown the answers to its own orders only. Waits for an order
/// that goes on after its statement.
pub fn order(connection: &mut Conn, name: &str, value: &str) -> anyhow::Result<String> {
    let set = format!("SET GLOBAL wsrep_provider_options = '{name}={value}'");
    let Err(error) = connection.query_drop(set) else { return told(connection, "answer") };
    let late = format!("{name}={value}: ");
    let end = Instant::now() + ORDER_TIMEOUT;
    loop {
        let refusal = told(connection, "refusal")?;
        if let Some(refusal) = refusal.strip_prefix(&late) {
            anyhow::bail!("{refusal}");
        }
        if let Some(answer) = told(connection, "answer")?.strip_prefix(&late) {
            return Ok(answer.to_owned());
        }
        if refusal.is_empty() {
            return Err(error.into());
        }
        if !refusal.contains(GOES_ON) || Instant::now() >= end {
            anyhow::bail!("{refusal}");
        }
        // The server tells it to nobody by itself.
        thread::sleep(ORDER_LOOK);
    }
}

/// What this session was told last: its answer or refusal.
fn told(connection: &mut Conn, what: &str) -> anyhow::Result<String> {
    let shown: Option<(String, String)> =
        connection.query_first(format!("SHOW GLOBAL STATUS LIKE 'wsrep_quorate_last_{what}'"))?;
    Ok(shown.map(|(_, text)| text).unwrap_or_default())
}

/// Whether this account may not ask the server: it cannot reach the socket, or has no database account.
pub fn is_denied(error: &mysql::Error) -> bool {
    /// `ER_DBACCESS_DENIED_ERROR`, `ER_ACCESS_DENIED_ERROR`, `ER_ACCESS_DENIED_NO_PASSWORD_ERROR`.
    const DENIED: [u16; 3] = [1044, 1045, 1698];
    let kind = match error {
        mysql::Error::MySqlError(error) => return DENIED.contains(&error.code),
        mysql::Error::IoError(error) => error.kind(),
        mysql::Error::DriverError(DriverError::CouldNotConnect(Some((_, _, kind)))) => *kind,
        _ => return false,
    };
    kind == io::ErrorKind::PermissionDenied
}

#[derive(Clone, Debug, Default)]
pub struct WsrepStatus(HashMap<String, String>);

impl WsrepStatus {
    pub fn ask(connection: &mut Conn) -> mysql::Result<WsrepStatus> {
        let rows: Vec<(String, String)> =
            connection.query("SHOW GLOBAL STATUS LIKE 'wsrep\\_%'")?;
        Ok(WsrepStatus(rows.into_iter().collect()))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    pub fn is_synced(&self) -> bool {
        const SYNCED: i64 = 4;
        self.number("wsrep_local_state") == Some(SYNCED) && self.is_ready()
    }

    /// False while a new member only receives the log: its disk does not count for commits yet.
    /// Other providers have no such role.
    pub fn has_vote(&self) -> bool {
        !matches!(self.get("wsrep_quorate_role"), Some("Learner" | "None"))
    }

    /// The node says that it leads the group.
    pub fn leads(&self) -> bool {
        self.get("wsrep_quorate_role") == Some("Leader")
    }

    /// Whether the member of this name has become what it is to be: it counts for majorities, or
    /// is a learner for good.
    pub fn is_settled(&self, name: &str) -> bool {
        self.member(name).is_some_and(|member| member.contains(" joining=false"))
    }

    /// Whether the member of this name is meant to have no vote, rather than not to have one yet.
    pub fn is_learner(&self, name: &str) -> bool {
        let learns = self.member(name).is_some_and(|member| member.contains(" role=learner "));
        learns && self.is_settled(name)
    }

    /// What the node says of the member of this name.
    fn member(&self, name: &str) -> Option<&str> {
        let start = format!("name={name} ");
        let mut members = self.get("wsrep_quorate_members")?.split("; ");
        members.find(|member| member.starts_with(&start))
    }

    /// True if the node takes reads and writes.
    pub fn is_ready(&self) -> bool {
        self.get("wsrep_ready") == Some("ON")
    }

    /// As tools show it: `Synced`, `Donor/Desynced`, ...; `Non-primary` takes precedence.
    pub fn state(&self) -> &str {
        let comment = self.get("wsrep_local_state_comment").unwrap_or("");
        match self.get("wsrep_cluster_status") {
            Some("Primary") if comment.is_empty() => "Connected",
            Some("Primary") => comment,
            Some("non-Primary") => "Non-primary",
            _ if comment.is_empty() => "Disconnected",
            _ => comment,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_ask_is_told_apart_from_who_gets_no_answer() {
        let server = |code| {
            let (state, message) = ("28000".to_owned(), String::new());
            mysql::Error::MySqlError(mysql::error::MySqlError { state, message, code })
        };
        let socket = |kind| {
            let place = Some((String::new(), String::new(), kind));
            mysql::Error::DriverError(DriverError::CouldNotConnect(place))
        };
        assert!(is_denied(&server(1698)) && !is_denied(&server(1040)));
        assert!(is_denied(&socket(io::ErrorKind::PermissionDenied)));
        assert!(!is_denied(&socket(io::ErrorKind::ConnectionRefused)));
    }
}
