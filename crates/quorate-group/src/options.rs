//! What a member is, and how patient. Times are milliseconds.

use quorate_consensus::placement::Pace;
use quorate_consensus::{Charter, KeyId, Level, MemberId, MemberRole, Rules};

#[derive(Clone, Debug)]
pub struct Options {
    pub group_name: String,
    pub name: String,
    /// Group address that others are told to connect to.
    pub advertise: String,
    /// Client address to show in views.
    pub incoming: String,
    /// What its connections show.
    pub key: KeyId,
    /// Peers to ask for admission (and to find the group at again).
    pub seeds: Vec<String>,
    /// Create a new group if (and only if) there is no log.
    pub bootstrap: bool,
    /// Why this member must not found a group, should it be told to.
    pub objection: Option<String>,
    /// Of a group that this member founds.
    pub charter: Charter,
    pub rules: Rules,
    /// What this node is to be in a group that does not know it yet.
    pub role: MemberRole,
    pub priority: u8,
    pub zone: String,
    /// The state machine has no state yet: a snapshot is as good as all entries from the first on.
    pub blank: bool,
    pub election_timeout_ms: u64,
    /// A leader whose log disk makes no progress for so long hands over.
    pub disk_stall_ms: u64,
    /// A voter gone for so long is removed, if the others have a majority without it.
    pub expel_ms: Option<u64>,
    /// Without a leader for so long the member reports that it is not primary.
    pub primary_ms: u64,
    /// A member silent for so long leaves the view (it stays a voter).
    pub suspect_ms: u64,
    /// How slowly leadership follows the writes, where the rules want that.
    pub pace: Pace,
    /// Reads are answered by a leader's lease. Costs quick elections: see
    /// `quorate_consensus::Options`. The same at all members.
    pub lease_reads: bool,
    /// So much log calls for a snapshot.
    pub segment_bytes: u64,
    /// The highest feature level that this member knows (see `quorate_consensus::level`).
    pub level: Level,
    /// Names the log directory in messages.
    pub dir: String,
    /// Must differ from start to start.
    pub seed: u64,
}

impl Options {
    pub fn heartbeat_interval_ms(&self) -> u64 {
        (self.election_timeout_ms / 5).max(1)
    }

    pub(crate) fn consensus(&self, id: MemberId) -> quorate_consensus::Options {
        let election_timeout_ms = self.election_timeout_ms.max(10);
        quorate_consensus::Options {
            election_timeout_ms,
            heartbeat_interval_ms: self.heartbeat_interval_ms(),
            clock_drift_ms: election_timeout_ms / 10,
            disk_stall_ms: self.disk_stall_ms,
            lease_reads: self.lease_reads,
            level: self.level,
            ..quorate_consensus::Options::new(id, self.seed)
        }
    }
}
