//! Notes on their way into the log.

use crate::driver::Driver;
use crate::note::{Note, NoteId, NOTES_MAX, NOTE_BYTES_MAX};
use crate::output::Output;
use crate::rejected::Cause;
use quorate_consensus::level::OPERATORS;
use quorate_consensus::{EntryKind, Event, Index, MemberId, Proposal, Status, Term};
use quorate_wire::Packet;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Posting {
    /// Not seen in the log yet. Of orders as many as are shown of them at most, and as many events. Older
    /// ones, of a member that is cut off for long, are in its error log.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    note: Note,
    sent: Option<Sent>,
}

/// A note that was sent is lost once it is not found where it would be: up to what the leader says is committed, an
/// election timeout later, or an election. So a member that lags does not fill the log with what is in it already.
struct Sent {
    term: Term,
    at_ms: u64,
    /// Since it may be lost.
    looked_for_up_to: Option<Index>,
}

impl Waiting {
    /// Whether it is to be sent, for the first time or again.
    fn is_due(&mut self, driver: &Driver, status: &Status) -> bool {
        let Some(sent) = &mut self.sent else { return true };
        let waited_ms = driver.now_ms.saturating_sub(sent.at_ms);
        let doubtful = sent.term != status.term || waited_ms >= driver.options.election_timeout_ms;
        if doubtful && sent.looked_for_up_to.is_none() {
            sent.looked_for_up_to = Some(status.commit_told);
        }
        // What earlier leaders have committed stands before the first entry of this one.
        let last = driver.applied.last;
        last.term == status.term && sent.looked_for_up_to.is_some_and(|upto| last.index >= upto)
    }
}

impl Posting {
    /// Sent with the next look.
    pub fn push(&mut self, note: Note) {
        let kind = std::mem::discriminant(&note);
        let is_alike = |other: &Waiting| std::mem::discriminant(&other.note) == kind;
        if self.waiting.iter().filter(|other| is_alike(other)).count() >= NOTES_MAX {
            let oldest = self.waiting.iter().position(is_alike);
            oldest.and_then(|at| self.waiting.remove(at));
        }
        self.waiting.push_back(Waiting { note, sent: None });
    }

    /// This one is in the log.
    pub fn noted(&mut self, id: NoteId) {
        self.waiting.retain(|waiting| waiting.note.id() != id);
    }

    /// Proposes what waits, or sends it to the leader.
    pub fn send(&mut self, driver: &mut Driver, out: &mut Output) {
        let Some(leader) = driver.leader().filter(|_| !self.waiting.is_empty()) else { return };
        let status = driver.status();
        // Until then a leader of an earlier release may yet come, which would not read them.
        if status.config.level < OPERATORS || status.commit < status.config_index {
            return;
        }
        let mut due: Vec<&mut Waiting> = Vec::new();
        for waiting in &mut self.waiting {
            if waiting.is_due(driver, &status) {
                due.push(waiting);
            }
        }
        if due.is_empty() {
            return;
        }
        let proposal =
            |waiting: &&mut Waiting| Proposal::new(EntryKind::Note, waiting.note.encode());
        let proposals: Vec<Proposal> = due.iter().map(proposal).collect();
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
            let (term, at_ms) = (status.term, driver.now_ms);
            for waiting in due {
                waiting.sent = Some(Sent { term, at_ms, looked_for_up_to: None });
            }
        }
    }
}

/// A note that another member asks the leader to propose: its own, and one that all can read. It asks again
/// where this one does not lead.
pub(crate) fn propose_for(from: MemberId, note: Proposal, driver: &mut Driver, out: &mut Output) {
    let is_its_own = note.data.len() <= NOTE_BYTES_MAX
        && Note::decode(note.data.clone()).is_ok_and(|note| note.id().member == from);
    let now_ms = driver.now_ms;
    match is_its_own {
        _ if !driver.is_member(from) => driver.reject(from, Cause::NoMember, out),
        false => driver.reject(from, Cause::Forged, out),
        // Each is a line in all members' error logs.
        true if !driver.peers.get(from).is_some_and(|peer| peer.notes.is_ready(now_ms)) => {
            driver.reject(from, Cause::TooMuch, out);
        }
        true => {
            if propose(vec![note], driver, out) {
                driver.peers.get_mut(from).into_iter().for_each(|peer| peer.notes.spend(now_ms));
            }
        }
    }
}

/// False: not now.
fn propose(notes: Vec<Proposal>, driver: &mut Driver, out: &mut Output) -> bool {
    driver.config.level >= OPERATORS && driver.step(Event::Propose(notes), out).is_ok()
}
