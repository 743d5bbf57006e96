//! What members say to each other.

use crate::config::Config;
use crate::types::{Entry, EntryKind, Index, LogPosition, MemberId, Term};

/// One message between two members. The driver delivers it at most once, in any order, or never.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    pub from: MemberId,
    pub to: MemberId,
    /// The sender's term; for a pre-vote (and a granted reply to one) the term it would have.
    pub term: Term,
    pub body: MessageBody,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageBody {
    /// Would you vote for me? Changes nothing at the receiver.
    PreVote {
        last: LogPosition,
    },
    PreVoteReply {
        granted: bool,
    },
    /// `transfer` is set when the leader itself asked for this election: leases do not refuse it.
    Vote {
        last: LogPosition,
        transfer: bool,
    },
    VoteReply {
        granted: bool,
    },
    /// Would you follow me under a membership installed by force? Asked of every member kept.
    ForcedVote {
        last: LogPosition,
    },
    /// `commit`: the last position that the sender knows to be committed.
    ForcedVoteReply {
        granted: bool,
        commit: LogPosition,
    },
    /// Entries after `prev`; empty as a probe.
    Append {
        prev: LogPosition,
        entries: Vec<Entry>,
        commit: Index,
    },
    /// `matched`: everything up to here is *persisted* at the sender and equal to the leader's log. To the
    /// leader it is an answer; others count it, too (`core/held.rs`), the leader's own as well.
    AppendReply {
        matched: Index,
    },
    /// The entry at `rejected` is missing or differs. `hint` is the last position of the
    /// follower's log that may agree (skip the whole conflicting term).
    AppendReject {
        rejected: Index,
        hint: LogPosition,
    },
    /// `commit` never passes what the receiver was sent. `round` numbers the
    /// leader's heartbeats: a reply proves leadership at the moment that round was sent. Round 0
    /// only brings the commit index and wants no reply.
    Heartbeat {
        commit: Index,
        round: u64,
    },
    /// `persisted_last`: the end of the sender's persisted log, so that a member that came back with less
    /// than it once acknowledged is noticed and not over-committed.
    HeartbeatReply {
        round: u64,
        persisted_last: Index,
    },
    /// A follower asks the leader for a linearizable read point.
    ReadIndex {
        ctx: u64,
    },
    ReadIndexReply {
        ctx: u64,
        index: Index,
    },
    /// Start an election now: the leader hands over to you.
    TimeoutNow,
    /// The receiver has installed the leader's snapshot up to `matched`.
    SnapshotReply {
        matched: Index,
    },
}

/// Terms and indexes beyond these are nobody's honest ones: at a million a second it takes a
/// hundred thousand years to get there. So arithmetic on what a peer sent cannot overflow.
pub(crate) const TERM_MAX: Term = 1 << 62;
pub(crate) const INDEX_MAX: Index = 1 << 62;
/// Nobody is ahead by more terms of a member that knows none yet: elections lead on by one, majorities given up
/// by force (`core/forced.rs`) by a leap, and these are few. Whoever says so is not honest, or damaged; taken for
/// true, one such message, which every member saves and passes on, would bring the group to the last term there
/// is, and end its elections for good.
pub(crate) const TERM_JUMP_MAX: Term = 1 << 48;
/// Nor by more of one that is in the group: each leap asks every member that is kept, so it misses those at most
/// that one candidate took in vain, one after the other.
pub(crate) const TERM_LEAP_MAX: Term = 1 << 40;
/// Elections alone do not lead on further while a member is away; and a leap is longer.
pub(crate) const ELECTIONS_MAX: Term = 1 << 31;
/// From one leap to the next, but for a few: an operator may try to give up a majority several times in a row.
/// Leap by leap it would take a month to the last term.
pub(crate) const LEAP_PAUSE_MS: u64 = 1_000;
pub(crate) const LEAPS_AT_ONCE: u64 = 16;

impl Message {
    /// Whether an honest member can have sent this. Everything else is ignored.
    pub(crate) fn is_sound(&self) -> bool {
        let position = |p: &LogPosition| p.index <= INDEX_MAX && p.term <= self.term;
        self.term <= TERM_MAX
            && match &self.body {
                MessageBody::PreVote { last }
                | MessageBody::Vote { last, .. }
                | MessageBody::ForcedVote { last } => position(last),
                MessageBody::Append { prev, entries, .. } => {
                    position(prev) && follow_each_other(*prev, entries, self.term)
                }
                MessageBody::AppendReject { rejected, hint } => {
                    *rejected <= INDEX_MAX && hint.index <= INDEX_MAX
                }
                _ => true,
            }
    }
}

/// Whether these entries can stand after `prev` in the log of a leader of `term`.
pub(crate) fn follow_each_other(prev: LogPosition, entries: &[Entry], term: Term) -> bool {
    let mut last = prev;
    entries.iter().all(|entry| {
        let follows = entry.index == last.index + 1
            && entry.index <= INDEX_MAX
            && (last.term.max(1)..=term).contains(&entry.term)
            && (entry.kind != EntryKind::Config || governs(entry));
        last = entry.position();
        follows
    })
}

/// Whether a membership entry leaves somebody to decide. One that cannot be read stops whoever is
/// to take it.
fn governs(entry: &Entry) -> bool {
    Config::decode(&entry.data).map_or(true, |config| config.votes().next().is_some())
}
