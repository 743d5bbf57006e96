//! Where in the log the parts of large transactions are that have passed: whoever applies one, or replays it,
//! reads its data from there.
//!
//! Invariant: the log is not released from the first of these places on before the transaction is done here, and
//! [`FLUSHED_AFTER`] longer. A server that does not sync each commit may lose its last ones with the power,
//! and has to find them in the log again; that of a transaction begins with its parts, which may lie further
//! back than the log is kept for.

use crate::blocking::{self, Mutex};
use quorate_certify::Places;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server that does not sync each commit syncs all of them once a second, unless it is told to take longer.
const FLUSHED_AFTER: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct PartPlaces {
    inner: Mutex<Inner>,
    /// Some are waiting to be done.
    any: AtomicBool,
}

#[derive(Default)]
struct Inner {
    waiting: BTreeMap<i64, Arc<Places>>,
    /// When each was done, and its first place.
    done: VecDeque<(Instant, u64)>,
    /// A state transfer brought all up to this seqno.
    received: i64,
}

impl PartPlaces {
    /// By the sequencer, before anybody hears of this seqno.
    pub fn note(&self, seqno: i64, places: Places) {
        let mut inner = self.inner.lock();
        if seqno > inner.received {
            self.any.store(true, SeqCst);
            inner.waiting.insert(seqno, Arc::new(places));
        }
    }

    pub fn of(&self, seqno: i64) -> Option<Arc<Places>> {
        if !self.any.load(SeqCst) {
            return None;
        }
        self.inner.lock().waiting.get(&seqno).cloned()
    }

    /// The parts of transactions up to this seqno that are not done.
    pub fn count_upto(&self, seqno: i64) -> usize {
        if !self.any.load(SeqCst) {
            return 0;
        }
        self.inner.lock().waiting.range(..=seqno).map(|(_, places)| places.len()).sum()
    }

    /// It is done here.
    pub fn done(&self, seqno: i64) {
        if !self.any.load(SeqCst) {
            return; // nearly always: each transaction comes by here
        }
        let mut inner = self.inner.lock();
        let first = inner.waiting.remove(&seqno).and_then(|places| places.iter().min().copied());
        inner.done.extend(first.map(|first| (blocking::now(), first)));
        self.any.store(!inner.waiting.is_empty(), SeqCst);
    }

    /// A state transfer brought all up to this seqno. The log may be heard of later than the state.
    pub fn discard_upto(&self, seqno: i64) {
        let mut inner = self.inner.lock();
        inner.received = seqno;
        inner.waiting.retain(|other, _| *other > seqno);
        self.any.store(!inner.waiting.is_empty(), SeqCst);
    }

    /// For a new connection.
    pub fn clear(&self) {
        let mut inner = self.inner.lock();
        inner.received = -1;
        inner.waiting.clear();
        self.any.store(false, SeqCst);
    }

    /// The first entry that may have to be read again.
    pub fn first_index(&self) -> Option<u64> {
        let mut inner = self.inner.lock();
        let now = blocking::now();
        while inner.done.front().is_some_and(|(at, _)| now.duration_since(*at) > FLUSHED_AFTER) {
            inner.done.pop_front();
        }
        let waiting = inner.waiting.values().filter_map(|places| places.iter().min());
        waiting.chain(inner.done.iter().map(|(_, first)| first)).min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_known_until_their_transaction_is_done_and_kept_until_it_is_on_disk() {
        let places = PartPlaces::default();
        places.clear();
        assert!(places.of(5).is_none() && places.first_index().is_none());
        places.note(5, Box::from([3, 2]));
        places.note(7, Box::from([9]));
        assert_eq!(places.of(5).as_deref(), Some(&Box::from([3, 2])));
        assert_eq!([4, 6, 7].map(|upto| places.count_upto(upto)), [0, 2, 3]);
        places.done(5);
        assert_eq!((places.first_index(), places.of(5)), (Some(2), None));
        let long_ago = Instant::now() - 2 * FLUSHED_AFTER;
        places.inner.lock().done[0].0 = long_ago;
        assert_eq!(places.first_index(), Some(9));
        places.discard_upto(7);
        places.note(7, Box::from([9]));
        assert!(places.first_index().is_none() && !places.any.load(SeqCst));
    }
}
