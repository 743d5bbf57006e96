//! The simulator's own randomness: xoshiro256++ seeded by SplitMix64.
//!
//! Written out here so that a seed means the same history whatever crate versions are in use.

/// A small, fast, splittable generator. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Rng([
            split_mix(&mut state),
            split_mix(&mut state),
            split_mix(&mut state),
            split_mix(&mut state),
        ])
    }

    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `low..=high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < u64::from(per_mille)
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() {
            return None;
        }
        let at = self.index(items.len());
        Some(&items[at])
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

/// [`mix`] over a byte string.
pub fn mix_bytes(mut state: u64, bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        state = mix(state, u64::from_le_bytes(word));
    }
    let mut word = [0; 8];
    let rest = chunks.remainder();
    word[..rest.len()].copy_from_slice(rest);
    mix(mix(state, u64::from_le_bytes(word)), bytes.len() as u64)
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference outputs of xoshiro256++ for the state {1, 2, 3, 4}.
    #[test]
    fn matches_the_reference_generator() {
        let mut rng = Rng([1, 2, 3, 4]);
        assert_eq!(rng.next_u64(), 41943041);
        assert_eq!(rng.next_u64(), 58720359);
        assert_eq!(rng.next_u64(), 3588806011781223);
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
