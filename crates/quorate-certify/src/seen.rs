//! Which proposals are in the window, by who made them.
//!
//! Open addressing with linear probing, as in [`KeyTable`](crate::key_table::KeyTable), but a slot has only the place
//! of an item, which says whose it is. At most half full, and made for all that the window can hold: it never moves.

use crate::probing::{Ring, Scatter};
use crate::window::mix;
use crate::Seqno;

/// Of one process, the serials of its proposals are unique.
pub type Identity = (u128, u64);

pub struct Seen {
    /// Seqnos of items; 0: empty, for none has that.
    slots: Vec<Seqno>,
    scatter: Scatter,
}

impl Seen {
    /// For at most `items_max` at a time.
    pub fn new(items_max: usize) -> Seen {
        Seen { slots: vec![0; items_max * 2 + 2], scatter: Scatter::own() }
    }

    /// Whether an item that is here has this identity; `whose` tells that of each.
    pub fn has(&self, identity: Identity, whose: impl Fn(Seqno) -> Identity) -> bool {
        self.slots[self.slot(identity, whose)] != 0
    }

    /// `seqno` is the newest item.
    pub fn enter(&mut self, seqno: Seqno, whose: impl Fn(Seqno) -> Identity) {
        let slot = self.slot(whose(seqno), whose);
        self.slots[slot] = seqno;
    }

    /// The item at `seqno` leaves. Where a newer one has its identity, that one stays.
    pub fn remove(&mut self, seqno: Seqno, whose: impl Fn(Seqno) -> Identity + Copy) {
        let mut hole = self.slot(whose(seqno), whose);
        if self.slots[hole] != seqno {
            return;
        }
        let mut at = hole;
        loop {
            at = self.next(at);
            let other = self.slots[at];
            if other == 0 {
                break;
            }
            if self.ring().may_fill(hole, self.home(whose(other)), at) {
                self.slots[hole] = other;
                hole = at;
            }
        }
        self.slots[hole] = 0;
    }

    /// The slot of this identity, or the empty one where it belongs.
    fn slot(&self, identity: Identity, whose: impl Fn(Seqno) -> Identity) -> usize {
        let mut at = self.home(identity);
        while self.slots[at] != 0 && whose(self.slots[at]) != identity {
            at = self.next(at);
        }
        at
    }

    fn home(&self, (origin, serial): Identity) -> usize {
        let origin = self.scatter.of(origin as u64 ^ (origin >> 64) as u64);
        self.ring().home(self.scatter.of(mix(origin, serial)))
    }

    fn next(&self, at: usize) -> usize {
        self.ring().next(at)
    }

    fn ring(&self) -> Ring {
        Ring(self.slots.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Few identities in a small table, oldest out first.
    #[test]
    fn has_each_identity_until_its_newest_item_leaves() {
        let identity = |seqno: Seqno| (u128::from(seqno as u64 % 3), mix(7, seqno as u64) % 5);
        let mut seen = Seen::new(16);
        let mut map: HashMap<Identity, Seqno> = HashMap::new();
        for seqno in 1..2000 {
            seen.enter(seqno, identity);
            map.insert(identity(seqno), seqno);
            let left = seqno - 16;
            if left > 0 {
                seen.remove(left, identity);
                map.retain(|_, newest| *newest != left);
            }
            for probe in 0..40 {
                let probe = identity(probe);
                assert_eq!(seen.has(probe, identity), map.contains_key(&probe));
            }
        }
    }
}
