//! Notes, held against what operators were told and what had happened, and against what others show.

use super::digests::Digests;
use super::{Oracle, Rule};
use quorate_consensus::{Index, MemberId};
use quorate_group::{EventKind, Note, Notes};
use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

#[derive(Default)]
pub struct Orders {
    /// What became of each, by the number that its author goes by.
    told: BTreeMap<String, bool>,
    shown: Digests,
}

/// Differs if the notes differ.
pub fn digest(notes: &Notes) -> u64 {
    XxHash3_64::oneshot(&notes.encode())
}

impl Oracle {
    /// The operator of this number was told whether the order was done.
    pub fn told_order(&mut self, author: String, done: bool) {
        self.orders.told.insert(author, done);
    }

    /// A note is in the log, where the newest view has this number.
    pub fn noted(&mut self, note: &Note, view: u64) {
        match note {
            Note::Order(order) => {
                let author = &order.taken.mandate.author.name;
                let told = self.orders.told.get(author).copied();
                self.fail_if(told != Some(order.done), Rule::NotesAreTrue, || {
                    format!("the operator was told {told:?}, but noted is {note}")
                });
            }
            Note::Event(event) => {
                let is_true = match event.kind {
                    EventKind::Leader => {
                        let term = number_after(&event.what, " leads in term ");
                        term.and_then(|term| self.leader_of(term)) == Some(event.id.member)
                    }
                    EventKind::View => {
                        number_after(&event.what, "view ").is_some_and(|number| number <= view)
                    }
                    _ => true,
                };
                self.fail_if(!is_true, Rule::NotesAreTrue, || {
                    format!("that was not so, where the newest view is {view}: {note}")
                });
            }
        }
    }

    /// `member` shows notes of this digest after `index`.
    pub fn notes(&mut self, member: MemberId, index: Index, digest: u64) {
        let agrees = self.orders.shown.agrees(index, digest);
        self.fail_if(!agrees, Rule::SameNotesEverywhere, || {
            format!("after entry {index} {member:?} shows other notes than the first to get there")
        });
    }

    pub(super) fn forget_notes_after(&mut self, upto: Index) {
        self.orders.shown.forget_after(upto);
    }
}

/// The number that follows these words.
fn number_after(text: &str, words: &str) -> Option<u64> {
    let (_, rest) = text.split_once(words)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_group::{Author, EventNote, Mandate, NoteId, OrderNote, OrderTaken};

    fn note(author: &str, done: bool) -> Note {
        let author = Author { name: author.into(), from: String::new() };
        let mandate = Mandate { author, given_ms: 1 };
        let taken = OrderTaken::new(NoteId::default(), "m0", mandate, "rules");
        Note::Order(OrderNote { taken, done, outcome: String::new() })
    }

    #[test]
    fn a_note_says_what_the_operator_was_told() {
        for (noted, right) in
            [(note("7", true), true), (note("7", false), false), (note("8", true), false)]
        {
            let mut oracle = Oracle::default();
            oracle.told_order("7".into(), true);
            oracle.noted(&noted, 0);
            assert_eq!(oracle.failed(), !right, "{noted}");
        }
    }

    #[test]
    fn an_event_is_one_that_had_happened() {
        let event = |kind, what: &str| {
            let id = NoteId { member: MemberId(1), ..NoteId::default() };
            Note::Event(EventNote::new(id, "m1", 1, kind, what))
        };
        for (note, right) in [
            (event(EventKind::View, "view 7 of m1; m2 is gone"), true),
            (event(EventKind::View, "view 8 of m1"), false),
            (event(EventKind::Leader, "m1 leads in term 3: why"), false),
        ] {
            let mut oracle = Oracle::default();
            oracle.noted(&note, 7);
            assert_eq!(oracle.failed(), !right, "{note}");
        }
    }

    #[test]
    fn who_shows_other_notes_is_noticed() {
        let mut notes = Notes::default();
        let empty = digest(&notes);
        notes.take(1, note("7", true));
        assert_ne!(digest(&notes), empty);
        let mut oracle = Oracle::default();
        oracle.notes(MemberId(1), 0, empty);
        oracle.notes(MemberId(1), 1, digest(&notes));
        oracle.notes(MemberId(2), 1, digest(&notes));
        assert!(!oracle.failed());
        oracle.notes(MemberId(3), 1, empty);
        assert_eq!(
            oracle.take_violation().map(|found| found.rule),
            Some(Rule::SameNotesEverywhere)
        );
    }
}
