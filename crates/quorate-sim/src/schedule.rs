//! Virtual time: what happens next, and when.
//!
//! Invariant: events come out in order of their time, and those of one instant in the order in
//! which they were put in, so a seed fixes the whole order.

use std::collections::BTreeMap;

/// Virtual time in microseconds since the run began.
pub type Micros = u64;

pub struct Schedule<E> {
    /// By time, and in the order in which they were put in.
    events: BTreeMap<(Micros, u64), E>,
    sequence: u64,
    now: Micros,
}

impl<E> Schedule<E> {
    pub fn new() -> Self {
        Schedule { events: BTreeMap::new(), sequence: 0, now: 0 }
    }

    pub fn now(&self) -> Micros {
        self.now
    }

    pub fn after(&mut self, delay: Micros, event: E) {
        self.sequence += 1;
        self.events.insert((self.now + delay, self.sequence), event);
    }

    /// The next event; time moves on to it.
    pub fn pop(&mut self) -> Option<E> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_time_then_by_insertion() {
        let mut schedule = Schedule::new();
        for (at, event) in [(20, 'c'), (10, 'a'), (20, 'd'), (10, 'b')] {
            schedule.after(at, event);
        }
        let order: String = std::iter::from_fn(|| schedule.pop()).collect();
        assert_eq!(order, "abcd");
        assert_eq!(schedule.now(), 20);
        schedule.after(5, 'x');
        assert_eq!((schedule.pop(), schedule.now()), (Some('x'), 25));
    }
}
