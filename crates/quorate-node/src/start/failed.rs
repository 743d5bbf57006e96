//! Which write sets gave an error on this data, in a file *in the data directory*: it is about the
//! data, and is wiped together with it.
//!
//! The group may decide on an error while this node is away. When the node reads that decision in
//! the log after a restart, the file tells how it went here. The file begins at a *base*: data at
//! or below it came from a state transfer (or from the time before this file), and what it is was
//! settled where it came from.
//!
//! Invariant: an error is in the file, durably, before this node asks the group about it and
//! before anything above its seqno is committed. So above the base, a seqno that this data is past
//! and that is not in the file was a success. One case is not covered: the server stores the seqno
//! of what failed before it tells of the error, and the process may end between the two
//! (`docs/guarantees.md`, "Not promised").

use crate::blocking::Mutex;
use crate::start::{read_note, replace_note, UnusableNote};
use quorate_certify::votes::Ballot;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const NAME: &str = "quorate_errors.dat";
/// Past so many errors the older half is dropped, and the base moves up.
const ERRORS_MAX: usize = 256;

/// How a write set went on this data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Past {
    /// At or below the base: settled elsewhere.
    Settled,
    /// What this node says of it.
    Error(Ballot),
    Success,
}

pub struct FailedNotes {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Inner {
    pub(crate) history: u128,
    pub(crate) base: i64,
    pub(crate) errors: BTreeMap<i64, Ballot>,
}

impl FailedNotes {
    pub fn new(data_dir: &Path) -> Self {
        Self { path: data_dir.join(NAME), inner: Mutex::default() }
    }

    /// Reads what is known of this data, which stands at `position`, and has executed what `is_done` says above it.
    /// What the file does not speak of (it is new, or about another history) begins there.
    ///
    /// The inner result is of writing down where it begins.
    pub fn open(
        &self,
        history: u128,
        position: i64,
        is_done: impl Fn(i64) -> bool,
    ) -> Result<io::Result<()>, UnusableNote> {
        let text = read_note(&self.path)?.unwrap_or_default();
        let found = parse(&text, history).filter(|found| found.base <= position);
        let mut inner = self.inner.lock();
        let is_whole = found.is_some() && text.ends_with('\n');
        *inner = found.unwrap_or(Inner { history, base: position, errors: BTreeMap::new() });
        // An error above the position was lost with its seqno: it comes again, and may be none then.
        let noted = inner.errors.len();
        inner.errors.retain(|seqno, _| *seqno <= position || is_done(*seqno));
        // A line after a torn one would be read as part of that.
        Ok(if is_whole && inner.errors.len() == noted { Ok(()) } else { self.write(&inner) })
    }

    /// The data was replaced by a state of this position.
    pub fn replaced(&self, history: u128, position: i64) -> io::Result<()> {
        let mut inner = self.inner.lock();
        *inner = Inner { history, base: position, errors: BTreeMap::new() };
        self.write(&inner)
    }

    /// Notes an error, durably: what this node says of it.
    pub fn note(&self, seqno: i64, ballot: Ballot) -> io::Result<()> {
        let mut inner = self.inner.lock();
        if inner.errors.insert(seqno, ballot) == Some(ballot) {
            return Ok(());
        }
        if inner.errors.len() > ERRORS_MAX {
            let kept = inner.errors.keys().nth(ERRORS_MAX / 2).copied().unwrap_or(seqno);
            inner.errors = inner.errors.split_off(&kept);
            inner.base = inner.base.max(kept - 1);
            return self.write(&inner);
        }
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(error_line(inner.history, seqno, ballot).as_bytes())?;
        file.sync_data()
    }

    pub fn past(&self, seqno: i64) -> Past {
        let inner = self.inner.lock();
        match inner.errors.get(&seqno) {
            _ if seqno <= inner.base => Past::Settled,
            Some(ballot) => Past::Error(*ballot),
            None => Past::Success,
        }
    }

