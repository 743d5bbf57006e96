//! What an operator decides about a node, in the node's own words. Its host reads it from its options.

use crate::flow::Limits;
use quorate_certify::Packing;
use std::time::Duration;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Where the group's log is, for messages.
    pub log_dir: String,
    /// Bytes of write sets that wait in memory to be applied; read once.
    pub queue_bytes: usize,
    /// How large transactions are cut; read once.
    pub parts: PartSizes,
    /// How the data of write sets is packed.
    pub packing: Option<Packing>,
    /// Bytes of the longest write set of a local transaction.
    pub write_set_bytes_max: u64,
    /// Whether each conflict has a line in the server's log.
    pub log_conflicts: bool,
    /// Whether what only a developer wants to read has one.
    pub debug: bool,
    /// How long a read waits for what it must not miss, unless it says so itself.
    pub read_timeout: Duration,
    /// A read that must not miss anything is refused at once on a node that lags more than this.
    pub lag_max: Option<Duration>,
    /// When commits of this node's clients are answered, if the group asks for no more.
    pub consistency: Consistency,
    /// How long a commit waits for others at most.
    pub consistency_timeout: Duration,
    /// Flow control; `None`: off.
    pub flow: Option<Limits>,
    /// See `quorate_certify::votes`.
    pub vote_policy: u8,
    /// Whether isolated actions wait for the end of a state transfer from here.
    pub transfer_holds_isolated: bool,
    /// `None`: waits for a majority for ever.
    pub exit: Option<ExitPlan>,
}

/// What a client that is told of its commit can rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Consistency {
    /// It is safe, and in force on this node.
    #[default]
    Eventual,
    /// All nodes that are synced have applied it, too; or so many, this one included.
    After { at_least: Option<u8> },
}

/// More than any server lets a transaction have, and more than any is given.
pub const BYTES_MAX: u64 = 1 << 31;

/// How large transactions are cut, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartSizes {
    /// Shorter data stays in one piece: parts cost a round trip more.
    pub from: usize,
    pub part: usize,
    /// As much of them is on its way at once, over all sessions.
    pub window: usize,
}

impl Default for PartSizes {
    fn default() -> Self {
        Self { from: 4 << 20, part: 1 << 20, window: 8 << 20 }
    }
}

/// What to do without a majority, and how long after the loss of contact was reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExitPlan {
    pub timeout: Duration,
    pub tries: u32,
    pub interval: Duration,
    pub action: ExitAction,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitAction {
    /// Stays as it is, non-Primary, and returns by itself.
    ReadOnly,
    /// Gives its connection to the group up.
    Offline,
    /// Ends the server.
    Abort,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            log_dir: String::new(),
            queue_bytes: 64 << 20,
            parts: PartSizes::default(),
            packing: None,
            write_set_bytes_max: u64::MAX,
            log_conflicts: false,
            debug: false,
            read_timeout: Duration::from_secs(30),
            lag_max: None,
            consistency: Consistency::default(),
            consistency_timeout: Duration::from_secs(10),
            flow: None,
            vote_policy: 0,
            transfer_holds_isolated: true,
            exit: None,
        }
    }
}

/// What things are called by the host, for lines in its log.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The option that gives the position of the database at a start.
    pub start_position: &'static str,
    /// The command that prints it.
    pub recover: &'static str,
    /// The option that carries the node's options.
    pub options: &'static str,
    /// The command that begins a group.
    pub found: &'static str,
    /// What gives the connection to the group another try.
    pub reconnect: &'static str,
    /// Where else than in `read_only` one can see who the primary is.
    pub primary_shown: &'static str,
    /// The option that says how states are sent, and values of it that do.
    pub transfer_method: &'static str,
    pub transfer_methods: &'static str,
    /// The variable with the domain of GTIDs.
    pub gtid_domain: &'static str,
}

#[cfg(test)]
impl Words {
    pub fn for_tests() -> Self {
        let word = "word";
        Self {
            start_position: word,
            recover: word,
            options: word,
            found: word,
            reconnect: word,
            primary_shown: word,
            transfer_method: word,
            transfer_methods: word,
            gtid_domain: word,
        }
    }
}
