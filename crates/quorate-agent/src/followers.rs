//! Those who follow the console's events, each on a connection that stays.
//!
//! Invariants:
//! - no more than so many have a place. Each has ten minutes of history sent to it, and something each second: health
//!   checks, which the same thread answers, do not wait for a crowd;
//! - another one is always let in, as nobody needs to log in for a place: the host that has most of them loses its
//!   oldest for it. So a host that takes all places takes its own;
//! - one that has lost its place is told so if it reads, and its connection ends at once, with what is kept for it;
//! - a place is held as long as its [`Follower`] lives. Clients that are gone without a word: [`crate::serve`].

use parking_lot::Mutex;
use quorate_live::{host_of, oldest_of_most};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

const MAX: usize = 32;
/// Histories are megabytes, and cores are there for the server.
const HISTORIES_AT_ONCE: usize = 2;
/// To write a few bytes, for whoever has read what came before.
const LAST_WORDS_TIME: Duration = Duration::from_millis(100);

/// Ends the connection on which a request came.
pub type Ending = Arc<Notify>;

pub struct Followers {
    max: usize,
    places: Mutex<Places>,
    histories: Arc<Semaphore>,
}

#[derive(Default)]
struct Places {
    /// By number, so the oldest first.
    held: BTreeMap<u64, Place>,
    next: u64,
}

struct Place {
    /// What stands for all addresses that it may have.
    host: IpAddr,
    connection: Ending,
    /// Dropped once the place is another's.
    _held: oneshot::Sender<()>,
}

/// A place; dropping it gives it back.
pub struct Follower {
    followers: Arc<Followers>,
    number: u64,
    /// Ends with the place.
    pub lost: oneshot::Receiver<()>,
}

impl Default for Followers {
    fn default() -> Followers {
        Followers::new(MAX)
    }
}

impl Followers {
    pub fn new(max: usize) -> Followers {
        let histories = Arc::new(Semaphore::new(HISTORIES_AT_ONCE));
        Followers { max, places: Mutex::default(), histories }
    }

    /// A place for one at this address.
    pub fn admit(self: &Arc<Self>, addr: IpAddr, connection: Ending) -> Follower {
        let (held, lost) = oneshot::channel();
        let mut places = self.places.lock();
        let gone = if places.held.len() >= self.max { places.take_oldest() } else { None };
        let number = places.next;
        places.next += 1;
        places.held.insert(number, Place { host: host_of(addr), connection, _held: held });
        drop(places);
        if let Some(Place { connection, .. }) = gone {
            tokio::spawn(async move {
                sleep(LAST_WORDS_TIME).await;
                connection.notify_one();
            });
        }
        Follower { followers: self.clone(), number, lost }
    }
}

impl Places {
    /// Of the host that has most.
    fn take_oldest(&mut self) -> Option<Place> {
        let oldest = oldest_of_most(self.held.iter().map(|(number, place)| (*number, place.host)));
        oldest.and_then(|number| self.held.remove(&number))
    }
}

impl Follower {
    /// Waits until its history may be made. Nobody closes the semaphore, so there is always a turn.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.followers.histories.clone().acquire_owned().await.ok()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.followers.places.lock().held.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn has_place(follower: &mut Follower) -> bool {
        (&mut follower.lost).now_or_never().is_none()
    }

    #[tokio::test]
    async fn a_host_that_takes_all_places_loses_its_own() {
        let followers = Arc::new(Followers::new(4));
        let admit = |host: u8| followers.admit([10, 0, 0, host].into(), Ending::default());
        let mut others = [admit(1), admit(2)];
        let mut flood: Vec<Follower> = (0..9).map(|_| admit(9)).collect();
        let left: Vec<bool> = flood.iter_mut().map(has_place).collect();
        assert_eq!(left, [false, false, false, false, false, false, false, true, true]);
        let mut newest = admit(3);
        assert!(has_place(&mut newest) && others.iter_mut().all(has_place));
        assert_eq!(followers.places.lock().held.len(), 4);

        drop((flood, newest));
        let mut more = [admit(3), admit(4)];
        assert!(others.iter_mut().chain(&mut more).all(has_place), "places are given back");
        drop((others, more));
        assert!(followers.places.lock().held.is_empty());
    }

    #[tokio::test]
    async fn the_connection_of_one_that_has_lost_its_place_ends() {
        let followers = Arc::new(Followers::new(1));
        let (first, second) = (Ending::default(), Ending::default());
        let _first = followers.admit([10, 0, 0, 1].into(), first.clone());
        let _second = followers.admit([10, 0, 0, 1].into(), second.clone());
        first.notified().await;
        assert!(second.notified().now_or_never().is_none());
    }
}