    fn write(&self, inner: &Inner) -> io::Result<()> {
        replace_note(&self.path, &render(inner))
    }
}

/// What [`parse`] reads.
pub(crate) fn render(inner: &Inner) -> String {
    let mut text = format!("{:032x} base {}\n", inner.history, inner.base);
    inner.errors.iter().for_each(|(s, d)| text += &error_line(inner.history, *s, *d));
    text
}

fn error_line(history: u128, seqno: i64, ballot: Ballot) -> String {
    let word = if matches!(ballot, Ballot::Dissent(_)) { "dissent" } else { "error" };
    format!("{history:032x} {word} {seqno} {:016x}\n", ballot.digest().unwrap_or_default())
}

/// A torn last line is none; `None` without a base for `history`.
pub(crate) fn parse(text: &str, history: u128) -> Option<Inner> {
    let whole = &text[..text.rfind('\n')?];
    let mut base = None;
    let mut errors = BTreeMap::new();
    for line in whole.lines() {
        let words: Vec<_> = line.split(' ').collect();
        if u128::from_str_radix(words.first()?, 16).ok()? != history {
            return None;
        }
        match words[1..] {
            ["base", seqno] => base = Some(seqno.parse().ok()?),
            [word @ ("error" | "dissent"), seqno, digest] => {
                let digest = u64::from_str_radix(digest, 16).ok()?;
                let ballot = if word == "error" { Ballot::Error } else { Ballot::Dissent };
                errors.insert(seqno.parse().ok()?, ballot(digest));
            }
            _ => return None,
        }
    }
    Some(Inner { history, base: base?, errors })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temp(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("quorate-failed-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn opened(dir: &Path, history: u128, position: i64) -> FailedNotes {
        let notes = FailedNotes::new(dir);
        notes.open(history, position, |_| false).unwrap().unwrap();
        notes
    }

    #[test]
    fn errors_are_known_after_a_restart_and_lost_ones_are_not() {
        let dir = temp("restart");
        let notes = opened(&dir, 7, 10);
        notes.note(12, Ballot::Error(0xab)).unwrap();
        notes.note(15, Ballot::Dissent(0xcd)).unwrap();
        let again = opened(&dir, 7, 15);
        assert_eq!(again.past(10), Past::Settled);
        assert_eq!(again.past(11), Past::Success);
        assert_eq!(
            (again.past(12), again.past(15)),
            (Past::Error(Ballot::Error(0xab)), Past::Error(Ballot::Dissent(0xcd)))
        );
        assert_eq!(opened(&dir, 7, i64::MAX).past(15), Past::Error(Ballot::Dissent(0xcd)));
        let passed_over = FailedNotes::new(&dir);
        passed_over.open(7, 14, |seqno| seqno == 15).unwrap().unwrap();
        assert_eq!(
            passed_over.past(15),
            Past::Error(Ballot::Dissent(0xcd)),
            "DDL that was executed"
        );
        assert_eq!(opened(&dir, 7, 14).past(15), Past::Success, "it comes again");
        assert_eq!(opened(&dir, 7, 15).past(15), Past::Success, "and has come without an error");
        assert_eq!(opened(&dir, 8, 20).past(15), Past::Settled, "another history");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_is_noted_after_a_torn_line_is_known_too() {
        let dir = temp("torn");
        opened(&dir, 7, 10).note(12, Ballot::Error(0xab)).unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(dir.join(NAME)).unwrap();
        file.write_all(b"00000000000000000000000000000007 err").unwrap();
        let again = opened(&dir, 7, 14);
        again.note(15, Ballot::Error(0xcd)).unwrap();
        let after = opened(&dir, 7, 20);
        assert_eq!(after.past(12), Past::Error(Ballot::Error(0xab)));
        assert_eq!(after.past(15), Past::Error(Ballot::Error(0xcd)));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_read_is_neither_taken_for_empty_nor_replaced() {
        let dir = temp("unreadable");
        fs::write(dir.join(NAME), [0xff, b'\n']).unwrap();
        let error = FailedNotes::new(&dir).open(7, 10, |_| false).unwrap_err().to_string();
        assert!(error.contains(NAME), "{error}");
        assert_eq!(fs::read(dir.join(NAME)).unwrap(), [0xff, b'\n']);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_state_transfer_and_a_position_below_the_base_begin_anew() {
        let dir = temp("transfer");
        let notes = opened(&dir, 7, 10);
        notes.note(12, Ballot::Error(1)).unwrap();
        notes.replaced(7, 40).unwrap();
        assert_eq!(opened(&dir, 7, 41).past(12), Past::Settled);
        assert_eq!(opened(&dir, 7, 30).past(30), Past::Settled);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_file_is_bounded() {
        let dir = temp("bounded");
        let notes = opened(&dir, 7, 0);
        (1..=ERRORS_MAX as i64 + 1).for_each(|s| notes.note(s, Ballot::Error(1)).unwrap());
        assert_eq!(notes.past(1), Past::Settled);
        assert_eq!(notes.past(ERRORS_MAX as i64), Past::Error(Ballot::Error(1)));
        let again = opened(&dir, 7, 1 << 20);
        assert_eq!(again.past(ERRORS_MAX as i64 + 1), Past::Error(Ballot::Error(1)));
        fs::remove_dir_all(&dir).unwrap();
    }
}
