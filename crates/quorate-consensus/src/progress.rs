//! What a leader knows of one other member, and how fast it may send to it.
//!
//! Invariants:
//! - `matched < next`: everything up to `matched` is persisted there and equal to the leader's log.
//! - In `Replicate`, `matched + 1 .. next` is on its way and accounted for in `inflight`; in `Probe`
//!   at most one Append is, and `next` stands still; in `Snapshot` nothing is sent.
//! - At most one fetch from the log is outstanding.

use crate::event::Options;
use crate::types::{Index, MemberId};
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Progress {
    pub id: MemberId,
    pub matched: Index,
    pub next: Index,
    pub state: State,
    inflight: Inflight,
    /// First index of the fetch that is outstanding.
    pub fetching: Option<Index>,
    /// Rather than the log from its beginning, once.
    pub snapshot_welcome: bool,
    /// The newest round when a snapshot was last sent to it.
    snapshot_round: Option<u64>,
    /// When the last message of this term came from it.
    pub heard_ms: Option<u64>,
    /// When it last had more of the log than before.
    pub advanced_ms: Option<u64>,
    /// The newest heartbeat round it answered, and when that round was sent.
    pub acked_round: u64,
    pub acked_round_sent_ms: Option<u64>,
    /// What it had on disk then.
    pub persisted_last: Index,
    /// The most that it acknowledged; `matched` is less where it refused that since.
    acknowledged: Index,
    /// It refused what it acknowledged.
    refused: Option<Refused>,
    /// The newest round sent to it, and what it had acknowledged at that moment.
    pub round_sent: u64,
    acknowledged_at_round: Index,
    /// Nobody knows yet whether the process at the other end of its present connection has what it
    /// acknowledged.
    unproved: Option<Unproved>,
    /// `matched` at its last heartbeat reply, to notice that acknowledgements ceased.
    matched_at_reply: Index,
    /// The highest commit index it was told, of entries that it was sent.
    pub commit_sent: Index,
    /// Up to where it was told that this leader has the log on its own disk.
    pub disk_shown: Index,
    /// Up to where its clients wait to know what is committed.
    pub awaited: Index,
    /// A commit that it was not told of at once.
    pub commit_owed: Index,
    /// When it was dropped from the configuration, if so: it still gets the log until it knows.
    pub departing_since_ms: Option<u64>,
}

/// A member at most this many entries behind has caught up: the rest is sent within a round trip.
const CAUGHT_UP_ENTRIES: Index = 1024;

/// Whether a member that has the log up to `matched` has caught up with one that ends at `last`.
pub(crate) fn has_caught_up(matched: Index, last: Index) -> bool {
    matched.saturating_add(CAUGHT_UP_ENTRIES) >= last
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Where the logs agree is not known: one Append at a time, `sent` until answered.
    Probe { sent: bool },
    /// Logs agree up to `next - 1` if nothing gets lost: send ahead of acknowledgements.
    Replicate,
    /// The log no longer reaches back to `next`; the driver delivers a snapshot.
    Snapshot,
}

/// The newest round when its present connection began, and what it had acknowledged before.
#[derive(Clone, Copy, Debug, Default)]
struct Unproved {
    round: u64,
    acknowledged: Index,
}

/// It came back as an older state of itself. What it answers to a round that leaves later says whether
/// its log is too short, or as long with another end.
#[derive(Clone, Copy, Debug)]
struct Refused {
    /// Where to ask then.
    next: Index,
    /// The newest round when it first refused that. It is asked again with each answer to a heartbeat: where those
    /// take longer than a heartbeat interval, it refuses again before it has answered a later round.
    round: u64,
}

impl Progress {
    pub fn new(id: MemberId, next: Index) -> Self {
        Self {
            id,
            matched: 0,
            next,
            state: State::Probe { sent: false },
            inflight: Inflight::default(),
            fetching: None,
            snapshot_welcome: false,
            snapshot_round: None,
            heard_ms: None,
            advanced_ms: None,
            acked_round: 0,
            acked_round_sent_ms: None,
            persisted_last: 0,
            acknowledged: 0,
            refused: None,
            round_sent: 0,
            acknowledged_at_round: 0,
            unproved: Some(Unproved::default()),
            matched_at_reply: 0,
            commit_sent: 0,
            disk_shown: 0,
            awaited: 0,
            commit_owed: 0,
            departing_since_ms: None,
        }
    }

