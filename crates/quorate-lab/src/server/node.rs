//! Where one node keeps what.

use super::ports::Ports;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub number: u16,
    /// Where it listens, and where others reach it.
    pub host: IpAddr,
    pub ports: Ports,
    /// Its configuration, error log and socket.
    pub dir: PathBuf,
    /// Its data and its consensus log.
    pub disk: PathBuf,
}

impl Node {
    /// A node of a cluster on this machine, with everything in its folder of the cluster's.
    pub fn new(cluster_dir: &Path, number: u16, ports: Ports) -> Node {
        let name = format!("node{number}");
        let dir = cluster_dir.join(&name);
        Node { name, number, host: Ipv4Addr::LOCALHOST.into(), ports, disk: dir.clone(), dir }
    }

    /// Where clients connect by TCP.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.ports.client)
    }

    pub fn config(&self) -> PathBuf {
        self.dir.join("my.cnf")
    }

    pub fn data(&self) -> PathBuf {
        self.disk.join("data")
    }

    /// The consensus log.
    pub fn log(&self) -> PathBuf {
        self.disk.join("log")
    }

    pub fn tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("mariadb.sock")
    }

    pub fn pid_file(&self) -> PathBuf {
        self.dir.join("mariadbd.pid")
    }

    /// Where the group's members reach it.
    pub fn group_address(&self) -> String {
        format!("{}:{}", self.host, self.ports.group)
    }

    pub fn error_log(&self) -> PathBuf {
        self.dir.join("error.log")
    }
}
