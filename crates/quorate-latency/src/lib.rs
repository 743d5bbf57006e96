//! How long things take, counted in buckets: cheap enough for the commit path, and good for quantiles over any
//! time and any number of nodes, which a mean is not.
//!
//! To count takes two atomic additions, no lock, and no memory.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper ends of the buckets, in microseconds; what takes longer than the last one is counted beyond them.
const ENDS_US: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000,
];

/// Counts from the start of the process on.
#[derive(Debug, Default)]
pub struct Latency {
    counts: [AtomicU64; ENDS_US.len() + 1],
    sum_us: AtomicU64,
}

/// What was counted. The names of the fields are those of the JSON document, and stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyReport {
    /// Microseconds in all.
    pub sum_us: u64,
    /// Upper end of each bucket in microseconds, shortest first, and how many took so long at most, but longer
    /// than the end of the bucket before.
    pub buckets: Vec<(u64, u64)>,
    /// How many took longer than that.
    pub beyond: u64,
}

impl Latency {
    pub fn took(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = ENDS_US.partition_point(|end| *end < us);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }

    pub fn report(&self) -> LatencyReport {
        let mut counts = self.counts.iter().map(|count| count.load(Relaxed));
        let buckets = ENDS_US.into_iter().zip(counts.by_ref()).collect();
        let beyond = counts.next().unwrap_or_default();
        LatencyReport { sum_us: self.sum_us.load(Relaxed), buckets, beyond }
    }
}

impl LatencyReport {
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum::<u64>() + self.beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_bucket_that_it_ends_in() {
        let latency = Latency::default();
        for us in [0, 50, 51, 700, 5_000_000, 5_000_001, 60_000_000] {
            latency.took(Duration::from_micros(us));
        }
        let report = latency.report();
        let found: Vec<_> = report.buckets.iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(found, [&(50, 2), &(100, 1), &(1_000, 1), &(5_000_000, 1)]);
        assert_eq!((report.beyond, report.count()), (2, 7));
        assert_eq!(report.sum_us, 70_000_802);
    }

    #[test]
    fn a_report_is_read_as_it_was_written_and_so_is_none() {
        let latency = Latency::default();
        latency.took(Duration::from_millis(3));
        let report = latency.report();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<LatencyReport>(&text).unwrap(), report);
        assert_eq!(serde_json::from_str::<LatencyReport>("{}").unwrap().count(), 0);
    }
}
