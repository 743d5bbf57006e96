//! What can go wrong with a member, grouped by where the remedy lies: its configuration, its disk,
//! the group, or the caller.

use quorate_consensus::Index;
use quorate_group::{OrderError, StartError};
use quorate_wal::{ReadError, WalError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

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
        "the file {} cannot be used for encryption: {reason}. Mend it, or the option that names it \
         (socket.ssl_cert, socket.ssl_key, socket.ssl_ca, socket.ssl_crl); no data is affected", .path.display()
    )]
    TlsFile { path: PathBuf, reason: String },
    #[error(
        "the file {} cannot be used for HTTPS: {reason}. Mend it, or the options that name certificate and key \
         (--tls-cert, --tls-key); neither the member nor its data is affected", .path.display()
    )]
    HttpsFile { path: PathBuf, reason: String },
    #[error(
        "this processor lacks what encryption needs here ({features}). Run the node on a newer one. Or, \
         inside a network of which every host is trusted, run the group with quorate.insecure=yes, and for its \
         log take out quorate.encrypt_key_file; nothing was started"
    )]
    TlsUnsupported { features: String },
    #[error(
        "none of the cipher suites of socket.ssl_cipher ({named}) is one of TLS 1.3, which members speak: name \
         some of {there}, or take the option out; nothing was started"
    )]
    Ciphers { named: String, there: String },
    #[error("'{name}' in {option} is neither a DNS name nor an IP address: correct it; nothing was changed")]
    BadName { name: String, option: &'static str },
    #[error(
        "{name} is a member by quorate.ssl_names, and an operator by quorate.operators: nobody is both. Take \
         it out of one of them; nothing was changed"
    )]
    TwoRoles { name: String },
    #[error(
        "quorate.operators would no longer list {names}. With quorate.ssl_names=*, whoever the CA signed is a member if it \
         is no operator: taken off the list, they would count as members. To take their rights away now, revoke their \
         certificates (socket.ssl_crl, then FLUSH SSL), or leave them :read. To take them off the list, restart all nodes \
         with the members' names in quorate.ssl_names; nothing was changed"
    )]
    OperatorAsMember { names: String },
    #[error("the others would not take this certificate: {reason}. The former one stays in use")]
    OtherName { reason: String },
    #[error("{reason}")]
    OperatorName { reason: String },
    #[error(
        "the file {} cannot be used as an operator's credential: {reason}", .path.display()
    )]
    OperatorFile { path: PathBuf, reason: String },
    #[error(
        "{what} of this node has {bytes} bytes, and the others take at most {most}: shorten it. Nothing was started, \
         no data is affected"
    )]
    LongName { what: &'static str, bytes: usize, most: usize },
    #[error("no TLS: {reason}")]
    Tls { reason: String },
    #[error(
        "the file {} cannot be used as the secret of the group: {reason}. Mend it, or \
         quorate.secret_file, which names it; nothing was started or changed", .path.display()
    )]
    SecretFile { path: PathBuf, reason: String },
    #[error(
        "the file {} cannot be used for encryption of the log: {reason}. Mend it, or \
         quorate.encrypt_key_file (of a logger: --encrypt-key-file), which names it; nothing was started or \
         changed", .path.display()
    )]
    DiskKeyFile { path: PathBuf, reason: String },
    #[error(
        "the log is to be encrypted (quorate.encrypt=yes, or the server's encryption is on), and there is no key: \
         make one ('quorate key new FILE') and name it in quorate.encrypt_key_file, or say quorate.encrypt=no. \
         Nothing was started or changed"
    )]
    NoDiskKey,
    #[error("the system gives no random numbers, which keys and secrets are made of")]
    NoEntropy,
    #[error(
        "nothing protects this node's group port: other hosts are to connect to {addr}, and whoever does \
         could read and change all data. Make a secret once ('quorate secret new FILE'), copy the file \
         to all nodes, and add quorate.secret_file=FILE to wsrep_provider_options (or certificates: \
         socket.ssl_cert, socket.ssl_key, socket.ssl_ca). In a network of which every host is trusted, \
         quorate.insecure=yes starts it as it is. Nothing was started, no data is affected"
    )]
    Unprotected { addr: String },
    #[error(
        "other hosts are to connect to {addr}, and whoever has any certificate of the CA in {}, for whatever \
         host, could read and change all data. Add the members' names (of their certificates) to \
         wsrep_provider_options: quorate.ssl_names=NAME,NAME (of a logger: --ssl-names). Where that CA signs for \
         this group alone, say quorate.ssl_names=*. Nothing was started, no data is affected", .ca.display()
    )]
    MembersUnnamed { addr: String, ca: PathBuf },
    #[error(transparent)]
    Start(#[from] StartError),

    // The disk.
    #[error("cannot read or write {path}: {source}. Check the disk and its permissions", path = .path.display())]
    Mark { path: PathBuf, source: io::Error },
    #[error(
        "this member's key {} cannot be read or written: {source}. Check the disk and its permissions; a \
         key that is damaged may be deleted, and a new one is made", .path.display()
    )]
    KeyFile { path: PathBuf, source: io::Error },
    #[error(
        "the file {} for state transfers cannot be read or written: {source}. Check the disk and its \
         permissions; it is made from the group's secret, and may be deleted", .path.display()
    )]
    TransferFile { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Wal(#[from] Arc<WalError>),
    #[error("cannot {action} the snapshot: {reason}")]
    Snapshot { action: &'static str, reason: String },
    #[error("{0}")]
    LogFailed(String),
    #[error("log index {index} was purged (the log starts after {base})")]
    Purged { index: Index, base: Index },

    // The group.
    #[error(transparent)]
    Order(OrderError),
    #[error("the member at {addr} does not say how it is: {reason}")]
    NoAnswer { addr: String, reason: String },
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

impl From<OrderError> for GroupError {
    fn from(error: OrderError) -> Self {
        match error {
            OrderError::Closed => GroupError::Closed,
            OrderError::LogFailed(what) => GroupError::LogFailed(what),
            other => GroupError::Order(other),
        }
    }
}
