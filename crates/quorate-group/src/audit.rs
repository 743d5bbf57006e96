//! Orders of operators: a line in this node's error log when one begins and when it has ended, and then a
//! note of it in the group's log.
//!
//! Invariants:
//! - whatever answers an order, it is seen here: answers are looked for in the output itself;
//! - a note is proposed only where all members can read it (`level::OPERATORS`), by the leader only after
//!   an entry that says so, and again until it is seen in the log, or this process ends.

use crate::author::Mandate;
use crate::driver::Driver;
use crate::note::{NoteId, OrderNote, OrderTaken, NOTES_MAX, NOTE_BYTES_MAX};
use crate::order::{Answer, Done, Order};
use crate::output::{LogLevel, Output};
use crate::rejected::Cause;
use quorate_consensus::level::OPERATORS;
use quorate_consensus::{EntryKind, Event, MemberId, Proposal};
use quorate_wire::Packet;
use std::collections::{BTreeMap, VecDeque};

#[derive(Default)]
pub(crate) struct Audit {
    /// Orders taken since the start.
    count: u64,
    /// Not answered yet, by the ids that they were handed in with.
    open: BTreeMap<u64, OrderTaken>,
    /// Answered, and not seen in the log yet; as many as are shown of them at most. Older ones, of a member
    /// that is cut off for long, are in its error log.
    waiting: VecDeque<OrderNote>,
    /// What they were sent after, last: see [`Driver::changes`]; and when that was.
    sent: Option<(u64, u64)>,
}

impl Audit {
    /// An operator's order is handed in.
    pub fn begin(
        &mut self,
        id: u64,
        order: &Order,
        mandate: Mandate,
        driver: &Driver,
        out: &mut Output,
    ) {
        self.count += 1;
        let (member, incarnation, number) = (driver.id, driver.incarnation, self.count);
        let note_id = NoteId { member, incarnation, number };
        let taken = OrderTaken::new(note_id, &driver.options.name, mandate, &order.to_string());
        out.log(LogLevel::Info, format!("order: begins {taken}"));
        self.open.insert(id, taken);
    }

    /// Looks for answers in what goes out.
    pub fn look(&mut self, driver: &mut Driver, out: &mut Output) {
        if self.open.is_empty() {
            return;
        }
        let found = out.answers.iter().filter_map(|(id, answer)| {
            let taken = self.open.remove(id)?;
            Some(OrderNote::new(taken, outcome(answer)))
        });
        let found: Vec<OrderNote> = found.collect();
        for note in found {
            out.log(LogLevel::Info, format!("order: ended {note}"));
            // An earlier release would stop where it meets one.
            if driver.config.level < OPERATORS || driver.closed {
                continue;
            }
            if self.waiting.len() >= NOTES_MAX {
                self.waiting.pop_front();
            }
            self.waiting.push_back(note);
            (self.sent, driver.due) = (None, true);
        }
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
        let proposal = |note: &OrderNote| Proposal::new(EntryKind::Note, note.encode());
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
        && OrderNote::decode(note.data.clone()).is_ok_and(|note| note.id().member == from);
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

fn outcome(answer: &Answer) -> Result<String, String> {
    let names = |names: &[String]| names.join(", ");
    match answer {
        Ok(Done::Nothing) => Ok("done".into()),
        Ok(Done::ReadPoint(index)) => Ok(format!("everything up to log index {index}")),
        Ok(Done::Leader(name)) => Ok(format!("{name} leads")),
        Ok(Done::Forced(plan)) => {
            Ok(format!("kept {}; gave up {}", names(&plan.kept), names(&plan.lost)))
        }
        Err(error) => Err(error.to_string()),
    }
}
