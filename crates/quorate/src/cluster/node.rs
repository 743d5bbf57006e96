//! Where one node keeps what.

use super::ports::Ports;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub number: u16,
    pub ports: Ports,
    pub dir: PathBuf,
}

impl Node {
    pub fn new(cluster_dir: &Path, number: u16, ports: Ports) -> Node {
        let name = format!("node{number}");
        let dir = cluster_dir.join(&name);
        Node { name, number, ports, dir }
    }

    /// Where clients connect by TCP.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.client)
    }

    pub fn config(&self) -> PathBuf {
        self.dir.join("my.cnf")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The consensus log.
    pub fn log(&self) -> PathBuf {
        self.dir.join("log")
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

    pub fn error_log(&self) -> PathBuf {
        self.dir.join("error.log")
    }
}
