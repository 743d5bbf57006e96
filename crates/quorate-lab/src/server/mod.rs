//! A MariaDB server: what must be installed, where a node keeps what, its configuration, its
//! position, how it is asked. Shared by the lab and the command.

mod account;
mod config;
mod datadir;
pub mod error_log;
mod node;
mod ports;
mod recovery;
mod security;
mod software;
pub mod sql;

pub use account::Account;
pub use config::{common_options, write_config, Settings, SERVER_OPTIONS};
pub use datadir::{copy_datadirs, has_data, is_template, make_datadirs};
pub use node::Node;
pub use ports::{check_free, Ports, DEFAULT_BASE};
pub use recovery::{allow_bootstrap, recovered_position};
pub use security::{
    logger_arguments, make_key, make_secret, secret_in, security, transfer_options,
};
pub use software::{
    find_mariadbd, find_program, find_provider, missing, readable_provider, require_programs,
    runnable_program,
};

use anyhow::{Context, Result};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Software that must be installed first is missing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub(crate) String);

/// How a server is to find its beginning.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// A new group begins with it (`--wsrep-new-cluster`); our provider goes on with the old one
    /// if its log holds one.
    pub new_cluster: bool,
    /// Its data stands at this `uuid:seqno`; none: it needs a state transfer.
    pub position: Option<String>,
}

impl Start {
    /// Where a node that is not running stands. `group`: the uuid of the group that its template
    /// stands at the beginning of, once known.
    pub fn of(
        node: &Node,
        account: &Account,
        mariadbd: &Path,
        group: Option<&str>,
    ) -> Result<Start> {
        if !has_data(node) {
            return Ok(Start::default());
        }
        let position = match (recovered_position(node, account, mariadbd)?, group) {
            (Some(position), _) => Some(position),
            (None, Some(group)) if is_template(node) => Some(format!("{group}:0")),
            (None, _) => None,
        };
        Ok(Start { new_cluster: false, position })
    }

    /// The server's arguments.
    pub fn arguments(&self, node: &Node, account: &Account) -> Vec<String> {
        let mut arguments = vec![format!("--defaults-file={}", node.config().display())];
        if account.switch {
            arguments.push(format!("--user={}", account.name));
        }
        arguments.extend(self.own_arguments());
        arguments
    }

    /// Those that say where it begins.
    pub fn own_arguments(&self) -> Vec<String> {
        let new_cluster = self.new_cluster.then(|| "--wsrep-new-cluster".to_owned());
        let position = self.position.as_ref().map(|at| format!("--wsrep_start_position={at}"));
        new_cluster.into_iter().chain(position).collect()
    }
}

/// Makes the folders that a node's server needs.
pub fn make_folders(node: &Node, account: &Account) -> Result<()> {
    [node.dir.clone(), node.data(), node.tmp()].iter().try_for_each(|f| make_folder(f, account))
}

/// Makes a folder that is the account's alone.
pub fn make_folder(folder: &Path, account: &Account) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    if !account.is_another() {
        return account.own(folder, 0o700);
    }
    // The account owns what it is in, and could put a link there to what is none of its business.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::DIRECTORY).bits() as i32)
        .open(folder);
    let opened = opened.with_context(|| {
        format!("opening {} (it has to be a directory, and no link to one)", folder.display())
    })?;
    account.own_file(&opened, folder, 0o700)
}

/// Opens a node's error log for a server to be started. Made here and given away: the server
/// opens it only after it has changed its user.
pub fn open_error_log(node: &Node, account: &Account) -> Result<File> {
    let path = node.error_log();
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(&path)
        .with_context(|| format!("opening {}", path.display()))?;
    account.own_file(&log, &path, 0o640)?;
    Ok(log)
}
