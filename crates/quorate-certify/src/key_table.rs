//! A hash table for keys that already are hashes.
//!
//! Open addressing with linear probing, the home slot taken from the *high* bits of the key: the
//! four types of one path (lowest bits) share a home and usually a cache line, so one probe finds
//! them all. Deletion shifts back, so there are no tombstones and nothing to clean up. At most half
//! full; grows by doubling, and shrinks only when told to.

use crate::Key;

const SLOTS_MIN: usize = 32;

/// Slots with key 0 are empty: a [`Key`] is never 0.
pub struct KeyTable<V> {
    slots: Vec<(u64, V)>,
    len: usize,
}

impl<V: Copy + Default> Default for KeyTable<V> {
    fn default() -> Self {
        KeyTable { slots: vec![(0, V::default()); SLOTS_MIN], len: 0 }
    }
}

impl<V: Copy + Default> KeyTable<V> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Every entry for the path of `key`, of whatever type.
    pub fn of_path(&self, key: Key) -> impl Iterator<Item = (Key, V)> + '_ {
        let mut at = self.home(key.raw());
        std::iter::from_fn(move || loop {
            let (raw, value) = self.slots[at];
            if raw == 0 {
                return None;
            }
            at = self.next(at);
            let found = Key::from_raw(raw);
            if found.path() == key.path() {
                return Some((found, value));
            }
        })
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut V> {
        let at = self.find(key).ok()?;
        Some(&mut self.slots[at].1)
    }

    /// The value of `key`; inserted as `value` if it was absent (then the second is true).
    pub fn get_or_insert(&mut self, key: Key, value: V) -> (&mut V, bool) {
        let (at, inserted) = match self.find(key) {
            Ok(at) => (at, false),
            Err(mut at) => {
                if self.reserve(1) {
                    at = self.free_slot(key.raw());
                }
                self.slots[at] = (key.raw(), value);
                self.len += 1;
                (at, true)
            }
        };
        (&mut self.slots[at].1, inserted)
    }

    pub fn remove(&mut self, key: Key) {
        let Ok(mut hole) = self.find(key) else { return };
        self.len -= 1;
        let mut at = hole;
        loop {
            at = self.next(at);
            let raw = self.slots[at].0;
            if raw == 0 {
                break;
            }
            // The entry may move back into the hole unless its home lies after the hole.
            let mask = self.slots.len() - 1;
            let from_home = at.wrapping_sub(self.home(raw)) & mask;
            let from_hole = at.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole].0 = 0;
    }

    /// Makes room for `more` entries; true if that moved the others.
    pub fn reserve(&mut self, more: usize) -> bool {
        let enough = ((self.len + more) * 2).next_power_of_two();
        let grows = enough > self.slots.len();
        if grows {
            self.resize(enough);
        }
        grows
    }

    /// Gives memory back if the table is far too large for what it holds. Takes time proportional
    /// to its size, so it is not for the path of every write set.
    pub fn shrink(&mut self) {
        let enough = (self.len * 4).next_power_of_two();
        if enough < self.slots.len() / 4 {
            self.resize(enough);
        }
    }

    pub fn clear(&mut self) {
        if self.slots.len() > SLOTS_MIN * 8 {
            *self = KeyTable::default();
        } else if self.len > 0 {
            self.slots.fill((0, V::default()));
            self.len = 0;
        }
    }

    fn home(&self, raw: u64) -> usize {
        (raw >> (u64::BITS - self.slots.len().trailing_zeros())) as usize
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// The slot of `key`, or the empty slot where it belongs.
    fn find(&self, key: Key) -> Result<usize, usize> {
        let mut at = self.home(key.raw());
        loop {
            match self.slots[at].0 {
                0 => return Err(at),
                raw if raw == key.raw() => return Ok(at),
                _ => at = self.next(at),
            }
        }
    }

    fn free_slot(&self, raw: u64) -> usize {
        let mut at = self.home(raw);
        while self.slots[at].0 != 0 {
            at = self.next(at);
        }
        at
    }

    fn resize(&mut self, slots: usize) {
        let slots = slots.max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![(0, V::default()); slots]);
        for entry in old.into_iter().filter(|entry| entry.0 != 0) {
            let at = self.free_slot(entry.0);
            self.slots[at] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyType;
    use std::collections::HashMap;

    /// Few homes (high bits), so that runs are long, wrap around and get holes in the middle.
    #[test]
    fn behaves_like_a_map() {
        let mut table = KeyTable::default();
        let mut map = HashMap::new();
        let mut state = 7u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for step in 0..200_000u32 {
            let growing = (step / 20_000) % 2 == 0;
            let key = Key::from_raw((random(8) << 61) | (random(64) << 2) | random(4));
            if random(10) < if growing { 7 } else { 2 } {
                let (value, inserted) = table.get_or_insert(key, step);
                assert_eq!(inserted, !map.contains_key(&key));
                *value = step;
                map.insert(key, step);
            } else {
                table.remove(key);
                map.remove(&key);
            }
            assert_eq!(table.len(), map.len());
            let probe = Key::from_raw((random(8) << 61) | (random(64) << 2));
            let mut found: Vec<_> = table.of_path(probe).collect();
            found.sort();
            let mut expected: Vec<_> = KeyType::ALL
                .iter()
                .filter_map(|t| map.get_key_value(&probe.with_type(*t)))
                .map(|(k, v)| (*k, *v))
                .collect();
            expected.sort();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn shrinks_when_emptied_and_clear_empties() {
        let mut table = KeyTable::default();
        let key = |i: u64| Key::from_raw(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 4);
        for i in 0..10_000 {
            table.get_or_insert(key(i), i);
        }
        let full = table.slots.len();
        for i in 0..10_000 {
            assert_eq!(table.get_mut(key(i)).copied(), Some(i));
            table.remove(key(i));
        }
        assert!(table.slots.len() == full && table.len() == 0);
        table.get_or_insert(key(1), 1);
        table.shrink();
        assert!(table.slots.len() == SLOTS_MIN && table.get_mut(key(1)).is_some());
        table.clear();
        assert_eq!((table.len(), table.get_mut(key(1))), (0, None));
    }
}
