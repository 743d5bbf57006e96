//! How a run goes while it goes: counts of operations over time.

use crate::history::{Outcome, Recorder};
use crate::schedule::Nemesis;
use std::thread;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(100);
const LIVE_EVERY: usize = 10;

/// Counts since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub at: Duration,
    pub ok: u64,
    pub failed: u64,
    pub unknown: u64,
}

/// What the live line shows.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The stage of the run, once its clients have stopped.
    pub doing: &'static str,
    pub left: Duration,
    /// Acknowledged in the last second, and in all.
    pub rate: u64,
    pub total: Moment,
    /// What is broken at the moment.
    pub faults: String,
}

pub(super) fn until(
    end: Instant,
    recorders: &[&Recorder],
    nemesis: &Nemesis,
    live: &(dyn Fn(&Live) + Sync),
) -> Vec<Moment> {
    let mut moments: Vec<Moment> = Vec::new();
    while Instant::now() < end {
        thread::sleep(EVERY);
        let count = |outcome| recorders.iter().map(|recorder| recorder.count(outcome)).sum();
        let now = Moment {
            at: Duration::from_micros(recorders.first().map_or(0, |recorder| recorder.now_us())),
            ok: count(Outcome::Ok),
            failed: count(Outcome::Fail),
            unknown: count(Outcome::Unknown),
        };
        moments.push(now);
        if moments.len() % LIVE_EVERY == 0 {
            let before = moments.len().checked_sub(LIVE_EVERY + 1).map_or(0, |at| moments[at].ok);
            live(&Live {
                doing: "",
                left: end.saturating_duration_since(Instant::now()),
                rate: now.ok - before,
                total: now,
                faults: nemesis.now(),
            });
        }
    }
    moments
}

/// The longest time in which nothing was acknowledged: its beginning and length.
pub(super) fn longest_gap(moments: &[Moment]) -> (Duration, Duration) {
    let Some(first) = moments.first() else { return Default::default() };
    let (mut last, mut longest) = (*first, (first.at, Duration::ZERO));
    for moment in moments {
        if moment.ok > last.ok {
            last = *moment;
        }
        let gap = moment.at - last.at;
        if gap > longest.1 {
            longest = (last.at, gap);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_is_found() {
        let moment = |ms, ok| Moment { at: Duration::from_millis(ms), ok, ..Moment::default() };
        assert_eq!(longest_gap(&[]), Default::default());
        let moments =
            [moment(0, 1), moment(100, 2), moment(200, 2), moment(300, 2), moment(400, 3)];
        assert_eq!(longest_gap(&moments), (Duration::from_millis(100), Duration::from_millis(200)));
    }
}
