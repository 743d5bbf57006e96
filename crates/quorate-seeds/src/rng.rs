//! The simulators' own randomness: xoshiro256++ seeded by SplitMix64.
//!
//! What is drawn from it is written out here, so that a seed means the same history whatever crate
//! versions are in use.

use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `low..=high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Uniform from `low` to `high` milliseconds, in microseconds.
    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.range(low * 1000, high * 1000))
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < u64::from(per_mille)
    }

    pub fn one_of<T: Copy, const N: usize>(&mut self, items: [T; N]) -> T {
        items[self.index(N)]
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.index(items.len())].clone())
    }

    /// One of the values, chosen in proportion to the weight beside it.
    pub fn weighted<T: Copy>(&mut self, items: &[(T, u32)]) -> Option<T> {
        let total: u64 = items.iter().map(|(_, w)| u64::from(*w)).sum();
        if total == 0 {
            return None;
        }
        let mut left = self.below(total);
        for (item, weight) in items {
            let weight = u64::from(*weight);
            if left < weight {
                return Some(*item);
            }
            left -= weight;
        }
        None
    }

    pub fn u128(&mut self) -> u128 {
        (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64())
    }
}

/// Stirs `value` into `state`; used for digests of histories, not for hashing untrusted data.
pub fn mix(state: u64, value: u64) -> u64 {
    let mut z = (state ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z ^= z >> 32;
    z = z.wrapping_mul(0xd6e8_feb8_6659_fd93);
    z ^ (z >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its reference implementation's, seeded by SplitMix64 with 0.
    #[test]
    fn seeds_mean_the_same_for_ever() {
        assert_eq!(Rng::new(0).next_u64(), 0x53175d61490b23df);
    }

    #[test]
    fn ranges_are_inclusive_and_weights_respected() {
        let mut rng = Rng::new(7);
        let mut seen = [false; 3];
        for _ in 0..200 {
            seen[(rng.range(4, 6) - 4) as usize] = true;
            assert_eq!(rng.weighted(&[('a', 0), ('b', 3)]), Some('b'));
            assert_eq!(rng.below(1), 0);
        }
        assert_eq!(seen, [true; 3]);
        assert_eq!(rng.weighted::<char>(&[]), None);
    }
}
