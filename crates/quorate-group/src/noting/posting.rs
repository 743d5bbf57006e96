//! Notes on their way into the log.

use crate::driver::Driver;
use crate::note::{Note, NoteId, NOTES_MAX, NOTE_BYTES_MAX};
use crate::output::Output;
use crate::rejected::Cause;
use quorate_consensus::level::OPERATORS;
use quorate_consensus::{EntryKind, Event, MemberId, Proposal};
use quorate_wire::Packet;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Posting {
    /// Not seen in the log yet. Of orders as many as are shown of them at most, and as many events. Older
    /// ones, of a member that is cut off for long, are in its error log.
    waiting: VecDeque<Note>,
    /// What they were sent after, last: see [`Driver::changes`]; and when that was.
    sent: Option<(u64, u64)>,
}

impl Posting {
    /// Sent with the next look.
    pub fn push(&mut self, note: Note) {
        let is_alike =
            |other: &Note| std::mem::discriminant(other) == std::mem::discriminant(&note);
        if self.waiting.iter().filter(|other| is_alike(other)).count() >= NOTES_MAX {
            let oldest = self.waiting.iter().position(is_alike);
            oldest.and_then(|at| self.waiting.remove(at));
        }
        self.waiting.push_back(note);
        self.sent = None;
    }

    /// This one is in the log.
    pub fn noted(&mut self, id: NoteId) {
        self.waiting.retain(|note| note.id() != id);
    }

    /// Proposes what waits, or sends it to the leader.
    pub fn send(&mut self, driver: &mut Driver, out: &mut Output) {
        let Some(leader) = driver.leader().filter(|_| !self.waiting.is_empty()) else { return };
        let patience_ms = driver.options.election_timeout_ms;
        let is_new = |(changes, sent_ms): (u64, u64)| {
            changes != driver.changes || driver.now_ms.saturating_sub(sent_ms) >= patience_ms
        };
        let status = driver.status();
        // Until then a leader of an earlier release may yet come, which would not read them.
        let all_know_it = status.config.level >= OPERATORS && status.commit >= status.config_index;
        if !self.sent.is_none_or(is_new) || !all_know_it {
            return;
        }
        let proposal = |note: &Note| Proposal::new(EntryKind::Note, note.encode());
        let proposals: Vec<Proposal> = self.waiting.iter().map(proposal).collect();
        let sent = match leader == driver.id {
            true => propose(proposals, driver, out),
            false => {
                let reached = driver.peers.get(leader).is_some_and(|peer| peer.outgoing);
                if reached {
                    proposals.into_iter().for_each(|note| out.send(leader, Packet::Note(note)));
                }
                reached
            }
        };
        if sent {
            self.sent = Some((driver.changes, driver.now_ms));
        }
    }
}

/// A note that another member asks the leader to propose: its own, and one that all can read. It asks again
/// where this one does not lead.
pub(crate) fn propose_for(from: MemberId, note: Proposal, driver: &mut Driver, out: &mut Output) {
    let is_its_own = note.data.len() <= NOTE_BYTES_MAX
        && Note::decode(note.data.clone()).is_ok_and(|note| note.id().member == from);
    match is_its_own {
        _ if !driver.is_member(from) => driver.reject(from, Cause::NoMember, out),
        true => _ = propose(vec![note], driver, out),
        false => driver.reject(from, Cause::Forged, out),
    }
}

/// False: not now.
fn propose(notes: Vec<Proposal>, driver: &mut Driver, out: &mut Output) -> bool {
    driver.config.level >= OPERATORS && driver.step(Event::Propose(notes), out).is_ok()
}
