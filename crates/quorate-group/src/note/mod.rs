//! Notes: entries of the log that say what happened to the group, and what came of an operator's order. Every
//! node shows them.
//!
//! Invariants:
//! - a note is counted once, however often it is in the log: who proposes it does so again where it seems
//!   to be lost;
//! - the last [`NOTES_MAX`] orders and [`EVENTS_MAX`] events follow from the log alone, and stand in the
//!   group's part of a snapshot;
//! - what a line shows of others' words begins no new line, nor does it command a terminal.

mod event;
mod list;
mod order;
mod text;

pub use event::{EventKind, EventNote};
pub use list::Notes;
pub use order::{OrderNote, OrderTaken};

use bytes::Bytes;
use quorate_consensus::{level, MemberId, LEVEL};
use quorate_wire::{BodyReader, BodyWriter, WireError};
use std::fmt;

/// So many orders are kept, the newest.
pub const NOTES_MAX: usize = 64;
/// And so many events.
pub const EVENTS_MAX: usize = 256;
/// Longest encoded note, in bytes.
pub const NOTE_BYTES_MAX: usize = 8 << 10;
const VERSION: u8 = 1;
const _: () = assert!(VERSION == level::NEWEST.note);
const _: () = assert!(3 * text::NAME_MAX + 2 * text::TEXT_MAX + 64 <= NOTE_BYTES_MAX);
const ORDER: u8 = 0;
const EVENT: u8 = 1;

/// One note among all that members ever made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoteId {
    /// The member that made it, the number of its start, and the number of the note since then.
    pub member: MemberId,
    pub incarnation: u32,
    pub number: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    Order(OrderNote),
    Event(EventNote),
}

impl Note {
    pub fn id(&self) -> NoteId {
        match self {
            Note::Order(note) => note.id(),
            Note::Event(note) => note.id,
        }
    }

    /// When that was, by the clock of the node that noted it: RFC 3339, in UTC.
    pub fn time(&self) -> String {
        let unix_ms = match self {
            Note::Order(note) => note.taken.mandate.given_ms,
            Note::Event(note) => note.at_ms,
        };
        text::time(unix_ms).to_string()
    }

    pub fn encode(&self) -> Bytes {
        let NoteId { member, incarnation, number } = self.id();
        let mut out = BodyWriter::default();
        out.u8(VERSION);
        out.u128(member.0);
        out.u32(incarnation);
        out.u64(number);
        match self {
            Note::Order(note) => {
                out.u8(ORDER);
                note.write(&mut out);
            }
            Note::Event(note) => {
                out.u8(EVENT);
                note.write(&mut out);
            }
        }
        out.finish().to_bytes()
    }

    /// [`WireError::Newer`]: a later release wrote it. What else cannot be read is the same bytes to all.
    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut body = BodyReader::new(bytes, "note");
        let version = body.u8()?;
        if version != VERSION {
            let upgrade = level::upgrade(LEVEL + 1);
            let what = format!("the note's layout has version {version}: {upgrade}");
            return Err(WireError::Newer(what));
        }
        let (member, incarnation) = (MemberId(body.u128()?), body.u32()?);
        let id = NoteId { member, incarnation, number: body.u64()? };
        let note = match body.u8()? {
            ORDER => Note::Order(OrderNote::read(id, &mut body)?),
            EVENT => Note::Event(EventNote::read(id, &mut body)?),
            other => return Err(WireError::BadValue { what: "kind of note", value: other.into() }),
        };
        body.end()?;
        Ok(note)
    }
}

