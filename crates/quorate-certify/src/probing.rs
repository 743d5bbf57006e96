//! The slots of a hash table with open addressing and linear probing, whatever they hold.

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
    fn distance(self, from: usize, to: usize) -> usize {
        match to.checked_sub(from) {
            Some(ahead) => ahead,
            None => to + self.0 - from,
        }
    }
}
