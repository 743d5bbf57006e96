//! Those who wait until others have applied something.

use crate::driver::Driver;
use crate::error::OrderError;
use crate::order::Done;
use crate::output::Output;
use quorate_consensus::MemberId;
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
    pub member: MemberId,
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
    pub fn look(&mut self, able: bool, driver: &Driver, present: &[Present], out: &mut Output) {
        self.changed = false;
        let (node, now_ms) = (&driver.options.name, driver.now_ms);
        self.waiting.retain(|waiting| {
            let missing = waiting.missing(present);
            let answer = match missing {
                _ if driver.closed => Err(OrderError::Closed),
                None if able => Ok(Done::Nothing),
                Some(_) if able && now_ms < waiting.deadline_ms => return true,
                missing => {
                    let reason = match missing.filter(|_| able) {
                        Some(missing) => {
                            let names: Vec<String> = missing.map(|id| driver.name_of(id)).collect();
                            format!("not on {}", names.join(", "))
                        }
                        None => {
                            "the members do not say how they stand: some run an older release, \
                                 or this one is out of service"
                                .to_owned()
                        }
                    };
                    let waited = Duration::from_millis(now_ms.saturating_sub(waiting.began_ms));
                    Err(OrderError::NotApplied { node: node.clone(), waited, reason })
                }
            };
            out.answers.push((waiting.order, answer));
            false
        });
    }
}

impl Waiting {
    /// Those that it waits for; `None`: nobody.
    fn missing<'a>(
        &self,
        present: &'a [Present],
    ) -> Option<impl Iterator<Item = MemberId> + use<'a>> {
        let seqno = self.seqno;
        let late = move |other: &&Present| other.applied.is_none_or(|applied| applied < seqno);
        // With the one that waits.
        let (all, late_count) = (present.len() + 1, present.iter().filter(late).count());
        let enough = self.at_least.map_or(all, |count| all.min(count.into()));
        let late = present.iter().filter(late).map(|other| other.member);
        (all - late_count < enough).then_some(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For whom one waits that waits for seqno 5, where others have applied these; none: for nobody.
    fn missing(at_least: Option<u8>, applied: &[Option<i64>]) -> Vec<u128> {
        let present: Vec<Present> = (0..)
            .zip(applied)
            .map(|(id, applied)| Present { member: MemberId(id), applied: *applied })
            .collect();
        let waiting = Waiting { order: 1, seqno: 5, at_least, began_ms: 0, deadline_ms: 100 };
        waiting.missing(&present).into_iter().flatten().map(|id| id.0).collect()
    }

    #[test]
    fn all_that_are_there_have_applied_it_or_as_many_as_are_asked_for() {
        assert!(missing(None, &[Some(5), Some(9)]).is_empty() && missing(None, &[]).is_empty());
        assert_eq!(missing(None, &[Some(5), Some(4), None]), [1, 2]);
        assert!(missing(Some(2), &[Some(4), Some(5)]).is_empty());
        assert_eq!(missing(Some(3), &[Some(4), Some(5)]), [0]);
        assert!(missing(Some(9), &[Some(5)]).is_empty(), "there are no more than two");
    }
}
