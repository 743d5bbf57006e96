//! What `check` is told.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    about = "Look whether servers are fit for a group, and what would be wrong with one",
    long_about = "Asks servers by SQL whether they are fit for a group, before anything is changed: their release, \
        tables that would not be replicated or have no primary key, settings, isolation level, clocks, and what \
        differs between them. A Galera cluster that is to go over is asked the same, with what is said of it \
        there; a group of Quorate at any time. Each finding says what to do.\n\n\
        It reads only. The account needs to see all tables (SELECT on *.*), and no more.\n\n\
        --disk FOLDER measures a sync of a disk of this host: of the one where quorate.dir is to be, on each \
        host.\n\n\
        Exit code 0: nothing to mend first. 1: something is (✗). 69: a server does not answer. 77: it refuses the \
        account or its password.\n\n\
        Examples:\n  quorate check 10.0.0.1 10.0.0.2 10.0.0.3 --user root --password-file pw\n  \
        quorate check 127.0.0.1 --disk /var/lib --json"
)]
pub struct Check {
    /// The servers, HOST or HOST:PORT (3306)
    #[arg(required = true, value_name = "SERVER", value_parser = server)]
    pub servers: Vec<String>,

    /// The account that asks
    #[arg(long, value_name = "USER", default_value = "root")]
    pub user: String,

    /// The file with its password in one line [default: $QUORATE_PASSWORD, or none]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// Measure how long a sync takes on the disk that this folder of this host is on
    #[arg(long, value_name = "FOLDER")]
    pub disk: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `HOST`, `HOST:PORT`, `[V6]:PORT` or a bare V6 address, with the port that it then has.
fn server(text: &str) -> Result<String, String> {
    const PORT: u16 = 3306;
    if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
        return Ok(format!("[{address}]:{PORT}"));
    }
    match text.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) =>
        {
            Ok(text.to_owned())
        }
        None if !text.is_empty() => Ok(format!("{text}:{PORT}")),
        _ => Err("a server is HOST or HOST:PORT".to_owned()),
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
    }
}
