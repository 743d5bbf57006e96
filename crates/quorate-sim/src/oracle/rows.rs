//! Rows, held against what each write had seen of them.
//!
//! Goes by who changed a row last, not by keys, seqnos or epochs: a write that passes has seen what
//! it overwrites, whoever wrote that. A client's *task* is a row of its own, which only the attempt
//! that does the task creates: so a task is done once, however often and wherever it is tried.

use super::{Oracle, Rule};
use crate::database::{changed_rows, is_fragment};
use quorate_certify::WriteSet;
use quorate_consensus::Index;
use std::collections::{BTreeMap, BTreeSet};

/// The path of a row's key.
pub type Row = u64;

/// The writes of a run in which clients try again.
#[derive(Default)]
pub struct Rows {
    /// Where each row was changed, and by which operation; in the order of the log.
    changed: BTreeMap<Row, Vec<(Index, u32)>>,
    pub attempts: BTreeMap<u32, Attempt>,
    /// Tasks of which a client was told that they are done.
    done: BTreeSet<Row>,
}

/// An operation that changes rows.
pub struct Attempt {
    /// Who had changed each of them last, as its session saw it.
    pub seen: Vec<(Row, Option<u32>)>,
    pub task: Option<Row>,
}

impl Rows {
    /// What was committed after `upto` is lost, by an operator's decision.
    pub fn forget_after(&mut self, upto: Index) {
        for changes in self.changed.values_mut() {
            changes.retain(|(index, _)| *index <= upto);
        }
        let changed = &self.changed;
        self.done.retain(|task| changed.get(task).is_some_and(|changes| !changes.is_empty()));
    }

    fn last(&self, row: Row) -> Option<(Index, u32)> {
        self.changed.get(&row)?.last().copied()
    }
}

impl Oracle {
    /// Operation `op` takes effect at `index`; a fragment alone does not.
    pub(super) fn rows_changed(&mut self, op: u32, index: Index, write_set: &WriteSet) {
        let Some(attempt) = self.rows.attempts.get(&op) else { return };
        let header = write_set.header();
        if is_fragment(header) {
            return;
        }
        let before = attempt.task.and_then(|task| self.rows.last(task));
        let mut seen = attempt.seen.iter().map(|(row, seen)| (*seen, self.rows.last(*row)));
        let missed = seen.find(|(seen, last)| last.map(|(_, op)| op) != *seen);
        let missed = missed.filter(|_| !header.is_toi());
        self.fail_for(before, Rule::ExactlyOnce, |before| {
            format!("operation {op} at {index} does what was done by {before:?}")
        });
        self.fail_for(missed, Rule::NoLostUpdate, |(seen, now)| {
            format!("operation {op} at {index} saw a row by {seen:?}, and overwrites {now:?}")
        });
        for row in changed_rows(write_set) {
            self.rows.changed.entry(row).or_default().push((index, op));
        }
    }

    /// A client looked whether its task is done, where everything up to `applied` is.
    pub fn looked(&mut self, task: Row, applied: Index, found: bool) {
        let done = self.rows.last(task).filter(|(index, _)| *index <= applied);
        self.fail_if(done.is_some() != found, Rule::ExactlyOnce, || {
            format!("at {applied} a client finds its task done: {found}; it was by {done:?}")
        });
    }

    /// A client was told that its task is done.
    pub fn told_done(&mut self, task: Row) {
        self.rows.done.insert(task);
    }

    /// At the end: what clients were told is so.
    pub fn check_tasks(&mut self) {
        let undone = self.rows.done.iter().copied().find(|task| self.rows.last(*task).is_none());
        self.fail_for(undone, Rule::AcknowledgedSurvives, |task| {
            format!("task {task:x} is not done any more")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_certify::{Header, KeyType, WriteSetBuilder};

    fn write(rows: &[&[u8]]) -> WriteSet {
        let mut builder = WriteSetBuilder::new();
        rows.iter().for_each(|row| builder.append_key(&[row], KeyType::Update));
        WriteSet::parse(builder.finish(&Header::transaction(1, 1, 0))).expect("just built")
    }

    fn path(row: &[u8]) -> Row {
        changed_rows(&write(&[row])).next().expect("of the row")
    }

    fn attempt(oracle: &mut Oracle, op: u32, seen: &[(Row, Option<u32>)], task: Option<Row>) {
        oracle.rows.attempts.insert(op, Attempt { seen: seen.to_vec(), task });
    }

    fn broken(oracle: &mut Oracle) -> Option<Rule> {
        oracle.take_violation().map(|violation| violation.rule)
    }

    #[test]
    fn who_overwrites_must_have_seen_it() {
        let (mut oracle, row) = (Oracle::default(), path(b"a"));
        attempt(&mut oracle, 1, &[(row, None)], None);
        attempt(&mut oracle, 2, &[(row, Some(1))], None);
        attempt(&mut oracle, 3, &[(row, Some(1))], None);
        oracle.rows_changed(1, 5, &write(&[b"a"]));
        oracle.rows_changed(2, 6, &write(&[b"a"]));
        assert_eq!(broken(&mut oracle), None);
        oracle.rows_changed(3, 7, &write(&[b"a"]));
        assert_eq!(broken(&mut oracle), Some(Rule::NoLostUpdate));
    }

    #[test]
    fn a_task_is_done_once_and_found_where_it_is_applied() {
        let (mut oracle, task) = (Oracle::default(), path(b"t"));
        attempt(&mut oracle, 1, &[(task, None)], Some(task));
        attempt(&mut oracle, 2, &[(task, Some(1))], Some(task));
        oracle.rows_changed(1, 5, &write(&[b"t"]));
        oracle.looked(task, 4, false);
        oracle.looked(task, 5, true);
        oracle.told_done(task);
        oracle.check_tasks();
        assert_eq!(broken(&mut oracle), None);
        oracle.looked(task, 6, false);
        assert_eq!(broken(&mut oracle), Some(Rule::ExactlyOnce), "it was done before that");
        oracle.rows_changed(2, 7, &write(&[b"t"]));
        assert_eq!(broken(&mut oracle), Some(Rule::ExactlyOnce), "again");
        oracle.told_done(path(b"u"));
        oracle.check_tasks();
        assert_eq!(broken(&mut oracle), Some(Rule::AcknowledgedSurvives), "told, and not done");
    }
}
