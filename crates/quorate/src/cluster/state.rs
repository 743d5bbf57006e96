//! The state file, `quorate.json`: replaced as a whole, so a reader never sees half of it.

use super::Ports;
use crate::server::ProcessId;
use anyhow::{bail, Context, Result};
use clap::ValueEnum;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const FILE: &str = "quorate.json";
const FORMAT: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    pub format: u32,
    /// `wsrep_cluster_name`.
    pub name: String,
    pub base_port: u16,
    /// The group's uuid, once node1 began it.
    pub group: Option<String>,
    /// The provider that the user chose ...
    pub provider: PathBuf,
    /// ... and where the servers load it from.
    pub provider_loaded: PathBuf,
    /// What the user added to `wsrep_provider_options`.
    pub provider_options: String,
    pub mariadbd: PathBuf,
    /// The system account that the servers run as.
    pub account: String,
    pub nodes: Vec<NodeState>,
}

/// What a node joins as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Data, and a vote.
    Voter,
    /// Data, and no vote.
    Learner,
    /// A vote, and no data.
    Logger,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeState {
    pub name: String,
    /// Counts from 1, in the order of this list.
    pub number: u16,
    pub ports: Ports,
    /// It joins without a vote.
    #[serde(default)]
    pub learner: bool,
    /// It has a log and a vote, and no database; never a learner then.
    #[serde(default)]
    pub logger: bool,
    pub process: Option<ProcessId>,
}

impl NodeState {
    /// What it joined as.
    fn role(&self) -> Role {
        match (self.logger, self.learner) {
            (true, _) => Role::Logger,
            (false, true) => Role::Learner,
            (false, false) => Role::Voter,
        }
    }
}

impl State {
    pub fn new(base_port: u16, account: &str) -> State {
        State {
            format: FORMAT,
            name: "quorate".to_owned(),
            group: None,
            provider_loaded: PathBuf::new(),
            base_port,
            provider: PathBuf::new(),
            provider_options: String::new(),
            mariadbd: PathBuf::new(),
            account: account.to_owned(),
            nodes: Vec::new(),
        }
    }

    /// How many nodes were added as this.
    pub fn count(&self, role: Role) -> u16 {
        self.nodes.iter().filter(|node| node.role() == role).count() as u16
    }

    pub fn add_node(&mut self, role: Role) {
        let number = self.nodes.len() as u16 + 1;
        self.nodes.push(NodeState {
            name: format!("node{number}"),
            number,
            ports: Ports::of(self.base_port, number),
            learner: role == Role::Learner,
            logger: role == Role::Logger,
            process: None,
        });
    }

    /// `None`: the directory holds no cluster.
    pub fn read(dir: &Path) -> Result<Option<State>> {
        let path = dir.join(FILE);
        let text = match read_trusted(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("reading {} (is the cluster another user's?)", path.display())
                })
            }
        };
        let state: State = serde_json::from_slice(&text).with_context(|| {
            format!("{} is damaged; the nodes' data beside it is not touched", path.display())
        })?;
        if state.format != FORMAT {
            bail!(
                "{} has format {}, this command knows {FORMAT}: use the command that made it",
                path.display(),
                state.format
            );
        }
        Ok(Some(state))
    }

    pub fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(FILE);
        let new = dir.join(format!("{FILE}.new"));
        fs::write(&new, serde_json::to_vec_pretty(self)?)
            .and_then(|()| fs::rename(&new, &path))
            .with_context(|| format!("writing {}", path.display()))
    }

    pub fn exists(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }
}

/// The file names the programs that are started. As root nobody else's are.
fn read_trusted(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let owner = file.metadata()?.uid();
    if geteuid().is_root() && owner != 0 {
        let reason = format!(
            "it belongs to user {owner}, and root runs no programs that others name: give the command as that user"
        );
        return Err(io::Error::new(ErrorKind::PermissionDenied, reason));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(text)
}
