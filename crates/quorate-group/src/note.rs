//! What came of an operator's order: an entry of the log that every node shows.
//!
//! Invariants:
//! - a note is counted once, however often it is in the log: who proposes it does so again to each new
//!   leader until it sees it;
//! - the last [`NOTES_MAX`] notes follow from the log alone, and stand in the group's part of a snapshot;
//! - what a line shows of others' words begins no new line, nor does it command a terminal.

use crate::author::{Author, Mandate};
use bytes::Bytes;
use quorate_consensus::{level, MemberId, LEVEL};
use quorate_wire::{BodyReader, BodyWriter, WireError};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// So many are kept, the newest.
pub const NOTES_MAX: usize = 64;
/// Longest encoded note, in bytes.
pub const NOTE_BYTES_MAX: usize = 8 << 10;
const VERSION: u8 = 1;
const _: () = assert!(VERSION == level::NEWEST.note);
/// Longest name (of a node, an account, a host), and longest order or outcome, in bytes.
const NAME_MAX: usize = 512;
const TEXT_MAX: usize = 2048;
const _: () = assert!(3 * NAME_MAX + 2 * TEXT_MAX + 64 <= NOTE_BYTES_MAX);
/// The end of the year 9999, in milliseconds since 1970: no later time is shown.
const TIME_MAX_MS: u64 = 253_402_300_799_999;

/// One order among all that operators ever gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoteId {
    /// The member that took the order, the number of its start, and the number of the order since then.
    pub member: MemberId,
    pub incarnation: u32,
    pub number: u64,
}

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

/// The newest notes of a log, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    list: VecDeque<OrderNote>,
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

    pub fn encode(&self) -> Bytes {
        let OrderTaken { id, node, mandate, what } = &self.taken;
        let mut out = BodyWriter::default();
        out.u8(VERSION);
        out.u128(id.member.0);
        out.u32(id.incarnation);
        out.u64(id.number);
        out.text(node);
        out.text(&mandate.author.name);
        out.text(&mandate.author.from);
        out.u64(mandate.given_ms);
        out.text(what);
        out.bool(self.done);
        out.text(&self.outcome);
        out.finish().to_bytes()
    }

    /// [`WireError::Newer`]: a later release wrote it. What else cannot be read is the same bytes to all.
    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut body = BodyReader::new(bytes, "note of an order");
        let version = body.u8()?;
        if version != VERSION {
            return Err(WireError::Newer(format!(
                "the note's layout has version {version}: {}",
                level::upgrade(LEVEL + 1)
            )));
        }
        let id = NoteId {
            member: MemberId(body.u128()?),
            incarnation: body.u32()?,
            number: body.u64()?,
        };
        let node = text(&mut body, NAME_MAX)?;
        let author = Author { name: text(&mut body, NAME_MAX)?, from: text(&mut body, NAME_MAX)? };
        let given_ms = body.u64()?;
        if given_ms > TIME_MAX_MS {
            return Err(WireError::BadValue { what: "time of an order", value: given_ms });
        }
        let what = text(&mut body, TEXT_MAX)?;
        let (done, outcome) = (body.bool()?, text(&mut body, TEXT_MAX)?);
        body.end()?;
        let taken = OrderTaken { id, node, mandate: Mandate { author, given_ms }, what };
        Ok(Self { taken, done, outcome })
    }
}

impl Notes {
    /// The next of the log. False if it counts for nothing: it is here already.
    pub fn take(&mut self, note: OrderNote) -> bool {
        if self.list.iter().any(|known| known.id() == note.id()) {
            return false;
        }
        if self.list.len() >= NOTES_MAX {
            self.list.pop_front();
        }
        self.list.push_back(note);
        true
    }

