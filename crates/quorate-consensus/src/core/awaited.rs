//! Whose clients wait for what; and so who is told at once what is committed and what the leader has on disk, and who
//! is told with the entries that come next.
//!
//! Under load the next entries follow at once. For a follower without a client that waits, a message for each step
//! of the commit would be a third of all messages, and a thread woken at both ends for nothing.
//!
//! Invariants:
//! - it only withholds: nothing is said here that would not be said otherwise;
//! - a follower is told at once as long as it does not know something to be committed that its clients wait for: what it
//!   proposed, and what a read of theirs was answered with. All are told at once of entries that are no data, and of
//!   everything where clients wait until others have applied it (`Rules::after`, [`crate::Event::Awaited`]);
//! - of what it was sent, a follower misses at most the last step of the leader's commit. It is withheld only where
//!   the next entry leaves for it as soon as there is one: nothing before that waits, and its window is open. If none
//!   comes, the next step tells it; and there is one, for more was sent than is committed. Where nothing
//!   can be committed any more, the next heartbeat tells it.

use super::Consensus;
use crate::effects::Effects;
use crate::event::Options;
use crate::progress::{Progress, State};
use crate::types::{Index, MemberId};

impl Consensus {
    /// Clients of this member wait until these entries are committed.
    pub(super) fn awaits(&mut self, member: MemberId, index: Index) {
        if let Some(peer) = self.peer_mut(member) {
            peer.awaited = peer.awaited.max(index);
        }
    }

    pub(super) fn all_await(&mut self, index: Index) {
        if let Some(leadership) = self.leadership() {
            for peer in leadership.peers.values_mut() {
                peer.awaited = peer.awaited.max(index);
            }
        }
    }

    /// Clients of this member wait to read what is committed up to here.
    pub(super) fn reads_await(&mut self, member: MemberId, index: Index, fx: &mut Effects) {
        self.awaits(member, index);
        self.tell_commit(fx);
    }

    /// Somewhere clients wait until other members have applied what is committed; or none does any more.
    pub(super) fn set_applying_awaited(&mut self, awaited: bool, fx: &mut Effects) {
        self.applying_awaited = awaited;
        self.tell_commit(fx);
    }

    /// Whether any member may be told later than at once.
    pub(super) fn may_withhold(&self) -> bool {
        !self.applying_awaited && !self.config().rules.after
    }
}

/// Whether clients of `peer` may wait for something that it was not told to be committed.
pub(super) fn is_awaited(peer: &Progress) -> bool {
    peer.awaited > peer.commit_sent
}

/// Whether the next Append to `peer`, or the next step of the commit, may tell it that all up to `commit` is committed.
pub(super) fn may_wait_for(peer: &Progress, commit: Index, last: Index, options: &Options) -> bool {
    let next_entry_leaves = peer.state == State::Replicate
        && peer.next == last + 1
        && peer.window_bytes(options).is_some();
    let owes_another = peer.commit_owed > peer.commit_sent && peer.commit_owed != commit;
    next_entry_leaves && peer.end_sent() > commit && !is_awaited(peer) && !owes_another
}

#[cfg(test)]
mod tests;
