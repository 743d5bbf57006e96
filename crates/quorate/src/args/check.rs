//! What `check` is told.

use super::Target;
use clap::Args;
use quorate_lab::server::Ports;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    about = "Check servers, hosts or a running group; each finding says what to do",
    long_about = "Checks whether servers are fit for a group, before anything is changed, and the state of a group, at \
        any time. It changes nothing. Each finding says what to do. What is checked depends on what you name. You can \
        name several of these at once:\n\n\
        SERVER...: the servers, asked by SQL: their release, tables that would not be replicated or have no primary \
        key, settings, isolation level, clocks, and what differs between them. They may be a Galera cluster that is \
        to be moved to Quorate. The account needs the right to read all tables (SELECT on *.*), and nothing \
        else.\n\n\
        --cluster NAME, --seed HOST:PORT: the members of a group, asked as an operator on the group's port, without \
        SQL: links between them that are cut, slow and uneven disks, releases and feature levels, certificates that \
        expire, lag, and which loss of a member or of a zone would stop all writes. If you name nothing, the cluster \
        on this machine is checked in this way.\n\n\
        --peers HOST,...: the network from this host to others, before anything is installed there: whether the \
        ports of the group (4567), of state transfers (4444) and of MariaDB (3306) can be reached, how long a round \
        trip takes, and which line a firewall lacks. Run it on each host, but not while a node joins: a node that \
        waits for its state transfer at 4444 takes the check for its donor, and has to start again.\n\n\
        --disk FOLDER: how long a sync takes on a disk of this host. Run it on each host, for the disk where \
        quorate.dir is to be.\n\n\
        Exit code 0: nothing to fix first. 1: something has to be fixed first (✗). 64: the command line is wrong. 66: \
        no such cluster. 69: a server, a member or a host does not answer. 77: a server refuses the account or its \
        password, or the group refuses the operator.\n\n\
        Examples:\n  quorate check 10.0.0.1 10.0.0.2 10.0.0.3 --user checker --password-file pw\n  \
        quorate check --peers 10.0.0.2,10.0.0.3 --disk /var/lib\n  \
        quorate check --cluster shop --json"
)]
pub struct Check {
    /// The servers to ask by SQL, HOST or HOST:PORT (3306)
    #[arg(value_name = "SERVER", value_parser = server)]
    pub servers: Vec<String>,

    /// The hosts to which the network is checked, HOST or HOST:PORT (the group's port, 4567)
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', value_parser = peer)]
    pub peers: Vec<String>,

    /// The account with which servers are asked
    #[arg(long, value_name = "USER", default_value = "root")]
    pub user: String,

    /// The file with the password of that account, in one line [default: $QUORATE_PASSWORD, or no password]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// Measure how long a sync takes on the disk of this folder of this host
    #[arg(long, value_name = "FOLDER")]
    pub disk: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub target: Target,
}

impl Check {
    /// Whether the members of a group are asked: one is named, or nothing is.
    pub fn asks_group(&self) -> bool {
        let names_others =
            !self.servers.is_empty() || !self.peers.is_empty() || self.disk.is_some();
        self.target.is_given() || !names_others
    }
}

fn server(text: &str) -> Result<String, String> {
    with_port(text, Ports::USUAL.client)
}

fn peer(text: &str) -> Result<String, String> {
    with_port(text, Ports::USUAL.group)
}

/// `HOST`, `HOST:PORT`, `[V6]:PORT` or a bare V6 address, with the port that it then has.
fn with_port(text: &str, usual: u16) -> Result<String, String> {
    if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
        return Ok(format!("[{address}]:{usual}"));
    }
    match text.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) =>
        {
            Ok(text.to_owned())
        }
        None if !text.is_empty() => Ok(format!("{text}:{usual}")),
        _ => Err("it is HOST or HOST:PORT".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_port_has_the_usual_one() {
        for (text, address) in [
            ("db1", "db1:3306"),
            ("db1:3307", "db1:3307"),
            ("10.0.0.1", "10.0.0.1:3306"),
            ("::1", "[::1]:3306"),
            ("[2001:db8::1]:4000", "[2001:db8::1]:4000"),
        ] {
            assert_eq!(server(text).as_deref(), Ok(address));
        }
        for bad in ["", ":3306", "db1:", "db1:0", "db1:x"] {
            assert!(server(bad).is_err(), "{bad}");
        }
        assert_eq!(peer("db1").as_deref(), Ok("db1:4567"));
    }
}
