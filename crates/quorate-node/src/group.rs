//! The group, seen from the node: what it needs of a member to order its writes and to follow the log.
//! What an operator orders of the group goes past this, to the member itself.

use bytes::Bytes;
use quorate_consensus::Index;
use quorate_live::{EventKind, GroupError, GroupStatus, Standing, ViewMember};
use std::time::Duration;

/// See the methods of the same names of [`quorate_live::Group`].
pub trait Group: Send + Sync {
    fn group_id(&self) -> u128;
    fn propose(&self, serial: u64, data: Bytes) -> Result<(), GroupError>;
    fn decided(&self, serial: u64);
    fn barrier(&self, timeout: Duration) -> Result<Index, GroupError>;
    fn read(&self, from: Index, bytes: usize) -> Result<Vec<Bytes>, GroupError>;
    fn stands(&self, standing: Standing);
    fn await_applied(
        &self,
        seqno: i64,
        at_least: Option<u8>,
        timeout: Duration,
    ) -> Result<(), GroupError>;
    fn has_log_room(&self) -> bool;
    fn reachable(&self) -> Vec<ViewMember>;
    fn refresh_view(&self);
    fn status(&self) -> GroupStatus;
    fn happened(&self, kind: EventKind, what: String);
    fn leave(&self, timeout: Duration) -> Result<(), GroupError>;
    fn close(&self);
}

impl Group for quorate_live::Group {
    fn group_id(&self) -> u128 {
        self.group_id()
    }

    fn propose(&self, serial: u64, data: Bytes) -> Result<(), GroupError> {
        self.propose(serial, data)
    }

    fn decided(&self, serial: u64) {
        self.decided(serial);
    }

    fn barrier(&self, timeout: Duration) -> Result<Index, GroupError> {
        self.barrier(timeout)
    }

    fn read(&self, from: Index, bytes: usize) -> Result<Vec<Bytes>, GroupError> {
        self.read(from, bytes)
    }

    fn stands(&self, standing: Standing) {
        self.stands(standing);
    }

    fn await_applied(
        &self,
        seqno: i64,
        at_least: Option<u8>,
        timeout: Duration,
    ) -> Result<(), GroupError> {
        self.await_applied(seqno, at_least, timeout)
    }

    fn has_log_room(&self) -> bool {
        self.has_log_room()
    }

    fn reachable(&self) -> Vec<ViewMember> {
        self.reachable()
    }

    fn refresh_view(&self) {
        self.refresh_view();
    }

    fn status(&self) -> GroupStatus {
        self.status()
    }

    fn happened(&self, kind: EventKind, what: String) {
        self.happened(kind, what);
    }

    fn leave(&self, timeout: Duration) -> Result<(), GroupError> {
        self.leave(timeout)
    }

    fn close(&self) {
        self.close();
    }
}
