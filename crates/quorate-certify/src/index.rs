//! Who in the window used which key, and what that means for a newcomer.
//!
//! For every key (path and type) the index knows the newest user and the newest user that is not
//! kin to it. That answers "did anybody but *this* server use the key after seqno x" exactly: if
//! the newest user is not kin to the asker it is the answer, otherwise the second is.
//!
//! Eviction from the window only moves its floor: what lies at or below the floor decides nothing
//! any more. The entries behind it are purged a few at a time with every later item, at twice the
//! rate at which new ones come in, so that the eviction of a transaction of a million rows is no
//! pause. The purge changes no answer.
//!
//! Invariant: there are never more entries than `keys_max`, purged or not. An item with `n` keys
//! first has twice as many purged: either none is left but those of the window, which keeps the
//! limit, or there are fewer than before. The table has room for [`KEYS_USUAL`] from the start. Where that is not
//! enough it doubles, and for a large item it grows at once to what that takes.

use crate::chunks::Chunks;
use crate::key_table::KeyTable;
use crate::window::{Item, Window};
use crate::{Key, KeyType, Seqno};

/// What an earlier use of a path means for a later one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// They may run in any order.
    Free,
    /// They must be applied in order.
    Dependency,
    /// If neither saw the other, the later one must not commit; otherwise a dependency.
    Conflict,
}

/// The relation of an earlier key to a later one with the same path.
pub fn relation(earlier: KeyType, later: KeyType) -> Relation {
    use Relation::{Conflict as C, Dependency as D, Free as F};
    const TABLE: [[Relation; 4]; 4] = [
        // later: SHARED REFERENCE UPDATE EXCLUSIVE
        [F, F, D, D], // earlier SHARED
        [F, F, D, C], // earlier REFERENCE
        [D, D, C, C], // earlier UPDATE
        [C, C, C, C], // earlier EXCLUSIVE
    ];
    TABLE[earlier as usize][later as usize]
}

/// What a key's history means for one newcomer. 0: nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Meeting {
    /// The newest item that it conflicts with.
    pub conflict: Seqno,
    /// The newest item that it must be applied after.
    pub dependency: Seqno,
}

/// The newest user, and the newest that is not kin to it; equal if there is none. The lowest 32 bits
/// of seqnos; they stay unambiguous because the purge is never billions late. A pair, so that the
/// table takes no memory before it is used.
type Users = (u32, u32);

pub struct Index {
    users: KeyTable<Users>,
    /// Keys in the order in which they were entered, and by whom (seqno, number of keys).
    entered: Chunks<Key>,
    entered_by: Chunks<(Seqno, u32)>,
    /// Keys of the first in `entered_by` that are purged already.
    purged: usize,
}

/// What a window of small transactions has. A table for all keys that there may be would take 96 MiB on every busy
/// node, and a miss of the processor's caches for nearly every key.
const KEYS_USUAL: u64 = 1 << 17;

/// The places of so many keys are still in the processor's cache once all of them were looked at.
const CACHED_MAX: u32 = 4096;

impl Index {
    pub fn new(keys_max: u64) -> Index {
        Index {
            users: KeyTable::with_room(keys_max.min(KEYS_USUAL) as usize).up_to(keys_max as usize),
            entered: Chunks::default(),
            entered_by: Chunks::default(),
            purged: 0,
        }
    }

    /// Makes room for so many keys that are to be entered.
    pub fn reserve(&mut self, keys: usize) {
        self.users.reserve(keys);
    }

    /// Distinct keys, purged or not.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// The keys of the items still in the window, oldest first.
    pub fn keys(&self, window: &Window) -> Chunks<Key> {
        let mut keys = self.entered.clone();
        keys.remove_first(keys.len() - window.keys() as usize);
        keys
    }

    /// What is to be asked for next, [`AT_ONCE`] at a time: see [`KeyTable::fetch`].
    pub fn fetch(&self, keys: impl Iterator<Item = Key>) {
        self.users.fetch(keys);
    }

    /// What `newcomer`, which saw everything up to `last_seen`, meets at `key`. What was evicted but
    /// not yet purged does not matter: `last_seen` is at the window's floor at least, so it cannot
    /// conflict, and the floor is a dependency anyway.
    pub fn meet(&self, key: Key, newcomer: &Item, last_seen: Seqno, window: &Window) -> Meeting {
        let mut meeting = Meeting::default();
        for (earlier, (newest, stranger)) in self.users.of_path(key) {
            let relation = relation(earlier.key_type(), key.key_type());
            if relation == Relation::Free {
                continue;
            }
            let is_alone = stranger == newest;
            let newest = expand(newest, window);
            meeting.dependency = meeting.dependency.max(newest);
            if relation == Relation::Conflict && newest > last_seen {
                let foreign = if !window.item(newest).is_kin(newcomer) {
                    newest
                } else if is_alone {
                    0
                } else {
                    expand(stranger, window)
                };
                if foreign > last_seen {
                    meeting.conflict = meeting.conflict.max(foreign);
                }
            }
        }
        meeting
    }

