//! What can go wrong with a member, grouped by where the remedy lies: its configuration, its disk,
//! the group, or the caller.

use quorate_consensus::Index;
use quorate_wal::{ReadError, WalError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    // The configuration.
    #[error(
        "cannot listen on {addr}: {source}. Another process (perhaps another node) uses this \
         group port, or the address is not this host's. Stop that process, or change the listen \
         address (base_host, base_port or gmcast.listen_addr) of this node; its data is not \
         affected"
    )]
    Listen { addr: String, source: io::Error },
    #[error(
        "node {node} was refused by {addr}: {reason}. Check the group name and the addresses of \
         the peers (wsrep_cluster_name, wsrep_cluster_address); no data was changed"
    )]
    Refused { node: String, addr: String, reason: String },

    #[error(
        "node {node} was told to create a new group, but {addr} belongs to a group named \
         '{group_name}' already ({group:032x}). Start this node without bootstrap \
         (--wsrep-new-cluster) to join that; nothing was changed"
    )]
    GroupExists { node: String, addr: String, group_name: String, group: u128 },
    #[error(
        "node {node} was told to create a new group, but whether there is one already cannot be \
         asked: somebody listens at {addr}, and does not say which group it belongs to ({reason}). \
         See to it that the node there answers (it may be starting or hanging, or its encryption \
         differs: socket.ssl), or take the address out of wsrep_cluster_address if it is no node \
         of this group; then start this node again. Nothing was changed"
    )]
    SeedUnclear { node: String, addr: String, reason: String },
    #[error("{reason}")]
    MustNotFound { reason: String },

    #[error(
        "the file {} cannot be used for encryption: {reason}. Mend it, or the option that names it \
         (socket.ssl_cert, socket.ssl_key, socket.ssl_ca); no data is affected", .path.display()
    )]
    TlsFile { path: PathBuf, reason: String },
    #[error(
        "this processor lacks '{feature}', which encryption (socket.ssl) needs here. Run the node on \
         a newer one, or the group without socket.ssl inside a protected network"
    )]
    TlsUnsupported { feature: &'static str },

    // The disk.
    #[error(
        "the log in {dir} has a membership at index {index} that this version does not read: \
         {reason}. Start the node with the version that wrote it; nothing was changed"
    )]
    UnreadableMembership { dir: PathBuf, index: Index, reason: String },
    #[error(
        "the log in {dir} ends at {last}, but this node has a snapshot of {snapshot}, which it took \
         when it had these entries on disk: they are lost, or the directory was put together from \
         two backups. The node acknowledged them, so it must not vote with this log; the other \
         members hold them. Move the directory away and start the node again: it rejoins as a new \
         member by state transfer",
        dir = .dir.display()
    )]
    LogLost { dir: PathBuf, last: Index, snapshot: Index },
    #[error(
        "the log directory {dir} is an older state of itself, or a copy: {reason}. An image of this \
         machine or a backup of the directory was restored, or the disk lost writes. What this node \
         acknowledged since is missing in it, so it must not vote with it; the other members hold \
         it. Move the directory away and start the node again: it rejoins as a new member, and \
         fetches the state where its database is too old",
        dir = .dir.display()
    )]
    RolledBack { dir: PathBuf, reason: String },
    #[error("cannot read or write {path}: {source}. Check the disk and its permissions", path = .path.display())]
    Mark { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Wal(#[from] Arc<WalError>),
    #[error("cannot {action} the snapshot: {reason}")]
    Snapshot { action: &'static str, reason: String },
    #[error("the log of this node has failed: {0}")]
    LogFailed(String),
    #[error("log index {index} was purged (the log starts after {base})")]
    Purged { index: Index, base: Index },

    // The group.
    #[error(
        "node {node} is not a member of the group after {waited:?}: {reason}. It goes on asking; \
         check that the peers run and that their addresses are right"
    )]
    NotJoined { node: String, waited: Duration, reason: String },
    #[error("the member at {addr} does not say how it is: {reason}")]
    NoAnswer { addr: String, reason: String },
    #[error("no leader answered within {waited:?}: {what}")]
    NoLeader { waited: Duration, what: String },
    #[error("leadership was not handed from {node} to {to}: {reason}. No data is affected")]
    Switchover { node: String, to: String, reason: String },
    #[error("node {node} does not go on alone: {reason}")]
    NotAlone { node: String, reason: String },
    #[error("node {node} cannot change the membership: {reason}")]
    Membership { node: String, reason: String },
    #[error(
        "node {node} cannot go on without the majority: {reason}. Nothing was given up; what the \
         nodes have in their logs is as it was"
    )]
    Forced { node: String, reason: String },
    #[error(
        "this node's own state cannot be continued from the log: the log starts after index \
         {log_base} and no snapshot of it fits the state. The state has to come from another node"
    )]
    NeedsStateTransfer { log_base: Index },

    // The caller.
    #[error("a proposal of {bytes} bytes is longer than the {limit} bytes of proposal_bytes_max")]
    TooLarge { bytes: usize, limit: usize },
    #[error("the state machine was started already")]
    AlreadyStarted,
    #[error("log index {index} is not written yet")]
    NotWritten { index: Index },
    #[error("the system has no thread to give (see the limits of the process)")]
    NoThreads,
    #[error("this member is closed")]
    Closed,
}

impl From<WalError> for GroupError {
    fn from(error: WalError) -> Self {
        GroupError::Wal(Arc::new(error))
    }
}

impl From<ReadError> for GroupError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Purged { index, base } => GroupError::Purged { index, base },
            ReadError::Wal(error) => GroupError::Wal(error),
        }
    }
}
