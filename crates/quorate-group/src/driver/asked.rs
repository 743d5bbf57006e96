//! How often members, and those who want to be members, change the configuration by what they say of themselves, and
//! have it looked at.
//!
//! Each change holds up the others until it is committed, and all members tell of it. Each look goes over all members.

use super::Driver;
use crate::paced::Pace;
use quorate_consensus::MemberId;

/// New members at once; further ones come in a second apart.
const ADMISSIONS_AT_ONCE: u64 = 64;

pub(super) fn admissions() -> Pace {
    Pace::new(ADMISSIONS_AT_ONCE)
}

impl Driver {
    /// Whether a change is due that this one causes, a member or not.
    pub fn may_change(&self, id: MemberId) -> bool {
        let pace = match self.peers.get(id) {
            _ if id == self.id => return true,
            Some(peer) if self.is_member(id) => &peer.changes,
            _ => &self.admissions,
        };
        pace.is_ready(self.now_ms)
    }

    /// What a peer asks for is looked at at once, as long as it does not ask too often; else with the next housekeeping.
    pub fn look_soon_for(&mut self, id: MemberId) {
        let now_ms = self.now_ms;
        self.due |= self.peers.get_mut(id).is_some_and(|peer| peer.asks.take(now_ms));
    }

    /// It causes one: as the member that it was, or as a new one. This member's own are not counted.
    pub fn note_change(&mut self, id: MemberId, was_member: bool) {
        if id == self.id {
            return;
        }
        let pace = match self.peers.get_mut(id) {
            Some(peer) if was_member => &mut peer.changes,
            _ => &mut self.admissions,
        };
        pace.spend(self.now_ms);
    }
}