impl fmt::Display for NoteId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}/{}/{}", self.member, self.incarnation, self.number)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Order(note) => note.fmt(out),
            Note::Event(note) => note.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::text::TEXT_MAX;
    use super::*;
    use crate::author::{Author, Mandate};

    fn note(number: u64, author: &str) -> OrderNote {
        let id = NoteId { member: MemberId(7 << 96), incarnation: 3, number };
        let author = Author { name: author.into(), from: "10.0.0.9".into() };
        let mandate = Mandate { author, given_ms: 1_764_018_300_123 };
        let taken = OrderTaken::new(id, "n1", mandate, "switchover to n2");
        OrderNote::new(taken, Ok("n2 leads".into()))
    }

    #[test]
    fn a_note_is_shown_in_one_line_whatever_is_in_it() {
        assert_eq!(
            note(1, "root@localhost").to_string(),
            "id=00000007/3/1 at=2025-11-24T21:05:00.123Z node=\"n1\" by=\"root@localhost\" \
             from=\"10.0.0.9\" what=\"switchover to n2\" done=yes outcome=\"n2 leads\""
        );
        let forged = note(1, "a\" by=\"root\n[ERROR] \x1b[2Jgone\\").to_string();
        let shown = "by=\"a\\\" by=\\\"root\\n[ERROR] \\u{1b}[2Jgone\\\\\"";
        assert!(forged.contains(shown), "{forged}");
    }

    fn event(number: u64, what: &str) -> Note {
        let id = NoteId { member: MemberId(7 << 96), incarnation: 3, number };
        Note::Event(EventNote::new(id, "n1", 1_764_018_300_123, EventKind::Leader, what))
    }

    #[test]
    fn an_event_is_shown_in_one_line_too() {
        assert_eq!(
            event(1, "leads in term 7\n[ERROR]").to_string(),
            "id=00000007/3/1 at=2025-11-24T21:05:00.123Z node=\"n1\" kind=leader \
             what=\"leads in term 7\\n[ERROR]\""
        );
    }

    #[test]
    fn a_note_survives_the_log_and_one_of_a_later_release_says_so() {
        let note = note(1, "root@localhost");
        let refused = OrderNote::new(note.taken.clone(), Err("no".repeat(TEXT_MAX)));
        assert_eq!((refused.done, refused.outcome.len()), (false, TEXT_MAX));
        for whole in [Note::Order(note.clone()), Note::Order(refused), event(1, "why")] {
            let encoded = whole.encode();
            assert_eq!(Note::decode(encoded.clone()), Ok(whole));
            let later = [&[VERSION + 1][..], &encoded[1..]].concat();
            assert!(matches!(Note::decode(later.into()), Err(WireError::Newer(_))));
            let longer = [&encoded[..], b"more"].concat();
            assert!(matches!(Note::decode(longer.into()), Err(WireError::Trailing { .. })));
        }
        let mut taken = note.taken;
        taken.what = "x".repeat(TEXT_MAX + 1);
        let long = Note::Order(OrderNote { taken, done: true, outcome: String::new() });
        assert!(matches!(Note::decode(long.encode()), Err(WireError::BadText { .. })));
    }

    #[test]
    fn the_longest_note_is_within_the_limit() {
        let long = "ä".repeat(TEXT_MAX);
        let author = Author { name: long.clone(), from: long.clone() };
        let mandate = Mandate { author, given_ms: u64::MAX };
        let taken = OrderTaken::new(NoteId::default(), &long, mandate, &long);
        let order = Note::Order(OrderNote::new(taken, Err(long.clone())));
        let kind = EventKind::Withdrawal;
        let event = EventNote::new(NoteId::default(), &long, u64::MAX, kind, &long);
        for note in [order, Note::Event(event)] {
            assert!(note.encode().len() <= NOTE_BYTES_MAX);
            assert_eq!(Note::decode(note.encode()), Ok(note.clone()));
            assert!(note.to_string().contains("at=9999-12-31T23:59:59.999Z"));
        }
    }

    #[test]
    fn the_newest_are_kept_and_each_counts_once() {
        let mut notes = Notes::default();
        let order = |number| Note::Order(note(number, "a"));
        let mut index = 0;
        let mut take = |note| {
            index += 1;
            notes.take(index, note)
        };
        assert!(take(order(1)) && !take(order(1)));
        assert!(take(event(1, "a")) && !take(event(1, "a")));
        assert!((2..=NOTES_MAX as u64 + 1).all(|number| take(order(number))));
        assert!((2..=EVENTS_MAX as u64 + 1).all(|number| take(event(number, "b"))));
        assert!(notes.all().is_sorted_by_key(|(index, _)| *index));
        let numbers: Vec<u64> = notes.orders().map(|note| note.id().number).collect();
        assert_eq!(numbers, (2..=NOTES_MAX as u64 + 1).collect::<Vec<_>>());
        let numbers: Vec<u64> = notes.events().map(|note| note.id.number).collect();
        assert_eq!(numbers, (2..=EVENTS_MAX as u64 + 1).collect::<Vec<_>>());
        assert_eq!(Notes::decode(notes.encode()), Ok(notes));
        for (first, second) in [((1, order(1)), (2, order(1))), ((2, order(1)), (2, order(2)))] {
            let mut bad = BodyWriter::default();
            bad.u32(2);
            for (index, note) in [first, second] {
                bad.u64(index);
                bad.data(&note.encode());
            }
            assert!(Notes::decode(bad.finish().to_bytes()).is_err());
        }
    }
}
