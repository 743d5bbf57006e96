//! The last items of the group's history: who proposed what, and in which order.
//!
//! Invariant: exactly the items with `floor < seqno <= self.seqno()` are here, at most `items_max`
//! of them. An item enters once and is evicted once, oldest first; nothing else changes.

use crate::chunks::Chunks;
use crate::seen::{Identity, Seen};
use crate::Seqno;

/// What the window remembers of one sequenced item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    pub origin: u128,
    pub serial: u64,
    /// See [`Header::kin_epoch`](crate::Header::kin_epoch).
    pub kin_epoch: u16,
    pub class: Class,
    /// Keys that it entered into the index; none unless it passed.
    pub keys: u32,
    /// Over everything above, the seqno and the keys.
    pub digest: u64,
}

/// What an item of the log is to certification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    View = 0,
    /// Failed: holds a seqno, and its identity so that it cannot come back.
    Failed = 1,
    Transaction = 2,
    /// Passed, in total-order isolation.
    Toi = 3,
}

impl Class {
    pub const ALL: [Class; 4] = [Class::View, Class::Failed, Class::Transaction, Class::Toi];
}

impl Item {
    pub fn identity(&self) -> Identity {
        (self.origin, self.serial)
    }

    /// Whether two items come from one server, whose locks kept them apart: they never conflict.
    /// A TOI is nobody's friend.
    pub fn is_kin(&self, other: &Item) -> bool {
        self.class != Class::Toi
            && other.class != Class::Toi
            && (self.origin, self.kin_epoch) == (other.origin, other.kin_epoch)
    }
}

pub struct Window {
    items: Chunks<Item>,
    items_max: usize,
    floor: Seqno,
    keys: u64,
    digest: u64,
    seen: Seen,
}

impl Window {
    pub fn new(items_max: usize, floor: Seqno) -> Window {
        Window {
            items: Chunks::default(),
            items_max,
            floor,
            keys: 0,
            digest: 0,
            seen: Seen::new(items_max),
        }
    }

    /// The newest seqno; the floor if the window is empty.
    pub fn seqno(&self) -> Seqno {
        self.floor + self.items.len() as Seqno
    }

    /// The newest evicted seqno.
    pub fn floor(&self) -> Seqno {
        self.floor
    }

    /// Keys that the items here entered, counted with multiplicity.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Combines the digests of the items here.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The item at `seqno`, which must be in the window.
    pub fn item(&self, seqno: Seqno) -> &Item {
        self.items.get((seqno - self.floor - 1) as usize)
    }

    pub fn items(&self) -> &Chunks<Item> {
        &self.items
    }

    pub fn has_seen(&self, origin: u128, serial: u64) -> bool {
        self.seen.has((origin, serial), |seqno| self.item(seqno).identity())
    }

    /// Appends the next item; evicts the oldest if the window was full.
    pub fn push(&mut self, item: Item) {
        if self.items.len() == self.items_max {
            self.evict();
        }
        self.items.push(item);
        self.keys += u64::from(item.keys);
        self.digest ^= item.digest;
        if item.class != Class::View {
            let (items, oldest) = (&self.items, self.floor + 1);
            let whose = |seqno| items.get((seqno - oldest) as usize).identity();
            self.seen.enter(self.seqno(), whose);
        }
    }

    /// Evicts the oldest item, if there is one.
    pub fn evict(&mut self) {
        if self.items.len() == 0 {
            return;
        }
        let item = *self.items.get(0);
        if item.class != Class::View {
            let (items, oldest) = (&self.items, self.floor + 1);
            let whose = |seqno| items.get((seqno - oldest) as usize).identity();
            self.seen.remove(oldest, whose);
        }
        self.items.remove_first(1);
        self.floor += 1;
        self.keys -= u64::from(item.keys);
        self.digest ^= item.digest;
    }
}

/// One step of a fast, not cryptographic, digest.
pub fn mix(digest: u64, number: u64) -> u64 {
    let product = u128::from(digest ^ number ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from(0xd6e8_feb8_6659_fd93_u64 ^ number.rotate_left(32));
    (product as u64) ^ (product >> 64) as u64
}
