//! Notes of operators' orders, held against what the operators were told, and against what others show.

use super::digests::Digests;
use super::{Oracle, Rule};
use quorate_consensus::{Index, MemberId};
use quorate_group::{Notes, OrderNote};
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

    /// A note of an order is in the log.
    pub fn noted(&mut self, note: &OrderNote) {
        let author = &note.taken.mandate.author.name;
        let told = self.orders.told.get(author).copied();
        self.fail_if(told != Some(note.done), Rule::NotesAreTrue, || {
            format!("the operator was told {told:?}, but noted is {note}")
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_group::{Author, Mandate, NoteId, OrderTaken};

    fn note(author: &str, done: bool) -> OrderNote {
        let author = Author { name: author.into(), from: String::new() };
        let mandate = Mandate { author, given_ms: 1 };
        let taken = OrderTaken::new(NoteId::default(), "m0", mandate, "rules");
        OrderNote { taken, done, outcome: String::new() }
    }

    #[test]
    fn a_note_says_what_the_operator_was_told() {
        for (noted, right) in
            [(note("7", true), true), (note("7", false), false), (note("8", true), false)]
        {
            let mut oracle = Oracle::default();
            oracle.told_order("7".into(), true);
            oracle.noted(&noted);
            assert_eq!(oracle.failed(), !right, "{noted}");
        }
    }

    #[test]
    fn who_shows_other_notes_is_noticed() {
        let mut notes = Notes::default();
        let empty = digest(&notes);
        notes.take(note("7", true));
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
