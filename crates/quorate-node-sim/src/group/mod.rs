//! A model of the group: one log, which every member hears at its own pace.
//!
//! It promises what `quorate-group` promises (one order, nothing committed is lost, a proposal is
//! sent again until its member says that it is decided), and breaks everything that is not promised:
//! proposals are late, are lost, come twice, and turn up after whoever made them has given up or has
//! died; members lose the majority, are dropped from the view alive, and come back.

mod calls;
mod leader;
mod log;
mod member;
mod network;
mod standing;

pub use self::member::Member;
pub use self::network::Network;
use quorate_consensus::MemberId;

pub fn id_of(node: usize) -> MemberId {
    MemberId(node as u128 + 1)
}

/// The group's id, and the uuid of its history.
pub const HISTORY: u128 = 0x51;
