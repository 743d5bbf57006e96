//! The slots of a hash table with open addressing and linear probing, whatever they hold.
//!
//! Keys come from others: whoever may insert a row chooses its primary key, and can compute its hash. So the home of
//! a key depends on a number that each process draws for itself ([`Scatter`]). Only where something is kept depends on
//! it: verdicts, digests and snapshots do not.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Spreads hashes that somebody may have chosen.
#[derive(Clone, Copy)]
pub struct Scatter {
    add: u64,
    factor: u64,
}

impl Scatter {
    /// Leaves all as it is, for tests that need long runs.
    #[cfg(test)]
    pub const NONE: Scatter = Scatter { add: 0, factor: 1 };
    #[cfg(test)]
    pub const FIXED: Scatter = Scatter { add: 0x5555, factor: 0xd6e8_feb8_6659_fd93 };

    /// This process's.
    pub fn own() -> Scatter {
        static OWN: OnceLock<Scatter> = OnceLock::new();
        *OWN.get_or_init(|| {
            let random = RandomState::new();
            Scatter { add: random.hash_one(0), factor: random.hash_one(1) | 1 }
        })
    }

    /// The high bits of this are what counts, see [`Ring::home`]: two hashes have them alike by chance only.
    pub fn of(self, hash: u64) -> u64 {
        (hash ^ self.add).wrapping_mul(self.factor)
    }
}

/// So many slots; after the last one comes the first.
#[derive(Clone, Copy)]
pub struct Ring(pub usize);

impl Ring {
    /// Where to look first for what has this hash: its high bits count.
    pub fn home(self, hash: u64) -> usize {
        ((u128::from(hash) * self.0 as u128) >> u64::BITS) as usize
    }

    pub fn next(self, at: usize) -> usize {
        match at + 1 {
            end if end == self.0 => 0,
            next => next,
        }
    }

    /// Whether what is at `at`, with this home, may move back into the hole before it: unless its home lies after
    /// the hole.
    pub fn may_fill(self, hole: usize, home: usize, at: usize) -> bool {
        self.distance(home, at) >= self.distance(hole, at)
    }

    /// Slots from one to the other, forwards.
    pub fn distance(self, from: usize, to: usize) -> usize {
        match to.checked_sub(from) {
            Some(ahead) => ahead,
            None => to + self.0 - from,
        }
    }
}
