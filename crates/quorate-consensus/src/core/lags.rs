//! How far the databases above members lag behind their logs. The core knows nothing of databases; it is told
//! ([`crate::Event::Lag`]), so that of members that could lead as well as each other, the one leads that has applied most.
//!
//! Invariants:
//! - it counts after the log, the fitness and the priority of a member, and says only who goes first: an election is
//!   won by votes as ever;
//! - of this member, too, it is what all others were told of it. So two that stand at the same moment rank each other
//!   alike, but for the heartbeat in which that is told; then one of them refuses the other once.

use super::Consensus;
use crate::types::MemberId;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Lags(BTreeMap<MemberId, u8>);

impl Lags {
    /// `None`: it is not known any more.
    pub fn set(&mut self, member: MemberId, lag: Option<u8>) {
        match lag {
            Some(lag) => self.0.insert(member, lag),
            None => self.0.remove(&member),
        };
    }

    /// 0 where nothing is known.
    pub fn of(&self, member: MemberId) -> u8 {
        self.0.get(&member).copied().unwrap_or_default()
    }
}

impl Consensus {
    /// Whether somebody is known who should lead rather than this member, for nothing but the lag of this one. The leader
    /// that is waited for is not.
    pub(super) fn lags_behind_others(&self) -> bool {
        let (config, own) = (self.config(), self.options.id);
        let lag = self.lags.of(own);
        let nearer = |id: MemberId| {
            Some(id) != self.leader
                && config.may_lead(id)
                && config.priority(id) >= config.priority(own)
        };
        lag > 0 && self.lags.0.iter().any(|(id, theirs)| *theirs < lag && nearer(*id))
    }
}
