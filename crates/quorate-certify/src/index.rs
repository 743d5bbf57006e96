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

use crate::key_table::KeyTable;
use crate::window::{Item, Window};
use crate::{Key, KeyType, Seqno};
use std::collections::VecDeque;

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

/// The lowest 32 bits of seqnos; they stay unambiguous because the purge is never billions late.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Users {
    newest: u32,
    /// The newest that is not kin to `newest`; equal to `newest` if there is none.
    stranger: u32,
}

#[derive(Default)]
pub struct Index {
    users: KeyTable<Users>,
    /// Keys in the order in which they were entered, and by whom (seqno, number of keys).
    entered: VecDeque<Key>,
    entered_by: VecDeque<(Seqno, u32)>,
}

impl Index {
    /// Distinct keys, purged or not.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// The keys of the items still in the window, oldest first.
    pub fn keys(&self, window: &Window) -> impl Iterator<Item = &Key> {
        let evicted = self.entered_by.iter().take_while(|by| by.0 <= window.floor());
        let evicted: usize = evicted.map(|by| by.1 as usize).sum();
        self.entered.range(evicted..)
    }

    /// What `newcomer`, which saw everything up to `last_seen`, meets at `key`. What was evicted but
    /// not yet purged does not matter: `last_seen` is at the window's floor at least, so it cannot
    /// conflict, and the floor is a dependency anyway.
    pub fn meet(&self, key: Key, newcomer: &Item, last_seen: Seqno, window: &Window) -> Meeting {
        let mut meeting = Meeting::default();
        for (earlier, users) in self.users.of_path(key) {
            let relation = relation(earlier.key_type(), key.key_type());
            if relation == Relation::Free {
                continue;
            }
            let newest = expand(users.newest, window);
            meeting.dependency = meeting.dependency.max(newest);
            if relation == Relation::Conflict && newest > last_seen {
                let foreign = if !window.item(newest).is_kin(newcomer) {
                    newest
                } else if users.stranger != users.newest {
                    expand(users.stranger, window)
                } else {
                    0
                };
                if foreign > last_seen {
                    meeting.conflict = meeting.conflict.max(foreign);
                }
            }
        }
        meeting
    }

    /// Enters the keys of the newest item of the window.
    pub fn enter(&mut self, keys: impl Iterator<Item = Key>, window: &Window) {
        let seqno = window.seqno();
        // A huge transaction pays for growing; the small ones after it find room.
        let expected = window.item(seqno).keys as usize;
        self.users.reserve(expected + expected / 4);
        self.entered.reserve(expected + expected / 4);
        let now = seqno as u32;
        let newcomer = window.item(seqno);
        let mut count = 0;
        for key in keys {
            count += 1;
            self.entered.push_back(key);
            let alone = Users { newest: now, stranger: now };
            let (users, inserted) = self.users.get_or_insert(key, alone);
            if inserted {
                continue;
            }
            let newest = expand(users.newest, window);
            if newest <= window.floor() {
                *users = alone;
            } else if !window.item(newest).is_kin(newcomer) {
                *users = Users { newest: now, stranger: users.newest };
            } else if users.stranger == users.newest {
                *users = alone;
            } else {
                users.newest = now;
            }
        }
        if count > 0 {
            self.entered_by.push_back((seqno, count));
        }
    }

    /// Removes up to `budget` entries of evicted items.
    pub fn purge(&mut self, mut budget: usize, window: &Window) {
        while let Some((seqno, left)) = self.entered_by.front_mut() {
            if *seqno > window.floor() || budget == 0 {
                break;
            }
            let now = budget.min(*left as usize);
            let by = *seqno as u32;
            budget -= now;
            *left -= now as u32;
            if *left == 0 {
                self.entered_by.pop_front();
            }
            for key in self.entered.drain(..now) {
                forget(&mut self.users, key, by);
            }
        }
    }

    /// Gives back what a huge transaction needed, once it is purged.
    pub fn shrink(&mut self) {
        self.users.shrink();
        if self.entered.len() < self.entered.capacity() / 16 {
            self.entered.shrink_to(self.entered.len() * 4);
        }
    }
}

fn forget(users: &mut KeyTable<Users>, key: Key, by: u32) {
    let Some(found) = users.get_mut(key) else { return };
    if found.newest == by {
        // Whoever is older was purged before.
        users.remove(key);
    } else if found.stranger == by {
        found.stranger = found.newest;
    }
}

/// The seqno at or below the window's newest whose lowest bits are `low`.
fn expand(low: u32, window: &Window) -> Seqno {
    let now = window.seqno();
    now - Seqno::from((now as u32).wrapping_sub(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Class;

    /// An entry that outlived its seqno would be taken for a new one 2³² seqnos later.
    #[test]
    fn purge_forgets_strangers_of_keys_in_use() {
        let key = Key::from_raw(4);
        let mut index = Index::default();
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
        assert!(users == Some(Users { newest, stranger: newest }));
        assert_eq!((index.len(), index.keys(&window).count()), (1, 3));
    }
}
