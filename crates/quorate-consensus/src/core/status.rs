//! A look inside.

use super::{Consensus, Role};
use crate::effects::{PeerStatus, Status};
use crate::progress::{Progress, State};
use crate::types::LogPosition;

impl Consensus {
    /// Whether the log has this position, or begins after it.
    pub fn agrees_with(&self, position: LogPosition) -> bool {
        position.index < self.log.base().index || self.log.contains(position)
    }

    /// Whether the log has this position. What it does not reach back to, it has not.
    pub fn has(&self, position: LogPosition) -> bool {
        self.log.contains(position)
    }

    pub fn status(&self, now_ms: u64) -> Status {
        let now_ms = self.now_ms.max(now_ms);
        Status {
            id: self.options.id,
            role: self.role_state(),
            term: self.hard.term,
            leader: self.leader,
            last: self.log.last(),
            persisted: self.log.persisted(),
            commit: self.commit,
            commit_told: self.told.max(self.commit),
            config: self.config().clone(),
            config_index: self.configs.index(),
            peers: self.peer_statuses(now_ms),
            lease_valid: self.lease_valid(now_ms),
        }
    }

    fn peer_statuses(&self, now_ms: u64) -> Vec<PeerStatus> {
        let Role::Leader(leadership) = &self.role else {
            return Vec::new();
        };
        let since = |then: Option<u64>| then.map_or(u64::MAX, |then| now_ms.saturating_sub(then));
        let status = |peer: &Progress| PeerStatus {
            id: peer.id,
            matched: peer.matched,
            next: peer.next,
            silent_ms: since(peer.heard_ms),
            still_ms: since(peer.advanced_ms),
            snapshotting: peer.state == State::Snapshot,
            proved: peer.is_proved(),
        };
        leadership.peers.values().map(status).collect()
    }
}
