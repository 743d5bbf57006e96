//! Row locks: sessions wait for them with patience, ordered write sets get who has them out of their way.

use super::rows::Key;
use super::{Engine, NoLock, Owner};
use simulated_node::blocking::now;
use std::time::{Duration, Instant};

impl Engine {
    /// A session's lock. It is given up when the session is aborted, or after `patience`.
    pub fn lock_local(
        &self,
        id: u64,
        key: Key,
        patience: Duration,
        with_gap: bool,
        aborted: impl Fn() -> bool,
    ) -> Result<(), NoLock> {
        let deadline: Instant = now() + patience;
        let mut tables = self.tables.lock();
        loop {
            if aborted() {
                return Err(NoLock::Aborted);
            }
            match tables.locks.get(&key) {
                Some(owner) if *owner != Owner::Local(id) => {}
                _ => {
                    tables.locks.insert(key, Owner::Local(id));
                    if with_gap {
                        tables.lock_gap(id, key);
                    }
                    return Ok(());
                }
            }
            if self.released.wait_until(&mut tables, deadline).timed_out() {
                return Err(NoLock::Timeout);
            }
        }
    }

    /// The lock of what is ordered at `seqno`, which no session may keep from it: `abort` is asked to get
    /// somebody out of the way, and where that may not be, its end is waited for.
    pub fn lock_ordered(&self, seqno: i64, owner: Owner, key: Key, abort: impl Fn(Owner)) {
        let mut tables = self.tables.lock();
        loop {
            match tables.in_the_way(owner, key) {
                None => {
                    tables.locks.insert(key, owner);
                    return;
                }
                Some(Owner::Ordered(other)) => {
                    if other > seqno {
                        let text = format!(
                            "n{}: seqno {other} was let run before {seqno}, on whose row it depends",
                            self.node
                        );
                        self.oracle.fail(text);
                    }
                    self.released.wait(&mut tables);
                }
                Some(holder) => {
                    drop(tables);
                    abort(holder);
                    tables = self.tables.lock();
                    if tables.in_the_way(owner, key) == Some(holder) {
                        self.released.wait(&mut tables);
                    }
                }
            }
        }
    }

    pub fn unlock(&self, owner: Owner) {
        let mut tables = self.tables.lock();
        tables.locks.retain(|_, holder| *holder != owner);
        if let Owner::Local(id) = owner {
            tables.gaps.values_mut().for_each(|holders| {
                holders.remove(&id);
            });
        }
        drop(tables);
        self.released.notify_all();
    }

    /// Whoever waits for a lock looks again whether it still should.
    pub fn wake(&self) {
        self.released.notify_all();
    }
}
