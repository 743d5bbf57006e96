//! What the layer above says of an address, remembered for a moment: it may have to look into a table, and
//! whoever reaches the port can make as many connections as it likes.
//!
//! Invariant: at most [`LOOKS_MAX`] threads look at once, so a server that hangs holds no more of them; and few of them for
//! one host, so one with many addresses leaves the others their looks.

use super::connections::host_of;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// So long a change of the list may take to be heard.
const REMEMBERED: Duration = Duration::from_secs(1);
const ADDRESSES_MAX: usize = 256;
const LOOKS_MAX: usize = 16;
const LOOKS_OF_HOST_MAX: usize = 8;

#[derive(Default)]
pub(crate) struct Allowed(Mutex<State>);

#[derive(Default)]
struct State {
    known: BTreeMap<IpAddr, (Instant, bool)>,
    /// Under way, of each host that has any.
    looks: BTreeMap<IpAddr, usize>,
}

/// One of them. It is over with this, whatever comes of it.
struct Look<'a> {
    state: &'a Mutex<State>,
    host: IpAddr,
}

impl<'a> Look<'a> {
    /// `None`: there are too many.
    fn begin(state: &'a Mutex<State>, host: IpAddr) -> Option<Self> {
        let looks = &mut state.lock().looks;
        let (all, here) = (looks.values().sum::<usize>(), looks.get(&host).copied());
        if all >= LOOKS_MAX || here >= Some(LOOKS_OF_HOST_MAX) {
            return None;
        }
        looks.insert(host, here.unwrap_or(0) + 1);
        Some(Look { state, host })
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let looks = &mut self.state.lock().looks;
        let left = looks.get(&self.host).map_or(0, |count| count - 1);
        match left {
            0 => looks.remove(&self.host),
            left => looks.insert(self.host, left),
        };
    }
}

impl Allowed {
    /// `look`: the answer, if it is not known. Not under the lock: it may take its time. `None` if so many
    /// look already that nobody can tell.
    pub fn admits(&self, addr: IpAddr, now: Instant, look: impl FnOnce() -> bool) -> Option<bool> {
        let is_fresh = |since: &Instant| now.saturating_duration_since(*since) < REMEMBERED;
        let remembered =
            self.0.lock().known.get(&addr).filter(|(since, _)| is_fresh(since)).copied();
        if let Some((_, answer)) = remembered {
            return Some(answer);
        }
        let under_way = Look::begin(&self.0, host_of(addr))?;
        let answer = look();
        drop(under_way);
        let known = &mut self.0.lock().known;
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
    fn a_host_with_many_addresses_leaves_others_their_looks() {
        let (allowed, now) = (Allowed::default(), Instant::now());
        let of_network = |number: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, number]);
        fn nested(allowed: &Allowed, addr: &dyn Fn(u16) -> IpAddr, now: Instant, left: u16) {
            let other = IpAddr::from([10, 0, 0, 1]);
            let look = || {
                match left {
                    0 => {
                        assert_eq!(allowed.admits(addr(99), now, || true), None);
                        assert_eq!(allowed.admits(other, now, || true), Some(true));
                    }
                    _ => nested(allowed, addr, now, left - 1),
                }
                true
            };
            assert_eq!(allowed.admits(addr(left), now, look), Some(true));
        }
        nested(&allowed, &of_network, now, LOOKS_OF_HOST_MAX as u16 - 1);
        assert_eq!(allowed.admits(of_network(99), now, || true), Some(true), "all are over");
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
