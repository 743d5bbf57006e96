//! A leader's snapshot between its arrival and the core.

use super::Member;
use crate::driver::Driver;
use crate::output::{LogLevel, Output};
use crate::rejected::Cause;
use crate::snapshot::Received;
use quorate_consensus::{Event, MemberId, Message, MessageBody, Term};

/// What a snapshot leaves free of the disk: the log goes on.
pub(super) const ROOM_LEFT: u64 = 64 << 20;

impl Member {
    /// A snapshot of so many bytes begins to come in from `from`, who says that it leads in `term`; the disk has
    /// room for `room` bytes, if that is known. Whether to take it, before a byte of it is kept.
    pub fn awaits(
        &mut self,
        (from, term): (MemberId, Term),
        bytes: u64,
        room: Option<u64>,
        out: &mut Output,
    ) -> bool {
        let Self { driver, lines, .. } = self;
        if let Some(cause) = objection(driver, from, term) {
            driver.reject(from, cause, out);
            return false;
        }
        if driver.failed || term < driver.term() {
            return false;
        }
        match room.filter(|room| bytes.saturating_add(ROOM_LEFT) > *room) {
            Some(room) => {
                lines.no_room(bytes, room, driver, out);
                false
            }
            None => true,
        }
    }

    /// A leader's snapshot has come in whole. Whether to write it: then either [`Member::stored`] or
    /// [`crate::Input::SnapshotNotStored`] follows.
    pub fn arrived(&mut self, received: &Received, out: &mut Output) -> bool {
        let Self { driver, .. } = self;
        if driver.failed {
            return false;
        }
        if let Some(cause) = objection(driver, received.from, received.term) {
            driver.reject(received.from, cause, out);
            return false;
        }
        if driver.commit() >= received.meta.last.index {
            // The core tells the leader that all of it is here. It is not written: a file of that index may be this
            // member's own, which its log begins after, and nobody else vouches for what a leader sends.
            let (from, term, meta) = (received.from, received.term, received.meta.clone());
            driver.ignore_refusal(Event::InstallSnapshot { from, term, meta }, out);
            self.settle(out);
            return false;
        }
        let wanted = driver.arrivals.begin(received, driver.term());
        if !wanted {
            let (index, from, term) = (received.meta.last.index, received.from, received.term);
            let line = format!(
                "the snapshot of index {index} that member {from} sent is not taken: it led in term \
                 {term}, which is over"
            );
            out.log(LogLevel::Info, line);
        }
        wanted
    }

    /// A leader's snapshot is in the directory, durably. Whether it stays there: if not, delete it
    /// before any other is written, and say [`crate::Input::SnapshotNotStored`].
    pub fn stored(&mut self, now_ms: u64, received: &Received, out: &mut Output) -> bool {
        self.at(now_ms);
        let Self { driver, alone, .. } = self;
        let (from, term, meta) = (received.from, received.term, received.meta.clone());
        alone.told(driver.now_ms);
        driver.ignore_refusal(Event::InstallSnapshot { from, term, meta }, out);
        // One of other terms than this member's own log is a lie, or damaged: the next start would put it in
        // the place of what is committed.
        let last = received.meta.last;
        let taken = driver.commit() >= last.index && driver.agrees_with(last);
        if taken {
            driver.arrivals.end(received);
        }
        self.settle(out);
        taken
    }

    /// Whether a message is not to be looked at while a snapshot is being written. Its sender asks
    /// again, or its operator does.
    pub(super) fn comes_too_early(&mut self, message: &Message, out: &mut Output) -> bool {
        let Self { driver, lines, .. } = self;
        let arrivals = &driver.arrivals;
        match message.body {
            // Entries after it would only be refused now, and the leader would send the log from its
            // beginning instead.
            MessageBody::Append { prev, .. } => {
                prev.index > driver.last().index
                    && arrivals.any(|received| {
                        (message.from, message.term) == (received.from, received.term)
                    })
            }
            MessageBody::ForcedVote { .. } => {
                let reason = driver.cannot_keep();
                if let Some(reason) = reason {
                    lines.not_kept(message.from, reason, driver.now_ms, out);
                }
                reason.is_some()
            }
            _ => false,
        }
    }
}

/// Why `from` is not the leader of `term`.
fn objection(driver: &Driver, from: MemberId, term: Term) -> Option<Cause> {
    let foreign = driver.peers.is_foreign(from).then_some(Cause::OtherKey);
    foreign.or_else(|| driver.objects_to_leader(from, term).map(Cause::Core))
}