    /// It must have so much on its disk, whatever it says.
    pub fn owing(mut self, acknowledged: Index) -> Self {
        (self.acknowledged, self.acknowledged_at_round) = (acknowledged, acknowledged);
        self.unproved = Some(Unproved { acknowledged, ..Unproved::default() });
        self
    }

    /// Starts over with one careful Append at `next`.
    pub fn probe_from(&mut self, next: Index) {
        self.next = next.max(self.matched + 1);
        self.state = State::Probe { sent: false };
        self.inflight.clear();
        self.commit_sent = self.commit_sent.min(self.matched);
        self.disk_shown = self.disk_shown.min(self.matched);
    }

    /// The end of what it has, or will have if nothing on its way is lost.
    pub fn end_sent(&self) -> Index {
        match self.state {
            State::Replicate => self.next - 1,
            State::Probe { .. } | State::Snapshot => self.matched,
        }
    }

    /// What was sent may be lost.
    pub fn connection_lost(&mut self) {
        self.begin_proof();
        (self.commit_sent, self.disk_shown) = (0, 0);
        if self.state == State::Replicate {
            self.probe_from(self.matched + 1);
        }
    }

    fn replicate(&mut self) {
        self.next = self.matched + 1;
        self.refused = None;
        self.state = State::Replicate;
        self.inflight.clear();
    }

    pub fn await_snapshot(&mut self) {
        self.state = State::Snapshot;
        self.inflight.clear();
    }

    /// A snapshot was sent, or could not be.
    pub fn snapshot_left(&mut self) {
        self.snapshot_round = Some(self.round_sent);
    }

    /// It has answered no round that was sent after a snapshot. Until then, nothing that it says makes the
    /// leader read another one.
    pub fn rests(&self) -> bool {
        let unanswered = self.snapshot_round.is_some_and(|round| self.acked_round <= round);
        unanswered && matches!(self.state, State::Probe { .. })
    }

    /// The member persisted everything up to `matched`; true if that is news. `log_base` is where
    /// the leader's log starts: from there on it can be continued without a snapshot.
    pub fn acknowledge(&mut self, matched: Index, log_base: Index) -> bool {
        let advanced = matched > self.matched;
        if advanced {
            self.matched = matched;
            self.acknowledged = self.acknowledged.max(matched);
            self.inflight.free_upto(matched);
            self.next = self.next.max(matched + 1);
        }
        match self.state {
            State::Probe { .. } if advanced || matched + 1 >= self.next => self.replicate(),
            State::Snapshot if self.matched >= log_base => self.replicate(),
            _ => {}
        }
        advanced
    }

    /// The member has no entry that agrees at `rejected`. `agree` is the last index that may.
    /// False if nothing is to be sent for it: the answer is to an Append that does not matter any more, or
    /// it acknowledged `rejected`, or more than agrees. Then it is asked further back only once it has said how much it has
    /// (see [`Self::ask_further_back`]): were it sent what it lacks at once, nobody would notice that it
    /// forgot what it acknowledged.
    pub fn reject(&mut self, rejected: Index, agree: Index) -> bool {
        let current = match self.state {
            State::Probe { .. } => rejected + 1 == self.next,
            State::Replicate => rejected > self.matched,
            State::Snapshot => false,
        };
        if !current {
            return false;
        }
        let next = rejected.min(agree.saturating_add(1)).max(1);
        let forgot = agree < rejected && (rejected <= self.matched || agree < self.acknowledged);
        if forgot {
            let before = self.refused.filter(|refused| refused.next == next);
            self.refused = before.or(Some(Refused { next, round: self.round_sent }));
        } else {
            self.probe_from(next);
        }
        !forgot
    }

