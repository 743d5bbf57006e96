//! Ports: a fixed plan, and who is in the way when one is taken.

use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};

pub const DEFAULT_BASE: u16 = 3400;
/// Ports between two nodes.
const STRIDE: u16 = 10;

/// All on 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// MariaDB clients.
    pub client: u16,
    /// The group: consensus.
    pub group: u16,
    /// Incremental state transfer (`ist.recv_addr`).
    pub ist: u16,
    /// State transfer by script (`wsrep_sst_receive_address`).
    pub sst: u16,
}

impl Ports {
    /// As everywhere: for nodes that have an address each.
    pub const USUAL: Ports = Ports { client: 3306, group: 4567, ist: 4568, sst: 4444 };

    pub fn of(base: u16, number: u16) -> Ports {
        let first = base + STRIDE * number;
        Ports { client: first, group: first + 1, ist: first + 2, sst: first + 3 }
    }

    fn named(&self) -> [(&'static str, u16); 4] {
        [
            ("clients", self.client),
            ("the group", self.group),
            ("incremental state transfer", self.ist),
            ("state transfer", self.sst),
        ]
    }
}

/// An error that says which port is taken, and by which process, if any is.
pub fn check_free(node: &str, ports: &Ports) -> Result<()> {
    for (purpose, port) in ports.named() {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(
                "{node}: port {port} (for {purpose}) is in use by {}: stop that program, or make \
                 this cluster elsewhere with --base-port",
                holder(port).unwrap_or_else(|| "a process that cannot be seen from here".into())
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("{node}: listening on port {port}"))
            }
        }
    }
    Ok(())
}

/// The listening process, as `pid 123 (mariadbd)`.
fn holder(port: u16) -> Option<String> {
    let inode = listening_inode(port)?;
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid = process.file_name().to_str()?.parse::<u32>().ok()?;
        let files = fs::read_dir(process.path().join("fd")).ok()?;
        let has = files
            .flatten()
            .any(|file| fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == &*wanted));
        let name = || fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        has.then(|| format!("pid {pid} ({})", name().trim()))
    })
}

fn listening_inode(port: u16) -> Option<u64> {
    const LISTEN: &str = "0A";
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        fs::read_to_string(table).ok()?.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let local = u16::from_str_radix(fields.get(1)?.rsplit(':').next()?, 16).ok()?;
            let matches = local == port && *fields.get(3)? == LISTEN;
            matches.then(|| fields.get(9)?.parse().ok())?
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_named_with_its_holder() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = listener.local_addr().unwrap().port();
        let ports = Ports { client: taken, group: taken, ist: taken, sst: taken };
        let error = check_free("node1", &ports).unwrap_err().to_string();
        assert!(error.contains(&format!("node1: port {taken} (for clients)")), "{error}");
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
    }

    #[test]
    fn nodes_do_not_share_ports() {
        let (a, b) = (Ports::of(3400, 1), Ports::of(3400, 2));
        assert_eq!(a.client, 3410);
        assert!(a.sst < b.client);
    }
}
