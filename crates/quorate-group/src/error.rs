//! Why something asked for is not done.

use quorate_consensus::Index;
use std::time::Duration;

/// Why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    #[error(
        "node {node} was refused by {addr}: {reason}. Check the group name and the addresses of \
         the peers (wsrep_cluster_name, wsrep_cluster_address); no data was changed"
    )]
    Refused { node: String, addr: String, reason: String },
    #[error(
        "node {node} is not a member of the group after {waited:?}: {reason}. It goes on asking; \
         check that the peers run and that their addresses are right"
    )]
    NotJoined { node: String, waited: Duration, reason: String },
    #[error("no leader answered within {waited:?}: {what}. No data is affected; `quorate status` shows who leads")]
    NoLeader { waited: Duration, what: String },
    #[error("leadership was not handed from {node} to {to}: {reason}. No data is affected")]
    Switchover { node: String, to: String, reason: String },
    #[error(
        "what node {node} has committed is safe, but whether all others have applied it is not known after \
         {waited:?}: {reason}. A read there may not find it yet"
    )]
    NotApplied { node: String, waited: Duration, reason: String },
    #[error("node {node} does not go on alone: {reason}")]
    NotAlone { node: String, reason: String },
    #[error("node {node} cannot change the membership: {reason}")]
    Membership { node: String, reason: String },
    #[error(
        "node {node} cannot go on without the majority: {reason}. Nothing was given up; what the \
         nodes have in their logs is as it was"
    )]
    Forced { node: String, reason: String },
    #[error("{0}")]
    LogFailed(String),
    #[error("this member is closed")]
    Closed,
}

/// Why a member cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
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
        "the log in {dir} has a membership at index {index} that this version does not read: \
         {reason}. Start the node with the version that wrote it; nothing was changed"
    )]
    UnreadableMembership { dir: String, index: Index, reason: String },
    #[error(
        "the log in {dir} ends at {last}, but this node has a snapshot of {snapshot}, which it took \
         when it had these entries on disk: they are lost, or the directory was put together from \
         two backups. The node acknowledged them, so it must not vote with this log; the other \
         members hold them. Empty the directory (keep a copy) and start the node again: it rejoins as a new \
         member by state transfer"
    )]
    LogLost { dir: String, last: Index, snapshot: Index },
    #[error(
        "the log directory {dir} is an older state of itself, or a copy: {reason}. An image of this \
         machine or a backup of the directory was restored, or the disk lost writes. What this node \
         acknowledged since is missing in it, so it must not vote with it; the other members hold \
         it. Empty the directory (keep a copy) and start the node again: it rejoins as a new member, and \
         fetches the state where its database is too old"
    )]
    RolledBack { dir: String, reason: String },
}

/// Whoever passes over what others apply has another state than they.
pub(crate) fn unreadable(node: &str, index: Index, reason: &str) -> String {
    format!(
        "node {node} cannot read log index {index}, and stops rather than pass over it: {reason}. \
         Nothing is lost, and the other members are not affected"
    )
}

/// Nothing that a host with such a memory says can be relied on.
pub fn memory_fault(node: &str, what: &str) -> String {
    format!(
        "the memory of node {node} is at fault: {what} is not what was proposed (its checksum does \
         not fit). It was not applied, and the node goes out of service; the other members are not \
         affected. Have the memory of its host tested before it is started again"
    )
}
