//! Lines that peers cause by coming, going and asking: paced, so that none of them fills the error log.

use crate::driver::Driver;
use crate::output::{LogLevel, Output};
use crate::paced::Paced;
use quorate_consensus::MemberId;

/// Lines at once: all members of a group may be lost at a time, and be back.
const OF_MEMBERS: u64 = 32;
const OF_OTHERS: u64 = 8;

pub(super) struct Lines {
    members: Paced,
    others: Paced,
    forced: Paced,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            members: Paced::new(OF_MEMBERS),
            others: Paced::new(OF_OTHERS),
            forced: Paced::new(1),
        }
    }
}

impl Lines {
    /// A connection to `peer` began or ended.
    pub fn connection(&mut self, peer: MemberId, line: String, driver: &Driver, out: &mut Output) {
        let lines = match driver.is_member(peer) {
            true => &mut self.members,
            false => &mut self.others,
        };
        if let Some(others) = lines.due(driver.now_ms) {
            out.log(LogLevel::Info, line + &others);
        }
    }

    /// `from` is not helped to go on without a majority.
    pub fn not_kept(&mut self, from: MemberId, reason: &str, now_ms: u64, out: &mut Output) {
        if let Some(others) = self.forced.due(now_ms) {
            let line = format!(
                "member {from} wants to go on without those that are lost: not answered: {reason}{others}"
            );
            out.log(LogLevel::Warn, line);
        }
    }
}
