//! Those who follow the console's events, each on a connection that stays.
//!
//! Invariants:
//! - no more than so many have a place ([`crate::places`]). Each has ten minutes of history sent to it, and something
//!   each second: health checks, which the same thread answers, do not wait for a crowd. Nobody needs to log in for a
//!   place;
//! - one that has lost its place is told so if it reads, and its connection ends at once, with what is kept for it.
//!   Clients that are gone without a word: [`crate::serve`].

use crate::places::{Held, Places};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

const MAX: usize = 32;
/// Histories are megabytes, for whoever asks for one, and cores are there for the server.
const HISTORIES_AT_ONCE: usize = 2;
/// To write a few bytes, for whoever has read what came before.
const LAST_WORDS_TIME: Duration = Duration::from_millis(100);

/// Ends the connection on which a request came.
pub type Ending = Arc<Notify>;

pub struct Followers {
    places: Arc<Places<Place>>,
    histories: Arc<Semaphore>,
}

struct Place {
    connection: Ending,
    /// Dropped once the place is another's.
    _held: oneshot::Sender<()>,
}

/// One that has a place.
pub struct Follower {
    _place: Held<Place>,
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
        Followers {
            places: Places::new(max),
            histories: Arc::new(Semaphore::new(HISTORIES_AT_ONCE)),
        }
    }

    /// A place for one at this address.
    pub fn admit(&self, addr: IpAddr, connection: Ending) -> Follower {
        let (_held, lost) = oneshot::channel();
        let (place, gone) = self.places.admit(addr, |held| (Place { connection, _held }, held));
        if let Some(Place { connection, .. }) = gone {
            tokio::spawn(async move {
                sleep(LAST_WORDS_TIME).await;
                connection.notify_one();
            });
        }
        Follower { _place: place, lost }
    }

    /// Waits until another history may be made, for one that has a place or for anybody else. Nobody closes the
    /// semaphore, so there is always a turn.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.histories.clone().acquire_owned().await.ok()
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
        let followers = Followers::new(4);
        let admit = |host: u8| followers.admit([10, 0, 0, host].into(), Ending::default());
        let mut others = [admit(1), admit(2)];
        let mut flood: Vec<Follower> = (0..9).map(|_| admit(9)).collect();
        let left: Vec<bool> = flood.iter_mut().map(has_place).collect();
        assert_eq!(left, [false, false, false, false, false, false, false, true, true]);
        let mut newest = admit(3);
        assert!(has_place(&mut newest) && others.iter_mut().all(has_place));
        assert_eq!(followers.places.taken(), 4);

        drop((flood, newest));
        let mut more = [admit(3), admit(4)];
        assert!(others.iter_mut().chain(&mut more).all(has_place), "places are given back");
        drop((others, more));
        assert_eq!(followers.places.taken(), 0);
    }

    #[tokio::test]
    async fn the_connection_of_one_that_has_lost_its_place_ends() {
        let followers = Followers::new(1);
        let (first, second) = (Ending::default(), Ending::default());
        let _first = followers.admit([10, 0, 0, 1].into(), first.clone());
        let _second = followers.admit([10, 0, 0, 1].into(), second.clone());
        first.notified().await;
        assert!(second.notified().now_or_never().is_none());
    }
}
