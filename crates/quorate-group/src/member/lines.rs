//! Lines that peers cause by coming, going and asking: paced, so that none of them fills the error log.

use super::snapshots::ROOM_LEFT;
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
    room: Paced,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            members: Paced::new(OF_MEMBERS),
            others: Paced::new(OF_OTHERS),
            forced: Paced::new(1),
            room: Paced::new(1),
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

    /// The leader sends a snapshot of so many bytes, and the disk has room for so many.
    pub fn no_room(&mut self, bytes: u64, room: u64, driver: &Driver, out: &mut Output) {
        if let Some(others) = self.room.due(driver.now_ms) {
            let (node, dir) = (&driver.options.name, &driver.options.dir);
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            let line = format!(
                "node {node} needs a snapshot from the leader to go on, and its disk has no room for it: {} MiB, beside {} \
                 MiB for the log, and {} MiB are free. Make room on the file system of {dir}; the node then goes on by \
                 itself. No data is lost{others}",
                mib(bytes),
                mib(ROOM_LEFT),
                mib(room)
            );
            out.log(LogLevel::Error, line);
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
