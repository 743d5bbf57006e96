//! What a member wants done. The driver carries it out in the order of the fields.

use crate::config::Config;
use crate::message::Message;
use crate::progress::has_caught_up;
use crate::types::{Entry, HardState, Index, LogPosition, MemberId, SnapshotMeta, Term};

/// The effects of one step (or of several in a row); the driver carries them out, clears the value
/// and reuses it.
///
/// Order: persist `hard_state` (if any) *before* anything else is done; then `reset_log`, then
/// `truncate_from`, then `append` are handed to the log (in that order, without waiting for the
/// disk); `messages` may leave at once, in parallel to the log's sync. The core sends
/// acknowledgements only after [`crate::Event::Persisted`].
#[derive(Default, Debug)]
pub struct Effects {
    pub hard_state: Option<HardState>,
    /// A snapshot was accepted: the log restarts after `meta.last`.
    pub reset_log: Option<SnapshotMeta>,
    /// Entries from here on were overwritten by a new leader: cut them off before appending.
    pub truncate_from: Option<Index>,
    pub append: Vec<Entry>,
    pub messages: Vec<Message>,
    /// The commit index moved to here. A majority has it on disk; this member's own sync of the
    /// last entries may still be under way (see [`Status::persisted`]).
    pub commit: Option<Index>,
    /// Read these from the log and come back with `Fetched` or `FetchUnavailable`.
    pub fetches: Vec<Fetch>,
    /// Peers whose next entry is no longer in the log: send them a snapshot.
    pub snapshots: Vec<MemberId>,
    pub reads: Vec<ReadReady>,
    /// Members that have less on disk than they acknowledged to this leader in this term: what they
    /// are made of was rolled back or lost, and they must not vote.
    pub lost_entries: Vec<MemberId>,
    /// What did not count, because of who said it, or because nobody can have said it.
    pub rejected: Vec<Rejected>,
    /// Role, term or leader changed.
    pub role: Option<RoleState>,
    /// The configuration in force changed (appended, committed, or rolled back by truncation).
    pub config: Option<Config>,
    /// This member cannot go on: the driver takes it out of service and says so.
    pub fault: Option<Fault>,
    /// Proposals refused because leadership ended are simply lost: the driver proposes them again
    /// to the next leader. This only says that it happened.
    pub stepped_down: bool,
}

/// A message of a peer that did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub from: MemberId,
    pub objection: Objection,
}

/// Why a message did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Objection {
    /// No honest member can have said it.
    Unsound,
    /// Its term is so far ahead that nothing can have led to it.
    Leap,
    /// It begins another term while there is, or may be, a leader, and its sender has no vote as far as is known.
    NoVoter,
    /// The term has another leader.
    SecondLeader,
    /// It is an answer from a later term, and its sender has no vote.
    Ahead,
    /// It is an answer, and its sender is in no configuration that may be in force.
    Stranger,
    /// It acknowledges what was never sent.
    NeverSent,
    /// It has other entries where this member knows that its own are committed.
    Contradicts,
}

/// Why a member cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The entry is in this member's memory, and is not what was proposed any more.
    Altered { index: Index },
    /// A membership came that this release cannot read, or whose level it does not know.
    Unreadable { index: Index, reason: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    pub to: MemberId,
    pub from: Index,
    pub bytes_max: usize,
}

/// `index == None`: no leader could confirm the read; ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadReady {
    pub ctx: u64,
    pub index: Option<Index>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleState {
    Follower { term: Term, leader: Option<MemberId> },
    PreCandidate { term: Term },
    Candidate { term: Term },
    Leader { term: Term },
}

/// A look inside, for status output, policies of the driver, and checkers.
#[derive(Clone, Debug)]
pub struct Status {
    pub id: MemberId,
    pub role: RoleState,
    pub term: Term,
    pub leader: Option<MemberId>,
    pub last: LogPosition,
    pub persisted: Index,
    pub commit: Index,
    /// So much is committed by the word of this term's leader, or more: this member may not have it yet.
    pub commit_told: Index,
    pub config: Config,
    pub config_index: Index,
    /// Leader only: what it knows of each other member.
    pub peers: Vec<PeerStatus>,
    /// Whether a quorum answered a heartbeat of this leader so recently that nobody else can have
    /// been elected by timeout. Answers reads only with [`crate::Options::lease_reads`], as a hint
    /// that the leader is unreachable overrides it otherwise.
    pub lease_valid: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct PeerStatus {
    pub id: MemberId,
    pub matched: Index,
    pub next: Index,
    /// Milliseconds since the last message from it, `u64::MAX` if none in this term.
    pub silent_ms: u64,
    /// Milliseconds since it last acknowledged more than before, `u64::MAX` if it did not in this term.
    pub still_ms: u64,
    pub snapshotting: bool,
    /// It answered a round that left after its present connection began, and had all that it had
    /// acknowledged to this leader.
    pub proved: bool,
}

impl Status {
    /// Leader only: what it knows of `id`.
    pub fn peer(&self, id: MemberId) -> Option<&PeerStatus> {
        self.peers.iter().find(|peer| peer.id == id)
    }

    /// Whether `id` can be counted on for a change: this member itself, or, where it leads, one of which
    /// it knows that it still has what it acknowledged ([`PeerStatus::proved`]).
    pub fn is_proved(&self, id: MemberId) -> bool {
        id == self.id || self.peer(id).is_some_and(|peer| peer.proved)
    }

    /// Leader only: what it knows of `id`, if that has nearly all of the log.
    pub fn caught_up(&self, id: MemberId) -> Option<&PeerStatus> {
        let peer = self.peer(id)?;
        has_caught_up(peer.matched, self.last.index).then_some(peer)
    }
}

impl Effects {
    /// Cuts the log off; what an earlier step wanted appended there never was.
    pub(crate) fn truncate(&mut self, from: Index) {
        while self.append.last().is_some_and(|entry| entry.index >= from) {
            self.append.pop();
        }
        self.truncate_from = Some(self.truncate_from.map_or(from, |earlier| earlier.min(from)));
    }

    /// Replaces the log by a snapshot.
    pub(crate) fn restart_log(&mut self, meta: SnapshotMeta) {
        self.append.clear();
        self.truncate_from = None;
        self.reset_log = Some(meta);
    }

    pub fn is_empty(&self) -> bool {
        self.hard_state.is_none()
            && self.reset_log.is_none()
            && self.truncate_from.is_none()
            && self.append.is_empty()
            && self.messages.is_empty()
            && self.commit.is_none()
            && self.fetches.is_empty()
            && self.snapshots.is_empty()
            && self.reads.is_empty()
            && self.lost_entries.is_empty()
            && self.rejected.is_empty()
            && self.role.is_none()
            && self.config.is_none()
            && self.fault.is_none()
            && !self.stepped_down
    }

    /// Empties it, keeping the allocations.
    pub fn clear(&mut self) {
        self.hard_state = None;
        self.reset_log = None;
        self.truncate_from = None;
        self.append.clear();
        self.messages.clear();
        self.commit = None;
        self.fetches.clear();
        self.snapshots.clear();
        self.reads.clear();
        self.lost_entries.clear();
        self.rejected.clear();
        self.role = None;
        self.config = None;
        self.fault = None;
        self.stepped_down = false;
    }
}
