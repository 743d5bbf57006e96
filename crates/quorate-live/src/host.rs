//! The layer above: what it applies, and what it is told.

use bytes::Bytes;
use quorate_consensus::{Charter, Index, MemberId, Rules, Term};
use quorate_group::{Committed, LogLevel, ServerStanding};
use quorate_latency::LatencyReport;
use quorate_wire::Standing;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What a state machine was at some place of the log, to be made bytes of on another thread, which has the time.
pub type Frozen = Box<dyn FnOnce() -> Bytes + Send>;

/// The layer above: everything is called by one thread at a time, in log order.
pub trait StateMachine: Send {
    /// An error stops the member: an entry that cannot be read is not passed over.
    fn apply(&mut self, entry: Committed) -> Result<(), String>;
    /// Whether applying this data is a moment's work, that waits for no disk and writes no line: then the thread that
    /// has heard of its commit does it at once.
    fn is_brief(&self, _data: &Bytes) -> bool {
        false
    }
    /// Everything up to `index` has been applied, entries that are not shown included: what
    /// `Group::barrier` returned is reached here.
    fn passed(&mut self, _index: Index) {}
    /// The whole state after the last applied entry, for members that must start from it and for
    /// this member's own restart. Nothing is applied meanwhile: what takes time is left to [`Frozen`].
    fn freeze(&mut self) -> Frozen;
    /// The first log index whose entry may still be read back (`Group::read`): the log is not
    /// purged from there on, however much there is. Asked together with each snapshot, and now and then while the log
    /// has no room.
    fn needs_from(&mut self) -> Index {
        Index::MAX
    }
    /// The first log index whose entry waits to be applied: from there on this member lags.
    fn lags_from(&mut self) -> Index {
        Index::MAX
    }
    /// How much log there is from [`StateMachine::lags_from`] on: told after each snapshot.
    fn kept(&mut self, _log: KeptLog) {}
    /// Whether the database above has what the log has not got yet, as far as this has seen it. `before`: whether that
    /// was so until now.
    fn is_unlogged(&self, before: bool) -> bool {
        before
    }
    /// Where the database above has more than this has seen: a copy of the state, to find out whether the log has the
    /// rest. What was committed was applied, and a crash may have come before the own disk had it.
    fn rehearsal(&mut self) -> Option<Box<dyn Rehearsal>> {
        None
    }
    /// Replaces the state (of a member that was too far behind for the log, or at start). `index`
    /// is the log index the snapshot stands for. A view that lists this member follows, even if
    /// nobody comes or goes.
    fn restore(&mut self, index: Index, snapshot: Bytes) -> Result<(), String>;
}

/// A copy of a state machine that tries entries on which may not be committed.
pub trait Rehearsal {
    /// Whether it has got to where the database is.
    fn reaches_database(&mut self, entry: Committed) -> Result<bool, String>;
}

/// The log from the first entry on that the layer above may still read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLog {
    pub bytes: u64,
    /// As much as there is to be.
    pub max: u64,
}

/// How a server is. The names of the fields are those of the report that operators get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerReport {
    /// In the words of `wsrep_local_state_comment`.
    pub state: String,
    /// It takes reads, and writes as far as `writes` says so.
    pub ready: bool,
    /// It takes writes of its clients. Of a release that says so.
    pub writes: Option<bool>,
    /// Last applied, and the last that is committed in the group as far as this node knows; -1: none.
    pub seqno: i64,
    pub committed: i64,
    /// Write sets that wait to be applied.
    pub queued: u64,
    /// How old the first of them is.
    pub lag_ms: u64,
    /// Transactions of its clients that are under way in the group.
    pub transactions: u64,
    /// Of a release that says so.
    pub commits: Option<CommitReport>,
    /// Of a release that says so.
    pub commit_latency: Option<CommitLatencyReport>,
}

/// What became of a server's own transactions: counters since its start, or since it was told to begin anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitReport {
    pub commits: u64,
    /// They failed certification: another write set came first.
    pub cert_failures: u64,
    /// They were in the way of a write set that came first.
    pub bf_aborts: u64,
    /// Of those, the ones that had passed certification, and were applied again.
    pub replays: u64,
}

/// How long the stages of a commit take at its origin, of transactions and of fragments of streaming ones:
/// counted since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitLatencyReport {
    /// From the proposal until the group has decided: it is on the disks of a majority, and certified.
    pub replicate: LatencyReport,
    /// From there until it is its turn to commit, after all that came before it.
    pub order: LatencyReport,
    /// The server's own commit.
    pub commit: LatencyReport,
}

impl CommitLatencyReport {
    /// Microseconds of all stages.
    pub fn sum_us(&self) -> u64 {
        self.replicate.sum_us + self.order.sum_us + self.commit.sum_us
    }
}

/// Local happenings, not part of the log; called on group threads, must not block, and must not
/// close the group.
pub trait Observer: Send + Sync {
    /// May this member, which belongs to no group yet, join the one with this id and charter? The
    /// reason why not is what [`crate::Group::wait_joined`] then fails with.
    fn may_join(&self, _group: u128, _charter: Charter) -> Result<(), String> {
        Ok(())
    }
    /// May somebody at this address connect? Asked before anything is read, on a thread of the connection's own;
    /// the answer holds for a second.
    fn admits(&self, _addr: IpAddr) -> bool {
        true
    }
    /// Whether that member may propose this: it can be read, and comes from that member by what it says of its
    /// origin. Asked of each proposal that another member forwards, on its connection's thread.
    fn may_propose(&self, member: MemberId, proposal: &Bytes) -> bool;
    /// The commit that the host is in the middle of, and that waits for nobody else: one that stays
    /// for seconds means that the host hangs, and should not lead. Asked several times a second.
    fn commit_under_way(&self) -> Option<i64> {
        None
    }
    /// How the server is that this member is part of; `None`: there is none, as of a logger. Asked by operators,
    /// on threads of their own.
    fn server(&self) -> Option<ServerReport> {
        None
    }
    /// How that server stands, for the other members; `None`: there is none. Asked several times a second.
    fn standing(&self) -> Option<Standing> {
        None
    }
    /// How the servers of all members stand, as far as that is known, this one's first. Once a second.
    fn standings(&self, _all: &[ServerStanding]) {}
    /// Clients of some other member wait for this one to apply what it has not applied: from now on
    /// [`crate::Group::stands`] is to be called with each step (true), or not (false).
    fn is_awaited(&self, _awaited: bool) {}
    /// Gives the database up: the server ends, and its next start fetches another's. `why` is a sentence. An error
    /// says why nothing was changed. Called on a thread of an operator's.
    fn start_over(&self, _why: &str) -> Result<(), String> {
        Err("it has no database that it could fetch anew".into())
    }
    /// Other rules hold for the group; also told at the start.
    fn rules(&self, _rules: Rules) {}
    /// `None`: no leader known. `leads`: this member does.
    fn leader(&self, term: Term, leader: Option<MemberId>, leads: bool);
    /// This member lost (false) or regained (true) contact with a quorum; see `primary_timeout`.
    /// After `true` a fresh View entry follows in the log.
    fn primary(&self, primary: bool);
    /// The log failed for good: this member has stepped down and acknowledges nothing any more.
    fn fatal(&self, message: String);
    /// Nothing that is committed is applied here any more, because this member's own disk does not give it back. In the
    /// log it still takes part; but it is of no use to clients, sees no view, and must not lead for long. So the host is
    /// to take leave, if it can.
    fn stuck(&self, message: String) {
        self.fatal(message);
    }
    fn log(&self, level: LogLevel, message: String);
}