    /// Enters the keys of the newest item of the window.
    pub fn enter(&mut self, keys: impl Iterator<Item = Key> + Clone, window: &Window) {
        let seqno = window.seqno();
        let now = seqno as u32;
        let newcomer = window.item(seqno);
        let is_large = newcomer.keys > CACHED_MAX;
        if is_large {
            // Also for those that follow while it is in the window: else one of them would have all of these moved.
            let following = u64::from(newcomer.keys).min(2 * KEYS_USUAL);
            self.users.reserve(newcomer.keys as usize + following as usize);
        }
        let mut next = keys.clone();
        let mut count = 0;
        for key in keys {
            if is_large && count as usize % AT_ONCE == 0 {
                self.users.fetch(next.by_ref().take(AT_ONCE));
            }
            count += 1;
            self.entered.push(key);
            let alone = (now, now);
            let (users, inserted) = self.users.get_or_insert(key, alone);
            if inserted {
                continue;
            }
            let (before, stranger) = *users;
            let newest = expand(before, window);
            *users = if newest <= window.floor() {
                alone
            } else if !window.item(newest).is_kin(newcomer) {
                (now, before)
            } else if stranger == before {
                alone
            } else {
                (now, stranger)
            };
        }
        if count > 0 {
            self.entered_by.push((seqno, count));
        }
    }

    /// Removes up to `budget` entries of evicted items.
    pub fn purge(&mut self, mut budget: usize, window: &Window) {
        while self.entered_by.len() > 0 && budget > 0 {
            let (seqno, count) = *self.entered_by.get(0);
            if seqno > window.floor() {
                break;
            }
            let now = budget.min(count as usize - self.purged);
            for place in 0..now {
                if place % AT_ONCE == 0 {
                    let next = place..now.min(place + AT_ONCE);
                    self.users.fetch(next.map(|place| *self.entered.get(place)));
                }
                forget(&mut self.users, *self.entered.get(place), seqno as u32);
            }
            self.entered.remove_first(now);
            budget -= now;
            self.purged += now;
            if self.purged == count as usize {
                self.entered_by.remove_first(1);
                self.purged = 0;
            }
        }
    }
}

fn forget(users: &mut KeyTable<Users>, key: Key, by: u32) {
    let Some((newest, stranger)) = users.get_mut(key) else { return };
    if *newest == by {
        // Whoever is older was purged before.
        users.remove(key);
    } else if *stranger == by {
        *stranger = *newest;
    }
}

/// The seqno at or below the window's newest whose lowest bits are `low`.
fn expand(low: u32, window: &Window) -> Seqno {
    let now = window.seqno();
    now - Seqno::from((now as u32).wrapping_sub(low))
}

/// Keys that are fetched together: as many as a processor can wait for at a time, or a few more.
pub const AT_ONCE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Class;

    /// Each growth moves all keys, while commits wait.
    #[test]
    fn many_large_items_in_a_row_let_the_table_grow_a_few_times() {
        let (mut index, mut window) = (Index::new(1 << 22), Window::new(1000, 0));
        let (mut rooms, mut next) = (vec![index.users.room()], 0u64);
        for serial in 0..400 {
            let class = Class::Transaction;
            let keys = CACHED_MAX + 1;
            window.push(Item { origin: 1, serial, kin_epoch: 0, class, keys, digest: 0 });
            let first = next;
            next += u64::from(keys);
            let keys =
                (first..next).map(|i| Key::from_raw(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 4));
            index.enter(keys, &window);
            if index.users.room() != rooms[rooms.len() - 1] {
                rooms.push(index.users.room());
            }
        }
        assert!(index.len() > 1_000_000 && rooms.len() <= 6, "{} keys: {rooms:?}", index.len());
    }

    /// An entry that outlived its seqno would be taken for a new one 2³² seqnos later.
    #[test]
    fn purge_forgets_strangers_of_keys_in_use() {
        let key = Key::from_raw(4);
        let mut index = Index::new(9);
        let mut window = Window::new(3, (1 << 32) - 4);
        for origin in [1, 2, 2, 2, 2] {
            let class = Class::Transaction;
            let item = Item { origin, serial: 0, kin_epoch: 0, class, keys: 1, digest: 0 };
            window.push(item);
            index.purge(9, &window);
            index.enter([key].into_iter(), &window);
        }
        let newest = window.seqno() as u32;
        let users = index.users.get_mut(key).copied();
        assert_eq!(users, Some((newest, newest)));
        assert_eq!((index.len(), index.keys(&window).len()), (1, 3));
    }
}
