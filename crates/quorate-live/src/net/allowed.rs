//! What the layer above says of an address, remembered for a moment: it may have to look into a table, and
//! whoever reaches the port can make as many connections as it likes.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// So long a change of the list may take to be heard.
const REMEMBERED: Duration = Duration::from_secs(1);
const ADDRESSES_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Allowed(Mutex<BTreeMap<IpAddr, (Instant, bool)>>);

impl Allowed {
    /// `look`: the answer, if it is not known. Not under the lock: it may take its time.
    pub fn admits(&self, addr: IpAddr, now: Instant, look: impl FnOnce() -> bool) -> bool {
        let is_fresh = |since: &Instant| now.saturating_duration_since(*since) < REMEMBERED;
        if let Some((_, answer)) = self.0.lock().get(&addr).filter(|(since, _)| is_fresh(since)) {
            return *answer;
        }
        let answer = look();
        let mut known = self.0.lock();
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, (since, _)| is_fresh(since));
        }
        // Of more than these at once none is remembered, and each asks for itself.
        if known.len() < ADDRESSES_MAX {
            known.insert(addr, (now, answer));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_flood_from_one_address_asks_once_a_second() {
        let (allowed, asked) = (Allowed::default(), Cell::new(0));
        let begin = Instant::now();
        let asks = |addr: [u8; 4], after: Duration, answer| {
            allowed.admits(addr.into(), begin + after, || {
                asked.set(asked.get() + 1);
                answer
            })
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
            assert_eq!(allowed.admits(IpAddr::V4(number.into()), now, || answer), answer);
        }
        assert_eq!(allowed.0.lock().len(), ADDRESSES_MAX);
        assert!(allowed.admits([127, 0, 0, 1].into(), now + REMEMBERED, || true));
        assert_eq!(allowed.0.lock().len(), 1, "what is too old has gone");
    }
}
