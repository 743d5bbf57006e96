//! With what the members of a run encrypt their disks: some runs do, with another key at some starts, and now
//! and then a start with none. Every start has all keys, so whatever is on a disk can be read.

use crate::plant::Plant;
use quorate_seeds::mix;
use quorate_wal::DiskKeys;

/// In so many runs one encrypts. The salt is one with which none of the seeds of `tests/regressions.txt`
/// does: each shows what it found by what exactly lay on its disks.
const ONE_IN: u64 = 4;
const SALT: u64 = 0x456e_6372_7970_75ae;
const KEYS: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub struct Encryption {
    seed: u64,
    on: bool,
}

impl Encryption {
    /// Not drawn from the run's randomness: other seeds keep their meaning. With a planted bug there is none,
    /// so that the seeds which are known to show it still do.
    pub fn of_run(seed: u64, plant: Option<Plant>) -> Self {
        Encryption { seed, on: plant.is_none() && mix(seed, SALT) % ONE_IN == 0 }
    }

    /// Of the machine `m`, in this life of its process.
    pub fn keys(&self, m: usize, life: u32) -> DiskKeys {
        if !self.on {
            return DiskKeys::default();
        }
        let chance = mix(mix(self.seed, SALT + 1 + m as u64), u64::from(life));
        let own = chance % KEYS;
        let keys: Vec<[u8; 32]> =
            (0..KEYS).map(|at| self.key(m as u64, (own + at) % KEYS)).collect();
        DiskKeys::new(&keys, (chance >> 8) % 6 != 0)
    }

    fn key(&self, m: u64, number: u64) -> [u8; 32] {
        let mut key = [0; 32];
        let mut state = mix(self.seed, SALT ^ (m * KEYS + number + 1) << 8);
        for part in key.chunks_exact_mut(8) {
            state = mix(state, SALT);
            part.copy_from_slice(&state.to_le_bytes());
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(keys: &DiskKeys) -> String {
        keys.to_string().split(',').next().unwrap_or_default().to_owned()
    }

    #[test]
    fn some_runs_encrypt_with_keys_that_change() {
        let on: Vec<_> =
            (0..100).map(|seed| Encryption::of_run(seed, None)).filter(|e| e.on).collect();
        assert!((10..40).contains(&on.len()));
        let lives = |e: &Encryption| (0..20).map(|life| e.keys(0, life)).collect::<Vec<_>>();
        let keys = lives(&on[0]);
        assert!(keys.iter().any(|k| first(k) != first(&keys[0])));
        assert!(keys.iter().any(|k| k.encrypts_with().is_none()));
        assert!(keys.iter().any(|k| k.encrypts_with().is_some()));
        assert_ne!(on[0].keys(0, 1).to_string(), on[0].keys(1, 1).to_string());
    }

    #[test]
    fn what_was_found_once_lies_on_disks_as_it_did_then() {
        for line in include_str!("../tests/regressions.txt").lines() {
            let seed = line.split_whitespace().next().and_then(|word| word.parse().ok());
            let encrypted = line.contains("on encrypted disks");
            assert!(
                seed.is_none_or(|seed| Encryption::of_run(seed, None).on == encrypted),
                "{line}"
            );
        }
    }
}
