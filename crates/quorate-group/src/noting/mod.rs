//! What is noted in the group's log: what came of operators' orders, and what happened to the group.
//!
//! Invariants:
//! - whatever answers an order, it is seen here: answers are looked for in the output itself;
//! - a note is proposed only where all members can read it (`level::OPERATORS`), by the leader only after
//!   an entry that says so. It is proposed again if it is not found in the log (`posting`), until it is, or
//!   this process ends.

mod audit;
mod posting;

pub(crate) use posting::propose_for;

use crate::author::Mandate;
use crate::driver::Driver;
use crate::note::{EventNote, Note, NoteId, OrderTaken};
use crate::order::Order;
use crate::output::{LogLevel, Output};
use audit::Audit;
use posting::Posting;
use quorate_consensus::level::OPERATORS;

#[derive(Default)]
pub(crate) struct Noting {
    /// Notes begun since the start.
    count: u64,
    audit: Audit,
    posting: Posting,
}

impl Noting {
    /// An operator's order is handed in.
    pub fn begin(
        &mut self,
        id: u64,
        order: &Order,
        mandate: Mandate,
        driver: &Driver,
        out: &mut Output,
    ) {
        let note_id = self.next_id(driver);
        let taken = OrderTaken::new(note_id, &driver.options.name, mandate, &order.to_string());
        out.log(LogLevel::Info, format!("order: begins {taken}"));
        self.audit.begin(id, taken);
    }

    /// Looks for answers in what goes out, and for what happened.
    pub fn look(&mut self, driver: &mut Driver, out: &mut Output) {
        let ended = self.audit.ended(out);
        let happened = driver.take_happened();
        if ended.is_empty() && happened.is_empty() {
            return;
        }
        for note in &ended {
            out.log(LogLevel::Info, format!("order: ended {note}"));
        }
        // An earlier release would stop where it meets one.
        if driver.config.level < OPERATORS || driver.closed {
            return;
        }
        ended.into_iter().for_each(|note| self.posting.push(Note::Order(note)));
        for event in happened {
            let id = self.next_id(driver);
            let (node, at_ms) = (&driver.options.name, event.at_ms);
            let note = EventNote::new(id, node, at_ms, event.kind, &event.what);
            self.posting.push(Note::Event(note));
        }
        driver.due = true;
    }

    /// This one is in the log.
    pub fn noted(&mut self, id: NoteId) {
        self.posting.noted(id);
    }

    /// Proposes what waits, or sends it to the leader.
    pub fn send(&mut self, driver: &mut Driver, out: &mut Output) {
        self.posting.send(driver, out);
    }

    fn next_id(&mut self, driver: &Driver) -> NoteId {
        self.count += 1;
        NoteId { member: driver.id, incarnation: driver.incarnation, number: self.count }
    }
}
