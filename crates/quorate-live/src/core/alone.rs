//! A place for one connection at a time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Connections have numbers from 1 on.
const NOBODY: u64 = 0;

#[derive(Default)]
pub(crate) struct Alone(AtomicU64);

impl Alone {
    /// Whether `connection` has the place now.
    pub fn claim(&self, connection: u64) -> bool {
        let claimed =
            self.0.compare_exchange(NOBODY, connection, Ordering::Relaxed, Ordering::Relaxed);
        claimed.map_or_else(|owner| owner == connection, |_| true)
    }

    /// Gives the place up, if `connection` has it.
    pub fn release(&self, connection: u64) {
        // Somebody else's stays.
        let _ours =
            self.0.compare_exchange(connection, NOBODY, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_place_until_it_gives_it_up() {
        let alone = Alone::default();
        assert!(alone.claim(1) && alone.claim(1) && !alone.claim(2));
        alone.release(2);
        assert!(!alone.claim(2));
        alone.release(1);
        assert!(alone.claim(2) && !alone.claim(1));
    }
}
