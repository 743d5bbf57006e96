//! Every reader of the files in the data directory, for fuzzers: whatever the text is, nothing panics, and
//! what is understood is written so that it means the same. Not part of the interface.

use crate::start::grastate::Grastate;
use crate::start::{failed, isolated, refused};

/// Of the notes that are looked for.
const HISTORY: u128 = 7;

/// `grastate.dat`.
pub fn grastate(text: &str) {
    if let Some(state) = Grastate::parse(text) {
        assert_eq!(Grastate::parse(&state.render()), Some(state));
    }
}

/// The note on a database that was refused.
pub fn refused_database(text: &str) {
    if let Some(database) = refused::parse(text) {
        assert_eq!(refused::parse(&refused::render(database)), Some(database));
    }
}

/// The notes on isolated actions: each line of its own says what it says in any file.
pub fn isolated_notes(text: &str) {
    // An end of a line that is not ours is part of it only where more follows.
    let text = &text.replace('\r', " ");
    let notes: Vec<_> = isolated::parse(text, HISTORY).collect();
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let alone: Vec<_> = lines.flat_map(|line| isolated::parse(line, HISTORY)).collect();
    assert_eq!(notes, alone);
}

/// The notes on errors.
pub fn error_notes(text: &str) {
    if let Some(notes) = failed::parse(text, HISTORY) {
        assert_eq!(notes.history, HISTORY);
        assert_eq!(failed::parse(&failed::render(&notes), HISTORY), Some(notes));
    }
}
