//! What a member can be told.

use crate::config::{Config, ConfigChange};
use crate::level::{Level, LEVEL};
use crate::message::Message;
use crate::types::{Entry, HardState, Index, LogPosition, MemberId, Proposal, SnapshotMeta, Term};

/// Constants of one member. Times are milliseconds of the driver's monotonic clock.
#[derive(Clone, Debug)]
pub struct Options {
    pub id: MemberId,
    /// Silence of a leader after which another is elected; waits are up to a third longer.
    pub election_timeout_ms: u64,
    pub heartbeat_interval_ms: u64,
    /// Bytes of entries in one Append message.
    pub append_bytes_max: usize,
    /// Bytes (and messages) sent to one follower and not yet acknowledged.
    pub inflight_bytes_max: usize,
    pub inflight_messages_max: usize,
    /// Bytes of recent entries kept in memory for followers; unpersisted ones are always kept. What is in flight was
    /// sent already, so this may be less: a follower that has to be sent more of it again is sent it from the disk.
    pub recent_bytes_max: usize,
    /// A leader whose disk makes no progress for so long, though something waits, hands over.
    pub disk_stall_ms: u64,
    /// How far clocks of two members may drift apart during one election timeout.
    pub clock_drift_ms: u64,
    /// Whether a leader may answer reads from its lease, without a heartbeat round. A constant of
    /// the group. It has a price: a lease is a promise of the followers not to elect anybody else
    /// for an election timeout, so with it [`Event::Unreachable`] cannot cut a failover short.
    pub lease_reads: bool,
    /// The highest level that this member knows.
    pub level: Level,
    /// Must differ from start to start (it also numbers forwarded reads).
    pub seed: u64,
}

impl Options {
    /// Defaults for members of one region: election timeout 1 s, heartbeat each 200 ms, hand-over
    /// after a disk stood still for 1 s.
    pub fn new(id: MemberId, seed: u64) -> Self {
        Self {
            id,
            election_timeout_ms: 1000,
            heartbeat_interval_ms: 200,
            append_bytes_max: 1 << 20,
            inflight_bytes_max: 16 << 20,
            inflight_messages_max: 256,
            recent_bytes_max: 12 << 20,
            disk_stall_ms: 1000,
            clock_drift_ms: 100,
            lease_reads: false,
            level: LEVEL,
            seed,
        }
    }
}

/// What the disk says at start.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    pub hard_state: HardState,
    /// The snapshot before the first entry of the log (default: index 0 and an empty config).
    pub snapshot: SnapshotMeta,
    /// End of the log (all of it persisted).
    pub last: LogPosition,
    /// `(first index, term)` of each run of entries with the same term, ascending, covering
    /// `snapshot.last.index + 1 ..= last.index`.
    pub term_runs: Vec<(Index, Term)>,
    /// Every Config entry in the log, ascending.
    pub configs: Vec<(Index, Config)>,
    /// Everything up to here is known to be committed (e.g. the driver recorded it); 0 if unknown.
    pub commit: Index,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time passed. Drivers send it at least every quarter of the heartbeat interval.
    Tick,
    /// A message arrived.
    Receive(Message),
    /// Append these to the log, in order (leader only).
    Propose(Vec<Proposal>),
    /// The same for another member, whose clients wait for these.
    ProposeFor(MemberId, Vec<Proposal>),
    /// The log is on disk up to here: the log as it is *now*, counting every truncation and reset
    /// that the core wanted so far. A sync that was under way when entries were cut off says
    /// nothing of those, not even if the same entries were appended again meanwhile: the rewrite
    /// is on disk only when a sync that began after it has ended. The core cannot tell the two
    /// apart, and acknowledges what it is told. Drivers ask the log for the position under the
    /// lock under which they carry out effects, with no effects left to be carried out. A report
    /// may name less than is on disk.
    Persisted(LogPosition),
    /// The answer to [`crate::Fetch`]: consecutive entries from `from` on (at least one).
    Fetched { to: MemberId, from: Index, entries: Vec<Entry> },
    /// The entries asked for are no longer in the log: the peer needs a snapshot.
    FetchUnavailable { to: MemberId },
    /// A snapshot (received by the driver, already durable) is to replace the log.
    InstallSnapshot { from: MemberId, term: Term, meta: SnapshotMeta },
    /// The driver delivered (or failed to deliver) the snapshot asked for by `Effects::snapshots`.
    SnapshotSent { to: MemberId, last: Index, ok: bool },
    /// This member has nothing yet, and will not need the log from its beginning: it is sent a
    /// snapshot first, if the driver has one. Of no use unless this member leads.
    SnapshotWelcome(MemberId),
    /// Ask for a linearizable read point; answered in `Effects::reads` with the same `ctx`.
    ReadIndex { ctx: u64 },
    /// Change the membership (leader only; one change at a time).
    ChangeMembership(ConfigChange),
    /// An operator gives up a majority for lost. See `core/forced.rs` for what is asked of whom.
    ForceQuorum { keep: Vec<MemberId>, audit: String },
    /// Hand leadership to this voter that may lead (leader only).
    TransferLeadership(MemberId),
    /// This voter, the other of two, is gone and will not do the same: go on without it. For when
    /// that may be, see `core/alone.rs`.
    ContinueAlone(MemberId),
    /// There is a new connection to this peer: what was sent on the one before may be lost.
    Connected(MemberId),
    /// A new connection to this peer was refused: its process is gone. The end of a connection is
    /// not enough, a device between may cause it.
    Unreachable(MemberId),
    /// Part of a long message of this peer arrived: it lives, and what it says comes.
    Heard(MemberId),
    /// The log up to here was purged from disk (everything at or below is snapshotted).
    Compacted(LogPosition, Config),
    /// What this member leads for makes no progress (true), or does again: others should lead.
    HostHangs(bool),
    /// How far the database of a member (also of this one, as the others were told) is behind its log: 0 if hardly at
    /// all. `None`: that is not known any more. See `core/lags.rs`.
    Lag { member: MemberId, lag: Option<u8> },
    /// Whether clients wait, on whatever member, until others have applied what is committed: then all are told of a
    /// commit at once.
    Awaited(bool),
    /// The log disk of this member failed: give up leadership, do not stand again.
    StepDown,
}

/// Why an event was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    #[error("this member is not the leader (the leader is {leader:?})")]
    NotLeader { leader: Option<MemberId> },
    #[error("another membership change is still under way (log index {index})")]
    ChangePending { index: Index },
    #[error("{0}")]
    BadChange(String),
    /// `to` is not known while a member that may not lead looks for one that may.
    #[error("leadership is being transferred to {to:?}: proposals wait for the new leader")]
    Transferring { to: Option<MemberId> },
    /// The others may have what its disk has not, and the layer above go on; its memory holds all of it.
    #[error("the leader's own disk is {bytes} bytes behind: proposals wait for it")]
    DiskBehind { bytes: usize },
}

impl StepError {
    /// Whether a proposal is to be given again, to this leader or the next one.
    pub fn is_passing(&self) -> bool {
        matches!(self, StepError::Transferring { .. } | StepError::DiskBehind { .. })
    }
}
