//! Whether those who append come in crowds.
//!
//! A thread that is about to take what waits may first let those run that are ready to add to it. Where the
//! processors are busy, that makes fewer batches, and larger ones; where one is idle, it costs nothing. It pays only
//! if there is somebody to wait for: a single client would only be kept waiting by what else the machine does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Written by the log's writer alone.
#[derive(Default)]
pub(crate) struct Crowd {
    /// How much a batch has had lately, on average, in 256ths.
    average: AtomicU32,
}

/// In one batch of four there is a second entry.
const CROWDED: u32 = 256 + 64;
/// A batch weighs one in this many.
const MEMORY: u32 = 16;
/// More says no more.
const COUNT_MAX: usize = 1024;

impl Crowd {
    /// A batch had so much.
    pub fn note(&self, count: usize) {
        let average = self.average.load(Ordering::Relaxed);
        let count = count.min(COUNT_MAX) as u32 * 256;
        // Rounded away from the old one, or it would never get to the new one.
        let next = match count > average {
            true => average + (count - average).div_ceil(MEMORY),
            false => average - (average - count).div_ceil(MEMORY),
        };
        self.average.store(next, Ordering::Relaxed);
    }

    fn is_there(&self) -> bool {
        self.average.load(Ordering::Relaxed) >= CROWDED
    }

    /// Lets others run first, if they come in crowds.
    pub fn give_way(&self) {
        if self.is_there() {
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_some_batches_to_notice_a_crowd_and_that_it_has_gone() {
        let crowd = Crowd::default();
        (0..100).for_each(|_| crowd.note(1));
        assert!(!crowd.is_there(), "one client");
        (0..3).for_each(|_| crowd.note(2));
        assert!(!crowd.is_there(), "a chance");
        (0..10).for_each(|_| crowd.note(2));
        assert!(crowd.is_there());
        (0..100).for_each(|_| crowd.note(1));
        assert!(!crowd.is_there());
        (0..1000).for_each(|_| crowd.note(usize::MAX));
        assert!(crowd.is_there());
    }
}
