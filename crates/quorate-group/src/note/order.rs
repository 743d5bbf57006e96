//! What came of an operator's order.

use super::text::{cut, quoted, read_time, text, time, NAME_MAX, TEXT_MAX, TIME_MAX_MS};
use super::NoteId;
use crate::author::{Author, Mandate};
use quorate_wire::{BodyReader, BodyWriter, WireError};
use std::fmt;

/// An operator's order that a member has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderTaken {
    pub id: NoteId,
    /// The name of the node that took it.
    pub node: String,
    pub mandate: Mandate,
    /// The order, in words.
    pub what: String,
}

/// An order, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderNote {
    pub taken: OrderTaken,
    pub done: bool,
    /// What it was answered with.
    pub outcome: String,
}

impl OrderTaken {
    /// Texts that are too long are cut, and times beyond the calendar are its end.
    pub fn new(id: NoteId, node: &str, mandate: Mandate, what: &str) -> Self {
        let Author { name, from } = &mandate.author;
        let author = Author { name: cut(name, NAME_MAX), from: cut(from, NAME_MAX) };
        let mandate = Mandate { author, given_ms: mandate.given_ms.min(TIME_MAX_MS) };
        Self { id, node: cut(node, NAME_MAX), mandate, what: cut(what, TEXT_MAX) }
    }
}

impl OrderNote {
    pub fn new(taken: OrderTaken, outcome: Result<String, String>) -> Self {
        let done = outcome.is_ok();
        let outcome = outcome.unwrap_or_else(|reason| reason);
        Self { taken, done, outcome: cut(&outcome, TEXT_MAX) }
    }

    pub fn id(&self) -> NoteId {
        self.taken.id
    }

    pub(super) fn write(&self, out: &mut BodyWriter) {
        let OrderTaken { node, mandate, what, .. } = &self.taken;
        out.text(node);
        out.text(&mandate.author.name);
        out.text(&mandate.author.from);
        out.u64(mandate.given_ms);
        out.text(what);
        out.bool(self.done);
        out.text(&self.outcome);
    }

    pub(super) fn read(id: NoteId, body: &mut BodyReader) -> Result<Self, WireError> {
        let node = text(body, NAME_MAX)?;
        let author = Author { name: text(body, NAME_MAX)?, from: text(body, NAME_MAX)? };
        let given_ms = read_time(body)?;
        let what = text(body, TEXT_MAX)?;
        let (done, outcome) = (body.bool()?, text(body, TEXT_MAX)?);
        let taken = OrderTaken { id, node, mandate: Mandate { author, given_ms }, what };
        Ok(Self { taken, done, outcome })
    }
}

/// As `docs/security.md` describes it: fields that can be searched for, words of others in quotes.
impl fmt::Display for OrderTaken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, node, mandate: Mandate { author, given_ms }, what } = self;
        write!(
            out,
            "id={id} at={} node={} by={} from={} what={}",
            time(*given_ms),
            quoted(node),
            quoted(&author.name),
            quoted(&author.from),
            quoted(what)
        )
    }
}

impl fmt::Display for OrderNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.done { "yes" } else { "no" };
        write!(out, "{} done={done} outcome={}", self.taken, quoted(&self.outcome))
    }
}
