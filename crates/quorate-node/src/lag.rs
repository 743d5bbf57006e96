//! How old what this node has not applied yet is, by the clocks of those who wrote it.
//!
//! Invariant: the age of what follows the last applied seqno is known to one [`INTERVAL`]; more coarsely if a
//! node lags for long, so that memory is bounded.

use crate::blocking::{self, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(100);
const SAMPLES_MAX: usize = 1024;

#[derive(Default)]
pub struct Lag {
    /// When which seqno was written, since 1970: ascending seqnos, about an interval apart.
    samples: Mutex<VecDeque<(i64, Duration)>>,
}

impl Lag {
    /// `seqno` was ordered, which was written at that time since 1970; everything up to `applied` is in the
    /// database.
    pub fn ordered(&self, seqno: i64, written: Duration, applied: i64) {
        let mut samples = self.samples.lock();
        if samples.back().is_some_and(|(_, last)| last.abs_diff(written) < INTERVAL) {
            return;
        }
        // The last of those applied stays: it is what is known of the next one.
        while samples.get(1).is_some_and(|(next, _)| *next <= applied) {
            samples.pop_front();
        }
        if samples.len() == SAMPLES_MAX {
            let mut odd = false;
            samples.retain(|_| {
                odd = !odd;
                odd
            });
        }
        samples.push_back((seqno, written));
    }

    /// The age of the first that is not applied, where `ordered` is the last there is.
    pub fn age(&self, ordered: i64, applied: i64) -> Duration {
        self.age_at(Duration::from_nanos(blocking::unix_nanos()), ordered, applied)
    }

    fn age_at(&self, now: Duration, ordered: i64, applied: i64) -> Duration {
        if applied >= ordered {
            return Duration::ZERO;
        }
        let samples = self.samples.lock();
        // The first that is not applied is this one, or comes between it and the next.
        let at = samples.partition_point(|(seqno, _)| *seqno <= applied + 1);
        let sample = samples.get(at.saturating_sub(1));
        sample.map_or(Duration::ZERO, |(_, written)| now.saturating_sub(*written))
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
        (1..=1000).for_each(|seqno| lag.ordered(seqno, written(seqno), 0));
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
        (1..=count).for_each(|seqno| lag.ordered(seqno.into(), INTERVAL * seqno, 0));
        assert!(lag.samples.lock().len() <= SAMPLES_MAX);
        let (now, last) = (INTERVAL * count, i64::from(count));
        assert_eq!(lag.age_at(now, last, 0), INTERVAL * (count - 1));
        let (half, exact) = (lag.age_at(now, last, last / 2), INTERVAL * (count / 2 - 1));
        assert!(half >= exact && half < exact + INTERVAL * 32, "{half:?}, {exact:?}");
    }

    #[test]
    fn what_is_applied_is_forgotten() {
        let lag = Lag::default();
        (1..=100_u32)
            .for_each(|seqno| lag.ordered(seqno.into(), INTERVAL * seqno, i64::from(seqno) - 1));
        assert_eq!(lag.samples.lock().len(), 2);
    }
}
