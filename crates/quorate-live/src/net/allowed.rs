//! What the layer above says of an address, remembered for a moment: it may have to look into a table, and
//! whoever reaches the port can make as many connections as it likes.
//!
//! Invariant: at most [`LOOKS_MAX`] threads look at once, so a server that hangs holds no more of them.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// So long a change of the list may take to be heard.
const REMEMBERED: Duration = Duration::from_secs(1);
const ADDRESSES_MAX: usize = 256;
const LOOKS_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct Allowed(Mutex<State>);

#[derive(Default)]
struct State {
    known: BTreeMap<IpAddr, (Instant, bool)>,
    /// Under way.
    looks: usize,
}

impl Allowed {
    /// `look`: the answer, if it is not known. Not under the lock: it may take its time. `None` if so many
    /// look already that nobody can tell.
    pub fn admits(&self, addr: IpAddr, now: Instant, look: impl FnOnce() -> bool) -> Option<bool> {
        let is_fresh = |since: &Instant| now.saturating_duration_since(*since) < REMEMBERED;
        {
            let mut state = self.0.lock();
            if let Some((_, answer)) = state.known.get(&addr).filter(|(since, _)| is_fresh(since)) {
                return Some(*answer);
            }
            if state.looks == LOOKS_MAX {
                return None;
            }
            state.looks += 1;
        }
        let answer = look();
        let State { known, looks } = &mut *self.0.lock();
        *looks -= 1;
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, (since, _)| is_fresh(since));
        }
        // Of more than these at once none is remembered, and each asks for itself.
        if known.len() < ADDRESSES_MAX {
            known.insert(addr, (now, answer));
        }
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn a_flood_from_one_address_asks_once_a_second() {
        let (allowed, asked) = (Allowed::default(), Cell::new(0));
        let begin = Instant::now();
        let asks = |addr: [u8; 4], after: Duration, answer| {
            let look = || {
                asked.set(asked.get() + 1);
                answer
            };
            allowed.admits(addr.into(), begin + after, look).unwrap()
        };
        let soon = REMEMBERED / 2;
        assert!(!asks([10, 0, 0, 1], Duration::ZERO, false));
        assert!(!asks([10, 0, 0, 1], soon, true), "remembered");
        assert!(asks([10, 0, 0, 2], soon, true), "another address");
        assert_eq!(asked.get(), 2);
        assert!(asks([10, 0, 0, 1], REMEMBERED, true), "the list has changed");
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn many_addresses_take_no_more_memory_and_get_their_own_answers() {
        let allowed = Allowed::default();
        let now = Instant::now();
        for number in 0..3 * ADDRESSES_MAX as u32 {
            let answer = number % 2 == 0;
            assert_eq!(allowed.admits(IpAddr::V4(number.into()), now, || answer), Some(answer));
        }
        let known = || allowed.0.lock().known.len();
        assert_eq!(known(), ADDRESSES_MAX);
        assert_eq!(allowed.admits([127, 0, 0, 1].into(), now + REMEMBERED, || true), Some(true));
        assert_eq!(known(), 1, "what is too old has gone");
    }

    #[test]
    fn a_server_that_hangs_holds_only_so_many() {
        let (allowed, now) = (Allowed::default(), Instant::now());
        let addr = |number: usize| IpAddr::V4((number as u32).into());
        let (hung, let_go) = (Barrier::new(LOOKS_MAX + 1), Barrier::new(LOOKS_MAX + 1));
        thread::scope(|scope| {
            for number in 0..LOOKS_MAX {
                let (allowed, hung, let_go) = (&allowed, &hung, &let_go);
                let look = || {
                    hung.wait();
                    let_go.wait();
                    true
                };
                scope
                    .spawn(move || assert_eq!(allowed.admits(addr(number), now, look), Some(true)));
            }
            hung.wait();
            assert_eq!(allowed.admits(addr(LOOKS_MAX), now, || true), None);
            let_go.wait();
        });
        assert_eq!(allowed.admits(addr(LOOKS_MAX), now, || true), Some(true));
    }
}
