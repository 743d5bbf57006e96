//! API skeleton (to be split into one file a story).

use bytes::Bytes;
use quorate_consensus::{Index, MemberId, Term};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// Log directory.
    pub dir: PathBuf,
    pub group_name: String,
    /// Where to listen, `host:port`.
    pub listen: String,
    /// What others are told to connect to.
    pub advertise: String,
    /// Peers to ask for admission (and to find the group at again), `host:port`.
    pub seeds: Vec<String>,
    /// Create a new group if (and only if) the directory holds no log.
    pub bootstrap: bool,
    pub name: String,
    /// Client address to show in views.
    pub incoming: String,
    pub election_timeout: Duration,
    /// Without a leader for this long the member reports that it is not primary.
    pub primary_timeout: Duration,
    /// A member silent for this long leaves the view (it stays a voter).
    pub suspect_timeout: Duration,
    pub segment_bytes: u64,
    pub retain_bytes: u64,
    pub proposal_bytes_max: usize,
}

/// Who is here, in join order; the same on every member at the same log index.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct View {
    /// Counts views since the group was made.
    pub number: u64,
    pub members: Vec<ViewMember>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewMember {
    pub id: MemberId,
    pub incarnation: u32,
    pub name: String,
    /// Client address.
    pub incoming: String,
    /// Group address.
    pub addr: String,
}

/// A committed entry for the layer above. `Noop` and `Config` entries are not shown.
#[derive(Clone, Debug)]
pub enum Committed {
    Data { index: Index, data: Bytes },
    View { index: Index, view: View },
}

/// The layer above: everything is called on the one sequencer thread, in log order.
pub trait StateMachine: Send {
    fn apply(&mut self, entry: Committed);
    /// The whole state after the last applied entry, for members that must start from it and for
    /// this member's own restart.
    fn snapshot(&mut self) -> Bytes;
    /// Replaces the state (of a member that was too far behind for the log, or at start). `index`
    /// is the log index the snapshot stands for.
    fn restore(&mut self, index: Index, snapshot: Bytes) -> Result<(), String>;
}

/// Local happenings, not part of the log; called on group threads, must not block.
pub trait Observer: Send + Sync {
    /// `None`: no leader known.
    fn leader(&self, term: Term, leader: Option<MemberId>);
    /// This member lost (false) or regained (true) contact with a quorum; see `primary_timeout`.
    /// After `true` a fresh View entry follows in the log.
    fn primary(&self, primary: bool);
    /// The log failed for good: this member has stepped down and acknowledges nothing any more.
    fn fatal(&self, message: String);
    fn log(&self, level: LogLevel, message: String);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// A running member. All methods may be called from any thread.
pub struct Group {}

#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    #[error("skeleton")]
    Skeleton,
}

/// Read from the directory before anything runs: what a restarted member can start from.
pub struct OpenInfo {
    pub member: MemberId,
    pub incarnation: u32,
    pub group: u128,
    /// True if the directory held no log before.
    pub fresh: bool,
}

impl Group {
    /// Opens the log directory, starts listening and all threads except the sequencer.
    pub fn open(_options: GroupOptions, _observer: Arc<dyn Observer>) -> Result<(Group, OpenInfo), GroupError> {
        todo!()
    }

    /// Blocks until this member belongs to a group (its configuration contains it) or `timeout`.
    pub fn wait_joined(&self, _timeout: Duration) -> Result<(), GroupError> {
        todo!()
    }

    /// Starts the sequencer thread: restores the newest local snapshot that `accept` takes (it
    /// decodes the snapshot bytes, newest first; index 0 = empty state, offered last if the log
    /// reaches back to index 1), then feeds committed entries after it.
    pub fn start(
        &self,
        _machine: Box<dyn StateMachine>,
        _accept: &mut dyn FnMut(Index, &Bytes) -> bool,
    ) -> Result<Index, GroupError> {
        todo!()
    }

    /// Queues a proposal and returns at once. It is sent again (same bytes) to each new leader
    /// until `decided(serial)`; so it may be committed more than once: the layer above drops
    /// duplicates by (member, incarnation, serial), which it puts into `data` itself.
    /// Serials are unique within this incarnation and ascending.
    pub fn propose(&self, _serial: u64, _data: Bytes) -> Result<(), GroupError> {
        todo!()
    }

    /// The sequencer saw this proposal committed, or the caller gives it up: stop sending it.
    pub fn decided(&self, _serial: u64) {
        todo!()
    }

    /// A linearizable read point: every entry committed before the call is at or below the
    /// returned index.
    pub fn barrier(&self, _timeout: Duration) -> Result<Index, GroupError> {
        todo!()
    }

    /// Reads committed entries back from the log (cache or disk): for appliers far behind.
    pub fn read(&self, _index: Index) -> Result<Bytes, GroupError> {
        todo!()
    }

    pub fn status(&self) -> GroupStatus {
        todo!()
    }

    /// Leaves the group: removed from the voters (dead voters first, where the rest would have no
    /// majority), and from the view. Then `close`. Past the timeout it stays a (dead) voter.
    pub fn leave(&self, _timeout: Duration) -> Result<(), GroupError> {
        todo!()
    }

    /// Stops and joins all threads. Idempotent.
    pub fn close(&self) {
        todo!()
    }
}

#[derive(Clone, Debug, Default)]
pub struct GroupStatus {
    pub member: MemberId,
    pub leader: Option<MemberId>,
    pub is_leader: bool,
    pub term: Term,
    pub last_index: Index,
    pub persisted_index: Index,
    pub commit_index: Index,
    pub applied_index: Index,
    pub voters: Vec<MemberId>,
    pub learners: Vec<MemberId>,
    pub log_bytes: u64,
    pub first_index: Index,
    pub syncs: u64,
    pub sync_us_avg: f64,
    pub sync_us_max: u64,
    pub primary: bool,
    pub proposals_pending: usize,
}
