//! Virtual time: what happens next, and when.
//!
//! Invariant: events come out in order of their time, and those of one instant in the order in
//! which they were put in, so a seed fixes the whole order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time in microseconds since the run began.
pub type Micros = u64;

/// Bits of a key that number the events of a run; the rest is the time.
const SEQUENCE_BITS: u32 = 24;

pub struct Schedule<E> {
    /// `(time, sequence)` in one word, and the slot of the event.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
    sequence: u64,
    now: Micros,
}

impl<E> Schedule<E> {
    pub fn new() -> Self {
        Schedule {
            heap: BinaryHeap::with_capacity(256),
            slots: Vec::with_capacity(256),
            free: Vec::new(),
            sequence: 0,
            now: 0,
        }
    }

    pub fn now(&self) -> Micros {
        self.now
    }

    /// Puts an event at `at`, or at once if that is past.
    pub fn at(&mut self, at: Micros, event: E) {
        assert!(self.sequence < 1 << SEQUENCE_BITS, "a run of more events than its bound");
        let key = (at.max(self.now) << SEQUENCE_BITS) | self.sequence;
        self.sequence += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(event);
                slot
            }
            None => {
                self.slots.push(Some(event));
                (self.slots.len() - 1) as u32
            }
        };
        self.heap.push(Reverse((key, slot)));
    }

    pub fn after(&mut self, delay: Micros, event: E) {
        self.at(self.now + delay, event);
    }

    /// The next event; time moves on to it.
    pub fn pop(&mut self) -> Option<E> {
        let Reverse((key, slot)) = self.heap.pop()?;
        self.now = key >> SEQUENCE_BITS;
        self.free.push(slot);
        self.slots[slot as usize].take()
    }
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_time_then_by_insertion() {
        let mut schedule = Schedule::new();
        schedule.at(20, 'c');
        schedule.at(10, 'a');
        schedule.at(20, 'd');
        schedule.at(10, 'b');
        let order: String = std::iter::from_fn(|| schedule.pop()).collect();
        assert_eq!(order, "abcd");
        assert_eq!(schedule.now(), 20);
        schedule.at(5, 'x');
        assert_eq!(schedule.pop(), Some('x'));
        assert_eq!(schedule.now(), 20, "time never goes back");
    }
}
