//! A limited number of places, and who has them.
//!
//! Invariants:
//! - no more than so many are taken;
//! - another one always gets a place: the host that has most of them loses its oldest for it, and of hosts that have as
//!   many, the one that has been here longest. So a host that takes all places takes its own;
//! - a place is held as long as its [`Held`] lives, or until it is another's.

use parking_lot::Mutex;
use quorate_live::{host_of, oldest_of_most};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// With each place comes something of its holder's.
pub struct Places<T> {
    max: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// By number, so the oldest first. The host stands for all addresses that it may have.
    taken: BTreeMap<u64, (IpAddr, T)>,
    next: u64,
}

/// A place; dropping it gives it back.
pub struct Held<T> {
    places: Arc<Places<T>>,
    number: u64,
}

impl<T> Places<T> {
    pub fn new(max: usize) -> Arc<Places<T>> {
        let state = State { taken: BTreeMap::new(), next: 0 };
        Arc::new(Places { max, state: Mutex::new(state) })
    }

    /// A place for somebody at this address. `settle` is called under the lock, and must not let go of the place: it
    /// gives what comes with the place, and what is returned, beside that of who has lost a place for it.
    pub fn admit<R>(
        self: &Arc<Self>,
        addr: IpAddr,
        settle: impl FnOnce(Held<T>) -> (T, R),
    ) -> (R, Option<T>) {
        let mut state = self.state.lock();
        let gone = if state.taken.len() >= self.max { state.take_oldest() } else { None };
        let number = state.next;
        state.next += 1;
        let (its, settled) = settle(Held { places: self.clone(), number });
        state.taken.insert(number, (host_of(addr), its));
        (settled, gone)
    }

    #[cfg(test)]
    pub fn taken(&self) -> usize {
        self.state.lock().taken.len()
    }
}

impl<T> State<T> {
    /// Of the host that has most.
    fn take_oldest(&mut self) -> Option<T> {
        let hosts = self.taken.iter().map(|(number, (host, _))| (*number, *host));
        let (_, its) = self.taken.remove(&oldest_of_most(hosts)?)?;
        Some(its)
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        let given_back = self.places.state.lock().taken.remove(&self.number);
        // What comes with it may have a say of its own: not under the lock.
        drop(given_back);
    }
}
