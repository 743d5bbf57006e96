//! A hash table for keys that already are hashes.
//!
//! Open addressing with linear probing, the home slot taken from the path alone ([`Scatter`]): the
//! four types of one path (lowest bits) share a home and usually a cache line, so one probe finds
//! them all. Deletion shifts back, so there are no tombstones and nothing to clean up. At most half
//! full.
//!
//! A table with room for all that may ever come never moves: its slots are zero at first, so the
//! kernel gives memory only to those that are used. One without grows by doubling, or at once to what is reserved, but
//! never beyond what all keys that there can be take.

use crate::key::TYPE_BITS;
use crate::probing::{Ring, Scatter};
use crate::Key;

const SLOTS_MIN: usize = 32;

/// Slots with key 0 are empty: a [`Key`] is never 0.
pub struct KeyTable<V> {
    slots: Vec<(u64, V)>,
    scatter: Scatter,
    len: usize,
    /// So many slots are enough for all keys that there can be.
    slots_max: usize,
}

impl<V: Copy + Default> Default for KeyTable<V> {
    fn default() -> Self {
        KeyTable::with_room(0)
    }
}

impl<V: Copy + Default> KeyTable<V> {
    /// For so many keys. Takes no memory for them yet if `V` is made of plain numbers: the standard
    /// library asks for zeroed memory then, and does not write it itself.
    pub fn with_room(keys: usize) -> Self {
        let slots = (keys * 2).max(SLOTS_MIN);
        let (slots, scatter) = (vec![(0, V::default()); slots], Scatter::own());
        KeyTable { slots, scatter, len: 0, slots_max: usize::MAX }
    }

    /// The same, where there are never more than so many keys: it does not grow beyond what these take.
    pub fn up_to(mut self, keys_max: usize) -> Self {
        self.slots_max = keys_max.saturating_mul(2);
        self
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// How many keys there can be before the table grows.
    pub fn room(&self) -> usize {
        self.slots.len() / 2
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

    /// Brings the places of these keys into the processor's cache. None of the reads waits for another, so that they
    /// take little more time together than one of them does alone.
    pub fn fetch(&self, keys: impl Iterator<Item = Key>) {
        let read = keys.fold(0, |read, key| read ^ self.slots[self.home(key.raw())].0);
        std::hint::black_box(read);
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
                if self.len == self.room() {
                    self.grow();
                    at = self.free_slot(key.raw());
                }
                self.slots[at] = (key.raw(), value);
                self.len += 1;
                (at, true)
            }
        };
        (&mut self.slots[at].1, inserted)
    }

    /// Makes room for so many keys more, in one move. Never by less than a doubling, however few they are: else each
    /// of many such calls would move all keys.
    pub fn reserve(&mut self, keys: usize) {
        let needed = ((self.len + keys) * 2).min(self.slots_max);
        if needed > self.slots.len() {
            self.grow_to(needed.max(2 * self.slots.len()).min(self.slots_max));
        }
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
            if self.ring().may_fill(hole, self.home(raw), at) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole].0 = 0;
    }

    pub fn clear(&mut self) {
        if self.slots.len() > SLOTS_MIN * 8 {
            let (slots_max, scatter) = (self.slots_max, self.scatter);
            *self = KeyTable { slots_max, scatter, ..KeyTable::default() };
        } else if self.len > 0 {
            self.slots.fill((0, V::default()));
            self.len = 0;
        }
    }

    fn home(&self, raw: u64) -> usize {
        self.ring().home(self.scatter.of(raw & !TYPE_BITS))
    }

    fn next(&self, at: usize) -> usize {
        self.ring().next(at)
    }

    fn ring(&self) -> Ring {
        Ring(self.slots.len())
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

    fn grow(&mut self) {
        let twice = self.slots.len() * 2;
        self.grow_to(twice.min(self.slots_max).max((self.len + 1) * 2));
    }

    fn grow_to(&mut self, slots: usize) {
        let larger = vec![(0, V::default()); slots];
        let old = std::mem::replace(&mut self.slots, larger);
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
        // One that grows, and one whose number of slots is no power of two.
        for mut table in [KeyTable::default(), KeyTable::with_room(2100)] {
            table.scatter = Scatter::NONE;
            behaves_like_a_map_in(table);
        }
        behaves_like_a_map_in(KeyTable::default());
    }

    /// Primary keys are chosen by clients, and so are the high bits of their hashes.
    #[test]
    fn keys_of_one_kind_do_not_crowd() {
        // Such that the test finds the same each time.
        let mut table = KeyTable { scatter: Scatter::FIXED, ..KeyTable::default() };
        for low in 1..=100_000_u64 {
            table.get_or_insert(Key::from_raw((0xabc << 52) | (low << 2)), 0_u32);
        }
        let ring = table.ring();
        let far = |(at, slot): (usize, &(u64, u32))| match slot.0 {
            0 => 0,
            raw => ring.distance(table.home(raw), at),
        };
        let furthest = table.slots.iter().enumerate().map(far).max();
        assert!(furthest < Some(1_000), "{furthest:?} slots from its home");
    }

    fn behaves_like_a_map_in(mut table: KeyTable<u32>) {
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
    fn grows_to_what_all_keys_take_and_no_further() {
        let mut table = KeyTable::with_room(100).up_to(150);
        let key = |i: u64| Key::from_raw(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 4);
        for i in 0..=100 {
            table.get_or_insert(key(i), i);
        }
        assert_eq!(table.room(), 150);
        table.reserve(1000);
        assert_eq!(table.room(), 150);
        // Who promised that is taken at its word, but not at the price of a table without an empty place.
        for i in 0..200 {
            table.get_or_insert(key(i), i);
        }
        assert!((0..200).all(|i| table.get_mut(key(i)).is_some()) && table.room() >= 200);
    }

    #[test]
    fn moves_only_past_its_room_and_clear_empties() {
        let key = |i: u64| Key::from_raw(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 4);
        let mut table = KeyTable::with_room(1000);
        let slots = table.slots.as_ptr();
        for i in 0..1000 {
            table.get_or_insert(key(i), i);
        }
        assert_eq!((table.slots.as_ptr(), table.len()), (slots, 1000));
        table.get_or_insert(key(1000), 1000);
        assert_eq!(table.room(), 2000);
        table.reserve(999);
        assert_eq!(table.room(), 2000, "there is room");
        table.reserve(7000);
        assert_eq!((table.room(), table.len()), (8001, 1001));
        for i in 0..=1000 {
            assert_eq!(table.get_mut(key(i)).copied(), Some(i));
            table.remove(key(i));
        }
        table.get_or_insert(key(1), 1);
        table.clear();
        assert_eq!((table.len(), table.get_mut(key(1))), (0, None));
    }
}
