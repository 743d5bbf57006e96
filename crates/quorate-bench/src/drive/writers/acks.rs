//! What writers were told, and when.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// An acknowledged row.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub id: u64,
    pub sent: Instant,
    pub at: Instant,
}

/// What a run of writers was told by the servers.
pub struct Acks {
    begin: Instant,
    end: Instant,
    /// In the order of their acknowledgement.
    acks: Vec<Ack>,
    /// What statements ended with that were not acknowledged.
    pub failed: Vec<String>,
}

impl Acks {
    pub(super) fn new(
        begin: Instant,
        end: Instant,
        mut acks: Vec<Ack>,
        failed: Vec<String>,
    ) -> Acks {
        acks.sort_by_key(|ack| ack.at);
        Acks { begin, end, acks, failed }
    }

    pub fn len(&self) -> usize {
        self.acks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.acks.is_empty()
    }

    pub fn ids(&self) -> HashSet<u64> {
        self.acks.iter().map(|ack| ack.id).collect()
    }

    /// Acknowledged rows of each whole second.
    pub fn per_second(&self) -> Vec<usize> {
        let seconds = (self.end - self.begin).as_secs() as usize;
        let mut counts = vec![0; seconds];
        for ack in &self.acks {
            if let Some(count) = counts.get_mut((ack.at - self.begin).as_secs() as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// Acknowledged rows a second between two times, counted from the begin.
    pub fn rate(&self, from: Duration, to: Duration) -> f64 {
        let count = self.count_in(self.begin + from, self.begin + to);
        count as f64 / (to - from).as_secs_f64()
    }

    /// The longest time without an acknowledgement.
    pub fn longest_gap(&self) -> Duration {
        self.longest_gap_in(self.begin, self.end)
    }

    /// The same between two times.
    pub fn longest_gap_in(&self, from: Instant, to: Instant) -> Duration {
        let times = || self.acks_in(from, to).map(|ack| ack.at);
        let begins = std::iter::once(from).chain(times());
        let ends = times().chain(std::iter::once(to));
        begins
            .zip(ends)
            .map(|(from, to)| to.saturating_duration_since(from))
            .max()
            .unwrap_or_default()
    }

    /// When the first of the rows was acknowledged that were sent after this time.
    pub fn first_sent_after(&self, time: Instant) -> Option<Instant> {
        self.acks.iter().find(|ack| ack.sent >= time).map(|ack| ack.at)
    }

    /// Rows acknowledged between two times.
    pub fn count_in(&self, from: Instant, to: Instant) -> usize {
        self.acks_in(from, to).count()
    }

    /// Those acknowledged between two times.
    pub fn acks_in(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Ack> + '_ {
        let range = from..to;
        self.acks.iter().filter(move |ack| range.contains(&ack.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_counted_where_they_came() {
        let begin = Instant::now();
        let after = |milliseconds| begin + Duration::from_millis(milliseconds);
        let times = [2900, 100, 900, 1100];
        let ack = |id, at| Ack { id, sent: begin, at: after(at) };
        let acks = times.into_iter().zip(0..).map(|(at, id)| ack(id, at)).collect();
        let acks = Acks::new(begin, after(3500), acks, Vec::new());

        assert_eq!(acks.per_second(), [2, 1, 1]);
        assert_eq!(acks.rate(Duration::from_secs(1), Duration::from_secs(3)), 1.0);
        assert_eq!(acks.longest_gap(), Duration::from_millis(1800));
        assert_eq!(acks.longest_gap_in(after(3000), after(3400)), Duration::from_millis(400));
        let order: Vec<u64> = acks.acks_in(after(0), after(1000)).map(|ack| ack.id).collect();
        assert_eq!(order, [1, 2]);
        assert_eq!(acks.ids().len(), acks.len());
    }

    #[test]
    fn a_row_that_was_on_its_way_does_not_count_as_sent_later() {
        let begin = Instant::now();
        let after = |milliseconds| begin + Duration::from_millis(milliseconds);
        let ack = |sent, at| Ack { id: at, sent: after(sent), at: after(at) };
        let acks = vec![ack(90, 110), ack(95, 900), ack(300, 850)];
        let acks = Acks::new(begin, after(1000), acks, Vec::new());
        assert_eq!(acks.first_sent_after(after(100)), Some(after(850)));
        assert_eq!(acks.first_sent_after(after(400)), None);
    }
}
