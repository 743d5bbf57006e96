//! What this member has seen happen to the group, until it is a note.
//!
//! Invariant: what stands on an entry of the log becomes a note only once that entry is committed, and never
//! if another one took its place.

use crate::note::EventKind;
use quorate_consensus::LogPosition;
use std::collections::VecDeque;

/// More wait in no honest member: an entry is committed, or its leader is none any more, long before.
const WAITING_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Happened {
    waiting: VecDeque<Event>,
}

pub(crate) struct Event {
    pub kind: EventKind,
    pub what: String,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The entry that has to be committed first.
    pub stands_on: Option<LogPosition>,
}

impl Happened {
    pub fn push(&mut self, event: Event) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(event);
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Those that happened, in order; `fate` says of an entry whether it is committed, replaced by another
    /// one (`Some(false)`), or neither yet.
    pub fn take(&mut self, fate: impl Fn(LogPosition) -> Option<bool>) -> Vec<Event> {
        let mut done = Vec::new();
        while let Some(first) = self.waiting.front() {
            let happened = first.stands_on.map_or(Some(true), &fate);
            let Some(happened) = happened else { break };
            done.extend(self.waiting.pop_front().filter(|_| happened));
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: &str, index: Option<u64>) -> Event {
        let stands_on = index.map(|index| LogPosition { term: 1, index });
        Event { kind: EventKind::View, what: what.into(), at_ms: 1, stands_on }
    }

    #[test]
    fn what_stands_on_an_entry_waits_for_it_and_is_dropped_with_it() {
        let mut happened = Happened::default();
        for (what, index) in [("a", None), ("b", Some(5)), ("c", Some(6)), ("d", None)] {
            happened.push(event(what, index));
        }
        let mut taken = |commit: u64, replaced: u64| -> Vec<String> {
            let fate = |on: LogPosition| match on.index {
                index if index == replaced => Some(false),
                index => (index <= commit).then_some(true),
            };
            happened.take(fate).into_iter().map(|event| event.what).collect()
        };
        assert_eq!(taken(4, 0), ["a"]);
        assert_eq!(taken(4, 0), [""; 0]);
        assert_eq!(taken(4, 5), [""; 0], "c is not committed yet");
        assert_eq!(taken(6, 0), ["c", "d"]);
        assert!(happened.is_empty());
    }

    #[test]
    fn no_more_wait_than_the_limit() {
        let mut happened = Happened::default();
        (0..WAITING_MAX as u64 + 9).for_each(|index| happened.push(event("a", Some(index))));
        assert_eq!(happened.waiting.len(), WAITING_MAX);
    }
}
