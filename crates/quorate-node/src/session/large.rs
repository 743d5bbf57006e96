//! Large transactions: their data goes to the group in parts, while the server still hands it over, and the
//! write set at the end has the rest of it.
//!
//! Invariants:
//! - the write set is proposed when all its parts are in the log, so that it finds them there;
//! - a stream that was opened ends: with its write set's verdict, or by [`Sessions::give_up_parts`] at the
//!   release of its transaction;
//! - a transaction whose data is long never goes as one piece, also if nothing could be sent while it was handed over;
//! - no part is sent while the log's disk has no room but its reserve. The log is kept from the first part on, so
//!   parts that took the reserve would leave no room for the entry that gives them up.

use super::{is_given_up, Sessions};
use crate::blocking::MutexGuard;
use crate::fate::stream::{Broken, Stream};
use crate::fate::trx::{Handle, Phase, Trx, TrxState};
use crate::host::Answer;
use crate::link::Link;
use crate::settings::PartSizes;
use quorate_certify::{Header, Packing, PartsOf};
use quorate_consensus::level;

/// So much data in the builder is sent, if it can be.
fn enough(sizes: &PartSizes, state: &TrxState) -> usize {
    match state.stream.is_some() {
        true => sizes.part,
        false => sizes.from,
    }
}

impl Sessions {
    /// More of a transaction's data. Blocks while as many parts are on their way as may be.
    pub fn append_data(&self, handle: &Handle, data: &[u8]) {
        let Some(trx) = handle.local() else { return };
        let sizes = &self.local.part_sizes;
        let mut state = trx.lock();
        let mut rest = data;
        while !rest.is_empty() {
            // In pieces that are sent before the next one comes, unless nothing can be sent now.
            let enough = enough(sizes, &state);
            let room = enough.checked_sub(state.builder.data_len()).filter(|room| *room > 0);
            let (piece, later) = rest.split_at(room.unwrap_or(rest.len()).min(rest.len()));
            state.builder.append_data(piece);
            rest = later;
            if state.builder.data_len() >= enough {
                state = self.send_parts(trx, state);
            }
        }
    }

    /// What cannot be sent now stays in the builder: certification tries again, and says what becomes of it.
    fn send_parts<'a>(
        &self,
        trx: &'a Trx,
        mut state: MutexGuard<'a, TrxState>,
    ) -> MutexGuard<'a, TrxState> {
        let link = self.local.link().filter(|link| self.accepts_writes(link));
        let Some(link) = link.filter(|_| self.primary.writing_term().is_some()) else {
            return state;
        };
        let sizes = self.local.part_sizes;
        while state.builder.data_len() >= sizes.part {
            let Some(mut stream) = self.stream(&link, &state) else { return state };
            if stream.broken.is_some() {
                state.builder.drop_data();
                state.stream = Some(stream);
                return state;
            }
            let serial = match stream.parts.count {
                0 => stream.parts.stream,
                _ => link.next_serial(),
            };
            let PartsOf { stream: id, count, .. } = stream.parts;
            let header = Header::part(link.node, serial, id, count);
            let part = state.builder.take_part(sizes.part);
            stream.parts.count += 1;
            stream.parts.bytes += part.data_len() as u64;
            state.stream = Some(stream);
            drop(state);
            let part = part.finish(&header, self.packing(&link, sizes.part));
            self.local.counters.note_part(part.len());
            let given_up = || is_given_up(&link, trx);
            let sent = link.parts.enter((id, serial), part.len(), sizes.window, given_up)
                && self.proposals.part(&link, serial, part);
            state = trx.lock();
            if let Some(stream) = state.stream.as_mut().filter(|_| !sent) {
                stream.broken = Some(Broken::Ended);
            }
        }
        state
    }

    /// The stream of a transaction whose data is long; ended, if nothing can come of it any more. `None`: the
    /// group does not know parts.
    fn stream(&self, link: &Link, state: &TrxState) -> Option<Stream> {
        let mut stream = match state.stream {
            Some(stream) => stream,
            None if link.has_level(level::PARTS) => {
                let id = link.next_serial();
                link.parts.open(id);
                let parts = PartsOf { stream: id, count: 0, bytes: 0 };
                Stream { origin: link.node, parts, broken: None }
            }
            None => return None,
        };
        if stream.broken.is_some() {
            return Some(stream);
        }
        if !self.local.counters.allows(&state.builder, stream.parts.bytes) {
            stream.broken = Some(Broken::TooLarge);
        } else if stream.origin != link.node || state.phase == Phase::MustAbort {
            stream.broken = Some(Broken::Ended);
        } else if !link.group.has_log_room() {
            self.local.warn(&format!(
                "a transaction of more than 4 MiB is rolled back (after {} bytes), because the disk of this node's log \
                 has no room, and the log must be kept until such a transaction is committed. Nothing else is lost; make \
                 room on that disk, then run the transaction again",
                stream.parts.bytes
            ));
            stream.broken = Some(Broken::TooLarge);
        }
        Some(stream)
    }

    /// How data of so many bytes is packed.
    pub(super) fn packing(&self, link: &Link, bytes: usize) -> Option<Packing> {
        let packing = self.local.counters.packing();
        packing.filter(|packing| bytes >= packing.from && link.has_level(level::PACKING))
    }

    /// Before the write set of `state` is stamped: sends what could not be sent before, and blocks until all its
    /// parts are in the log. The answer, if it is not to be proposed.
    pub(super) fn await_parts<'a>(
        &self,
        link: &Link,
        trx: &'a Trx,
        mut state: MutexGuard<'a, TrxState>,
    ) -> Result<MutexGuard<'a, TrxState>, Answer> {
        let is_long = |state: &TrxState| {
            let enough = enough(&self.local.part_sizes, state);
            state.builder.data_len() >= enough && link.has_level(level::PARTS)
        };
        if is_long(&state) {
            state = self.send_parts(trx, state);
            let is_over = state.stream.is_some_and(|stream| stream.broken.is_some());
            if !is_over && is_long(&state) {
                // No writes are accepted, again.
                state.phase = Phase::Aborting;
                return Err(Answer::Refused);
            }
        }
        let Some(stream) = state.stream else { return Ok(state) };
        if stream.broken == Some(Broken::TooLarge) {
            return Err(Answer::TooLarge);
        }
        if stream.broken.is_some() || stream.origin != link.node {
            state.phase = Phase::Aborting;
            return Err(Answer::Refused);
        }
        drop(state);
        let ordered = link.parts.wait_ordered(stream.parts.stream, || is_given_up(link, trx));
        state = trx.lock();
        if !ordered || state.phase == Phase::MustAbort {
            state.phase = Phase::Aborting;
            return Err(Answer::Refused);
        }
        Ok(state)
    }

    /// A transaction is over whose parts have no write set, or one of which nobody knows whether it passes.
    pub(super) fn give_up_parts(&self, stream: Option<Stream>) {
        let Some(Stream { origin, parts, .. }) = stream else { return };
        let link = self.local.link().filter(|link| link.node == origin);
        if let Some(link) = link {
            for serial in link.parts.give_up(parts.stream) {
                link.group.decided(serial);
            }
            self.proposals.end_parts(&link, parts.stream);
        }
    }
}
