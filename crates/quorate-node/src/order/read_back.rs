//! Log entries that were read back for the appliers, ahead of them.
//!
//! Invariants:
//! - one thread reads at a time, and reads what follows what is there;
//! - nothing is taken that was not known to be committed when the reading began: what the log has
//!   behind that may still be replaced.

use bytes::Bytes;
use std::collections::VecDeque;

/// What one reading asks for; less where all that may wait in memory is less.
const READ_BYTES: usize = 1 << 20;

/// Which entries an applier thread is to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The first.
    pub from: u64,
    /// After as many bytes as this: that is enough.
    pub bytes: usize,
    upto: u64,
    connection: u64,
}

pub(super) struct ReadBack {
    /// Ascending, by index.
    entries: VecDeque<(u64, Bytes)>,
    bytes: usize,
    bytes_wanted: usize,
    /// After the last that was read.
    next: u64,
    reading: Option<Reading>,
    /// Counts connections: what was read for one is nothing to the next.
    connection: u64,
}

impl ReadBack {
    pub fn new(bytes_max: usize) -> ReadBack {
        ReadBack {
            entries: VecDeque::new(),
            bytes: 0,
            bytes_wanted: READ_BYTES.min(bytes_max / 4).max(1),
            next: 0,
            reading: None,
            connection: 0,
        }
    }

    /// Forgets all, and what is being read.
    pub fn clear(&mut self) {
        *self = ReadBack {
            bytes_wanted: self.bytes_wanted,
            connection: self.connection + 1,
            ..ReadBack::new(0)
        };
    }

    /// If it is time to read: the first write set that waits in the log is at `first`, the last at `last`.
    pub fn due(&mut self, first: u64, last: u64) -> Option<Reading> {
        self.pass(first);
        let from = self.next.max(first);
        if self.reading.is_some() || self.bytes >= self.bytes_wanted || from > last {
            return None;
        }
        let (bytes, connection) = (self.bytes_wanted, self.connection);
        self.reading = Some(Reading { from, bytes, upto: last, connection });
        self.reading
    }

    /// What was read, from the first on.
    pub fn fill(&mut self, reading: Reading, read: Vec<Bytes>) {
        if self.reading != Some(reading) {
            return;
        }
        self.reading = None;
        for (index, entry) in (reading.from..=reading.upto).zip(read) {
            self.bytes += entry.len();
            self.entries.push_back((index, entry));
            self.next = index + 1;
        }
    }

    /// Whether this reading is still the one under way, which it then is no more.
    pub fn gave_up(&mut self, reading: Reading) -> bool {
        self.reading.take_if(|now| *now == reading).is_some()
    }

    pub fn has(&mut self, index: u64) -> bool {
        self.pass(index);
        self.entries.front().is_some_and(|(first, _)| *first == index)
    }

    pub fn take(&mut self, index: u64) -> Option<Bytes> {
        self.has(index).then(|| self.entries.pop_front()).flatten().map(|(_, entry)| {
            self.bytes -= entry.len();
            entry
        })
    }

    /// What is before `index` is not needed: nobody applies it here, or it came by a state transfer.
    fn pass(&mut self, index: u64) {
        while self.entries.front().is_some_and(|(first, _)| *first < index) {
            self.bytes -= self.entries.pop_front().map_or(0, |(_, entry)| entry.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(lengths: &[usize]) -> Vec<Bytes> {
        lengths.iter().map(|bytes| Bytes::from(vec![0; *bytes])).collect()
    }

    #[test]
    fn one_reads_at_a_time_ahead_of_those_who_apply_and_nothing_that_may_be_replaced() {
        let mut read_back = ReadBack::new(400);
        let reading = read_back.due(5, 8).unwrap();
        assert_eq!((reading.from, reading.bytes), (5, 100));
        assert_eq!(read_back.due(5, 9), None);
        read_back.fill(reading, entries(&[60, 60, 60, 60, 60]));
        assert!(read_back.due(5, 9).is_none(), "enough is there");
        assert_eq!(read_back.take(6).map(|entry| entry.len()), Some(60));
        assert!(read_back.take(9).is_none(), "9 was not known to be committed");
        assert_eq!(read_back.due(9, 9).unwrap().from, 9);
    }

    #[test]
    fn what_was_read_for_a_connection_is_nothing_to_the_next() {
        let mut read_back = ReadBack::new(400);
        let reading = read_back.due(1, 2).unwrap();
        read_back.clear();
        assert!(!read_back.gave_up(reading));
        read_back.fill(reading, entries(&[1, 1]));
        assert!(!read_back.has(1));
        let again = read_back.due(1, 2).unwrap();
        assert_ne!(again, reading);
        assert!(read_back.gave_up(again) && !read_back.gave_up(again));
    }
}
