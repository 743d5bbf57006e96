//! Those who wait until others have applied something.

use crate::error::OrderError;
use crate::order::Done;
use crate::output::Output;
use std::time::Duration;

#[derive(Default)]
pub(super) struct Waits {
    waiting: Vec<Waiting>,
    /// Something may be different since the last look.
    changed: bool,
}

struct Waiting {
    order: u64,
    seqno: i64,
    /// So many are enough, the waiting member included; `None`: all.
    at_least: Option<u8>,
    began_ms: u64,
    deadline_ms: u64,
}

/// Another member that counts.
pub(super) struct Present {
    pub name: String,
    /// `None`: it has not said so.
    pub applied: Option<i64>,
}

impl Waits {
    /// `times`: now, and until when.
    pub fn join(&mut self, order: u64, seqno: i64, at_least: Option<u8>, times: (u64, u64)) {
        let (began_ms, deadline_ms) = times;
        self.waiting.push(Waiting { order, seqno, at_least, began_ms, deadline_ms });
        self.changed = true;
    }

    pub fn look_again(&mut self) {
        self.changed = true;
    }

    pub fn is_due(&self) -> bool {
        self.changed && !self.waiting.is_empty()
    }

    /// Answers who need not wait any more; `able`: members say how they stand.
    pub fn look(
        &mut self,
        (now_ms, closed, able): (u64, bool, bool),
        node: &str,
        present: &[Present],
        out: &mut Output,
    ) {
        self.changed = false;
        self.waiting.retain(|waiting| {
            let reason = match waiting.missing(present) {
                _ if closed => {
                    out.answers.push((waiting.order, Err(OrderError::Closed)));
                    return false;
                }
                _ if !able => "the members do not say how they stand: some run an older release, \
                               or this one is out of service"
                    .to_owned(),
                None => {
                    out.answers.push((waiting.order, Ok(Done::Nothing)));
                    return false;
                }
                Some(_) if now_ms < waiting.deadline_ms => return true,
                Some(missing) => format!("not on {missing}"),
            };
            let waited = Duration::from_millis(now_ms.saturating_sub(waiting.began_ms));
            let error = OrderError::NotApplied { node: node.to_owned(), waited, reason };
            out.answers.push((waiting.order, Err(error)));
            false
        });
    }
}

impl Waiting {
    /// The names of those that it waits for; `None`: of nobody.
    fn missing(&self, present: &[Present]) -> Option<String> {
        let late = |other: &&Present| other.applied.is_none_or(|applied| applied < self.seqno);
        let late: Vec<&str> =
            present.iter().filter(late).map(|other| other.name.as_str()).collect();
        // With the one that waits.
        let (all, have) = (present.len() + 1, present.len() + 1 - late.len());
        let enough = self.at_least.map_or(all, |count| all.min(count.into()));
        (have < enough).then(|| late.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(applied: &[Option<i64>]) -> Vec<Present> {
        let name = |at: usize| format!("n{at}");
        applied.iter().enumerate().map(|(at, a)| Present { name: name(at), applied: *a }).collect()
    }

    /// What those who wait for seqno 5 are answered at 50 ms of 100.
    fn answered(at_least: Option<u8>, applied: &[Option<i64>]) -> bool {
        let (mut waits, mut out) = (Waits::default(), Output::default());
        waits.join(1, 5, at_least, (0, 100));
        waits.look((50, false, true), "n9", &present(applied), &mut out);
        assert!(out.answers.iter().all(|(id, answer)| *id == 1 && answer.is_ok()));
        !out.answers.is_empty()
    }

    #[test]
    fn all_that_are_there_have_applied_it_or_as_many_as_are_asked_for() {
        assert!(answered(None, &[Some(5), Some(9)]) && answered(None, &[]));
        assert!(!answered(None, &[Some(5), Some(4)]) && !answered(None, &[None]));
        assert!(answered(Some(2), &[Some(4), Some(5)]) && !answered(Some(3), &[Some(4), Some(5)]));
        assert!(answered(Some(9), &[Some(5)]), "there are no more than two");
    }

    #[test]
    fn at_the_deadline_it_is_said_where_it_is_not_applied() {
        let (mut waits, mut out) = (Waits::default(), Output::default());
        waits.join(1, 5, None, (0, 100));
        waits.look((100, false, true), "n9", &present(&[Some(4), Some(5), None]), &mut out);
        let (_, answer) = out.answers.pop().unwrap();
        let error = answer.unwrap_err().to_string();
        assert!(error.contains("n0, n2") && error.contains("n9"), "{error}");
        assert!(!waits.is_due());
    }
}