    /// The oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &OrderNote> {
        self.list.iter()
    }

    pub fn encode(&self) -> Bytes {
        let mut out = BodyWriter::default();
        out.u32(self.list.len() as u32);
        self.list.iter().for_each(|note| out.data(&note.encode()));
        out.finish().to_bytes()
    }

    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut body = BodyReader::new(bytes, "notes of orders");
        let count = body.count(4)?;
        if count > NOTES_MAX {
            return Err(WireError::BadValue { what: "count of notes", value: count as u64 });
        }
        let mut notes = Self::default();
        for _ in 0..count {
            if !notes.take(OrderNote::decode(body.data()?)?) {
                return Err(WireError::BadValue { what: "number of a note", value: 0 });
            }
        }
        body.end()?;
        Ok(notes)
    }
}

/// As `docs/security.md` describes it: fields that can be searched for, words of others in quotes.
impl fmt::Display for OrderTaken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, node, mandate: Mandate { author, given_ms }, what } = self;
        let given = UNIX_EPOCH + Duration::from_millis((*given_ms).min(TIME_MAX_MS));
        write!(
            out,
            "id={:?}/{}/{} at={} node={} by={} from={} what={}",
            id.member,
            id.incarnation,
            id.number,
            humantime::format_rfc3339_millis(given),
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

/// In quotes, on one line: quotes, backslashes and control characters are escaped.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.extend(c.escape_default()),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn text(body: &mut BodyReader, most: usize) -> Result<String, WireError> {
    let text = body.text()?;
    match text.len() <= most {
        true => Ok(text),
        false => Err(WireError::BadText { what: "note of an order" }),
    }
}

/// At most so many bytes of it, and none of a character in part.
fn cut(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_note_survives_the_log_and_one_of_a_later_release_says_so() {
        let note = note(1, "root@localhost");
        assert_eq!(OrderNote::decode(note.encode()), Ok(note.clone()));
        let refused = OrderNote::new(note.taken.clone(), Err("no".repeat(TEXT_MAX)));
        assert_eq!((refused.done, refused.outcome.len()), (false, TEXT_MAX));
        assert_eq!(OrderNote::decode(refused.encode()), Ok(refused));
        let later = [&[VERSION + 1][..], &note.encode()[1..]].concat();
        assert!(matches!(OrderNote::decode(later.into()), Err(WireError::Newer(_))));
        let longer = [&note.encode()[..], b"more"].concat();
        assert!(matches!(OrderNote::decode(longer.into()), Err(WireError::Trailing { .. })));
        let mut taken = note.taken;
        taken.what = "x".repeat(TEXT_MAX + 1);
        let long = OrderNote { taken, done: true, outcome: String::new() };
        assert!(matches!(OrderNote::decode(long.encode()), Err(WireError::BadText { .. })));
    }

    #[test]
    fn the_longest_note_is_within_the_limit() {
        let long = "ä".repeat(TEXT_MAX);
        let author = Author { name: long.clone(), from: long.clone() };
        let mandate = Mandate { author, given_ms: u64::MAX };
        let taken = OrderTaken::new(NoteId::default(), &long, mandate, &long);
        let note = OrderNote::new(taken, Err(long));
        assert!(note.encode().len() <= NOTE_BYTES_MAX);
        assert_eq!(OrderNote::decode(note.encode()), Ok(note.clone()));
        assert!(note.to_string().contains("at=9999-12-31T23:59:59.999Z"));
    }

    #[test]
    fn the_newest_are_kept_and_each_counts_once() {
        let mut notes = Notes::default();
        assert!(notes.take(note(1, "a")) && !notes.take(note(1, "a")));
        for number in 2..=NOTES_MAX as u64 + 1 {
            assert!(notes.take(note(number, "a")));
        }
        let numbers: Vec<u64> = notes.iter().map(|note| note.id().number).collect();
        assert_eq!(numbers, (2..=NOTES_MAX as u64 + 1).collect::<Vec<_>>());
        assert_eq!(Notes::decode(notes.encode()), Ok(notes));
        let mut twice = BodyWriter::default();
        twice.u32(2);
        twice.data(&note(1, "a").encode());
        twice.data(&note(1, "a").encode());
        assert!(Notes::decode(twice.finish().to_bytes()).is_err());
    }
}