    /// A message with entries up to `last` and of this cost left in `Replicate`.
    pub fn sent(&mut self, last: Index, bytes: usize) {
        self.inflight.push(last, bytes);
        self.next = last + 1;
    }

    /// Bytes that may be sent now; `None` if the window is closed. An empty window takes any
    /// message, so that an entry larger than the window passes.
    pub fn window_bytes(&self, options: &Options) -> Option<usize> {
        if self.inflight.messages.is_empty() {
            return Some(options.append_bytes_max);
        }
        let open = self.inflight.messages.len() < options.inflight_messages_max
            && self.inflight.bytes < options.inflight_bytes_max;
        open.then(|| options.append_bytes_max.min(options.inflight_bytes_max - self.inflight.bytes))
    }

    pub fn round_leaves(&mut self, round: u64) {
        self.round_sent = round;
        self.acknowledged_at_round = self.acknowledged;
    }

    /// It answered `round`, which was sent at `sent_ms` (unknown if long ago), with so much on disk.
    pub fn round_acknowledged(&mut self, round: u64, sent_ms: Option<u64>, persisted_last: Index) {
        if round > self.acked_round {
            self.acked_round = round;
            self.persisted_last = persisted_last;
            self.acked_round_sent_ms = sent_ms.or(self.acked_round_sent_ms);
        }
    }

    /// Whether it has less on disk than it acknowledged before `round` was sent: it lost its log.
    pub fn lost_entries(&self, round: u64, persisted_last: Index) -> bool {
        let refused_before = self.refused.is_some_and(|refused| round > refused.round);
        (round == self.round_sent && persisted_last < self.acknowledged_at_round)
            || (refused_before && persisted_last < self.acknowledged)
    }

    /// Whether it answered a round that left after its present connection began, and had all that it
    /// had acknowledged before: a process that came back as an older state of itself has not.
    pub fn is_proved(&self) -> bool {
        self.unproved.is_none()
    }

    fn begin_proof(&mut self) {
        let Self { round_sent: round, acknowledged, .. } = *self;
        self.unproved = Some(Unproved { round, acknowledged });
    }

    /// It answered `round`.
    pub fn prove(&mut self, round: u64, persisted_last: Index) {
        self.unproved
            .take_if(|unproved| round > unproved.round && persisted_last >= unproved.acknowledged);
    }

    /// It answered `round`, and has as much as it acknowledged. If it refused that before, its log has
    /// another end: else it would refuse the same probe for ever.
    pub fn ask_further_back(&mut self, round: u64) {
        if let Some(Refused { next, .. }) = self.refused.take_if(|refused| round > refused.round) {
            self.matched = self.matched.min(next - 1);
            self.probe_from(next);
        }
    }

    /// Takes back what it acknowledged.
    pub fn forget_acknowledged(&mut self, persisted_last: Index) {
        self.matched = self.matched.min(persisted_last);
        (self.acknowledged, self.acknowledged_at_round) = (self.matched, self.matched);
        self.refused = None;
        self.begin_proof();
        self.probe_from(self.matched + 1);
    }

    /// Called at each heartbeat reply: whether something sent is unanswered since the last one,
    /// and may be lost.
    pub fn stalled(&mut self) -> bool {
        let stalled = self.matched == self.matched_at_reply && self.matched + 1 < self.next;
        self.matched_at_reply = self.matched;
        stalled
    }
}

/// Messages with entries that are not acknowledged: last index and cost of each.
#[derive(Debug, Default)]
struct Inflight {
    messages: VecDeque<(Index, usize)>,
    bytes: usize,
}

impl Inflight {
    fn push(&mut self, last: Index, bytes: usize) {
        self.messages.push_back((last, bytes));
        self.bytes += bytes;
    }

    fn free_upto(&mut self, matched: Index) {
        while let Some(&(last, bytes)) = self.messages.front() {
            if last > matched {
                break;
            }
            self.messages.pop_front();
            self.bytes -= bytes;
        }
    }

    fn clear(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests;
