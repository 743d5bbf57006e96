//! Something that happened to the group, and why.

use super::text::{cut, quoted, read_time, text, time, NAME_MAX, TEXT_MAX, TIME_MAX_MS};
use super::NoteId;
use quorate_wire::{BodyReader, BodyWriter, WireError};
use std::fmt;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Another member leads.
    Leader,
    /// The configuration changed: who belongs to the group, as what, at which level.
    Membership,
    /// Other members are there.
    View,
    /// A member received the whole state from another one, or could not.
    Transfer,
    /// A member went out of service by itself.
    Withdrawal,
}

/// All that there are, each at the place of its code.
const KINDS: [(EventKind, &str); 5] = [
    (EventKind::Leader, "leader"),
    (EventKind::Membership, "membership"),
    (EventKind::View, "view"),
    (EventKind::Transfer, "transfer"),
    (EventKind::Withdrawal, "withdrawal"),
];

/// An event, as the member of this name saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    pub id: NoteId,
    pub node: String,
    /// Milliseconds since 1970, by that node's clock.
    pub at_ms: u64,
    pub kind: EventKind,
    /// In words, with the reason.
    pub what: String,
}

impl EventKind {
    pub fn word(self) -> &'static str {
        KINDS[self as usize].1
    }
}

impl EventNote {
    /// Texts that are too long are cut, and times beyond the calendar are its end.
    pub fn new(id: NoteId, node: &str, at_ms: u64, kind: EventKind, what: &str) -> Self {
        let (node, what) = (cut(node, NAME_MAX), cut(what, TEXT_MAX));
        Self { id, node, at_ms: at_ms.min(TIME_MAX_MS), kind, what }
    }

    pub(super) fn write(&self, out: &mut BodyWriter) {
        out.text(&self.node);
        out.u64(self.at_ms);
        out.u8(self.kind as u8);
        out.text(&self.what);
    }

    pub(super) fn read(id: NoteId, body: &mut BodyReader) -> Result<Self, WireError> {
        let node = text(body, NAME_MAX)?;
        let at_ms = read_time(body)?;
        let code = body.u8()?;
        let known = KINDS.get(usize::from(code)).map(|(kind, _)| *kind);
        let kind =
            known.ok_or(WireError::BadValue { what: "kind of event", value: code.into() })?;
        Ok(Self { id, node, at_ms, kind, what: text(body, TEXT_MAX)? })
    }
}

impl fmt::Display for EventNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, node, at_ms, kind, what } = self;
        let (at, node, kind, what) = (time(*at_ms), quoted(node), kind.word(), quoted(what));
        write!(out, "id={id} at={at} node={node} kind={kind} what={what}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_at_the_place_of_its_code() {
        for (code, (kind, word)) in KINDS.into_iter().enumerate() {
            assert_eq!((kind as usize, kind.word()), (code, word));
        }
    }
}
