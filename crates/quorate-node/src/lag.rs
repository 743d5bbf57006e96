//! How old what this node has not applied yet is, by the clocks of those who wrote it, and where in the log it begins.
//!
//! Invariants:
//! - the age of what follows the last applied seqno is known to one [`INTERVAL`]; more coarsely if a node lags for
//!   long, so that memory is bounded;
//! - the place that is told is never behind the first that is not applied: not in the queue, not with an applier, not
//!   with a session of this node.

use crate::blocking::{self, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(100);
/// Nor are places further apart than that, whatever clocks say.
const APART: i64 = 256;
const SAMPLES_MAX: usize = 1024;

#[derive(Default)]
pub struct Lag {
    /// Ascending, about an interval apart.
    samples: Mutex<VecDeque<Sample>>,
}

/// An ordered write set.
#[derive(Clone, Copy)]
struct Sample {
    seqno: i64,
    /// Of its entry.
    index: u64,
    /// Since 1970.
    written: Duration,
}

impl Lag {
    /// `seqno` was ordered by the entry at `index`, and written at that time since 1970; everything up to `applied` is
    /// in the database.
    pub fn ordered(&self, (seqno, index): (i64, u64), written: Duration, applied: i64) {
        let mut samples = self.samples.lock();
        let is_near = |last: &Sample| {
            last.written.abs_diff(written) < INTERVAL && seqno < last.seqno.saturating_add(APART)
        };
        if samples.back().is_some_and(is_near) {
            return;
        }
        // The last of those applied stays: it is what is known of the next one.
        while samples.get(1).is_some_and(|next| next.seqno <= applied) {
            samples.pop_front();
        }
        if samples.len() == SAMPLES_MAX {
            let mut odd = false;
            samples.retain(|_| {
                odd = !odd;
                odd
            });
        }
        samples.push_back(Sample { seqno, index, written });
    }

    /// The age of the first that is not applied, where `ordered` is the last there is.
    pub fn age(&self, ordered: i64, applied: i64) -> Duration {
        self.age_at(Duration::from_nanos(blocking::unix_nanos()), ordered, applied)
    }

    fn age_at(&self, now: Duration, ordered: i64, applied: i64) -> Duration {
        if applied >= ordered {
            return Duration::ZERO;
        }
        self.at(applied).map_or(Duration::ZERO, |sample| now.saturating_sub(sample.written))
    }

    /// Where the log has the first that is not applied, or an entry before it. `None`: all is applied.
    pub fn first_index(&self, ordered: i64, applied: i64) -> Option<u64> {
        (applied < ordered).then(|| self.at(applied))?.map(|sample| sample.index)
    }

    /// The first that is not applied is this one, or comes between it and the next.
    fn at(&self, applied: i64) -> Option<Sample> {
        let samples = self.samples.lock();
        let at = samples.partition_point(|sample| sample.seqno <= applied + 1);
        samples.get(at.saturating_sub(1)).copied()
    }

    /// A new connection to the group: seqnos may be others.
    pub fn clear(&self) {
        self.samples.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_the_next_to_apply_is_known_to_a_tenth_of_a_second() {
        let lag = Lag::default();
        let written = |seqno: i64| Duration::from_millis(10 * seqno as u64);
        (1..=1000).for_each(|seqno| lag.ordered((seqno, 0), written(seqno), 0));
        let now = Duration::from_secs(20);
        assert_eq!(lag.age_at(now, 1000, 1000), Duration::ZERO);
        for applied in [0, 1, 17, 500, 998, 999] {
            let (age, exact) = (lag.age_at(now, 1000, applied), now - written(applied + 1));
            assert!(age >= exact && age < exact + INTERVAL, "{applied}: {age:?}, {exact:?}");
        }
        assert_eq!(lag.age_at(written(1), 1000, 999), Duration::ZERO, "a clock that is behind");
    }

    #[test]
    fn a_long_lag_is_known_more_coarsely_in_bounded_memory() {
        let (lag, count) = (Lag::default(), 10 * SAMPLES_MAX as u32);
        (1..=count).for_each(|seqno| lag.ordered((seqno.into(), 0), INTERVAL * seqno, 0));
        assert!(lag.samples.lock().len() <= SAMPLES_MAX);
        let (now, last) = (INTERVAL * count, i64::from(count));
        assert_eq!(lag.age_at(now, last, 0), INTERVAL * (count - 1));
        let (half, exact) = (lag.age_at(now, last, last / 2), INTERVAL * (count / 2 - 1));
        assert!(half >= exact && half < exact + INTERVAL * 32, "{half:?}, {exact:?}");
    }

    #[test]
    fn what_is_applied_is_forgotten() {
        let lag = Lag::default();
        (1..=100_u32).for_each(|seqno| {
            lag.ordered((seqno.into(), 0), INTERVAL * seqno, i64::from(seqno) - 1)
        });
        assert_eq!(lag.samples.lock().len(), 2);
    }

    /// Of 20,000 of one moment, by their clocks: entry 3 * s is that of seqno s.
    #[test]
    fn the_place_of_the_first_that_is_not_applied_is_never_told_too_late() {
        let lag = Lag::default();
        (1..=20_000).for_each(|seqno| lag.ordered((seqno, 3 * seqno as u64), INTERVAL, 0));
        for applied in [0, 1, 255, 256, 257, 9_000, 19_998, 19_999] {
            let (place, exact) = (lag.first_index(20_000, applied), 3 * (applied as u64 + 1));
            let place = place.expect("some are not applied");
            assert!(place <= exact && place + 3 * APART as u64 > exact, "{applied}: {place}");
        }
        assert_eq!(lag.first_index(20_000, 20_000), None);
        lag.ordered((20_300, 60_900), INTERVAL, 20_000);
        assert!(lag.samples.lock().len() <= 3, "what is applied is forgotten");
    }
}
