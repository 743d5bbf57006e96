//! What a cluster is to be.

use crate::disk;
use crate::net::Topology;
use crate::server::find_provider;
use anyhow::Result;
use std::path::{Path, PathBuf};

const GALERA: &str = "/usr/lib/galera/libgalera_smm.so";

/// What replicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum System {
    /// `libquorate.so` at this path.
    Quorate(PathBuf),
    /// Galera's provider at this path.
    Galera(PathBuf),
}

/// What a cluster is to be.
#[derive(Clone, Debug)]
pub struct Plan {
    pub system: System,
    pub nodes: usize,
    /// Servers besides, which have the data and no vote.
    pub learners: usize,
    /// Members besides, which have the log and a vote, and no data; they are counted after all
    /// servers.
    pub loggers: usize,
    /// The command that runs them (`quorate`).
    pub logger_program: PathBuf,
    pub topology: Topology,
    pub disk: disk::Options,
    /// Lines for `[mariadbd]` that win over the lab's own.
    pub server_options: String,
    /// `key=value;key=value`.
    pub provider_options: String,
    /// Servers whose wall clocks can be set: needs libfaketime.
    pub clocks: bool,
}

impl System {
    /// Quorate as built beside this program, or where `QUORATE_PROVIDER` says.
    pub fn quorate() -> Result<System> {
        let asked = std::env::var_os("QUORATE_PROVIDER").map(PathBuf::from);
        find_provider(asked.as_deref()).map(System::Quorate)
    }

    /// Galera as installed.
    pub fn galera() -> Result<System> {
        find_provider(Some(Path::new(GALERA))).map(System::Galera)
    }

    pub fn provider(&self) -> &Path {
        match self {
            System::Quorate(path) | System::Galera(path) => path,
        }
    }
}

impl Plan {
    /// Servers: with a vote, and without.
    pub fn servers(&self) -> usize {
        self.nodes + self.learners
    }

    /// Three nodes in one data centre.
    pub fn new(system: System) -> Plan {
        Plan {
            system,
            nodes: 3,
            learners: 0,
            loggers: 0,
            logger_program: PathBuf::from("quorate"),
            topology: Topology::Lan,
            disk: disk::Options::default(),
            server_options: String::new(),
            provider_options: String::new(),
            clocks: false,
        }
    }
}
