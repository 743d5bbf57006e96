//! Lines about strangers: each reason at most once in ten seconds, so that one stranger's noise does not hide
//! what is said about another (a port scan, and a node whose secret is wrong).
//!
//! Bounded: reasons hold words of strangers. Where there are more of them than places, the rest share one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(10);
const REASONS_MAX: usize = 16;

#[derive(Default)]
pub(super) struct Complaints {
    /// By reason. The empty one is that of all for which there is no place.
    said: BTreeMap<String, Said>,
}

struct Said {
    at: Instant,
    left_out: u64,
}

impl Complaints {
    /// The line `{who}: {reason}`, unless there was one for this reason a while ago.
    pub fn line(&mut self, who: &str, reason: &str, now: Instant) -> Option<String> {
        let is_fresh = |said: &Said| now.duration_since(said.at) < INTERVAL;
        if !self.said.contains_key(reason) && self.said.len() >= REASONS_MAX {
            self.said.retain(|_, said| is_fresh(said));
        }
        let has_place = self.said.contains_key(reason) || self.said.len() < REASONS_MAX;
        let key = if has_place { reason } else { "" };
        let left_out = match self.said.get_mut(key) {
            Some(said) if is_fresh(said) => {
                said.left_out += 1;
                return None;
            }
            Some(said) => std::mem::take(&mut said.left_out),
            None => 0,
        };
        self.said.insert(key.to_owned(), Said { at: now, left_out: 0 });
        Some(match left_out {
            0 => format!("{who}: {reason}"),
            count => format!("{who}: {reason} ({count} similar lines were left out)"),
        })
    }
}

/// Between two lines about one peer that cannot be reached.
const PEER_INTERVAL: Duration = Duration::from_secs(1);

/// Lines about one peer that cannot be reached: each reason once until it is reached, not at each attempt. Its
/// attempts, and some of the words in the reasons, are the peer's.
#[derive(Default)]
pub(crate) struct Unreached {
    told: Vec<String>,
    last: Option<Instant>,
}

impl Unreached {
    pub fn is_due(&mut self, reason: &str, now: Instant) -> bool {
        let is_fresh = self.last.is_some_and(|last| now.duration_since(last) < PEER_INTERVAL);
        if is_fresh || self.told.iter().any(|told| told == reason) {
            return false;
        }
        if self.told.len() >= REASONS_MAX {
            self.told.clear();
        }
        self.told.push(reason.to_owned());
        self.last = Some(now);
        true
    }

    pub fn reached(&mut self) {
        self.told.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_why_a_peer_is_not_reached_is_told_once() {
        let mut unreached = Unreached::default();
        let now = Instant::now();
        let told = |unreached: &mut Unreached, seconds| {
            let now = now + Duration::from_secs(seconds);
            let due = |reason: &&str| unreached.is_due(reason, now);
            ["refused", "no route"].into_iter().filter(due).collect::<Vec<_>>()
        };
        assert_eq!(told(&mut unreached, 0), ["refused"], "one a second");
        assert_eq!(told(&mut unreached, 1), ["no route"]);
        assert_eq!(told(&mut unreached, 2), Vec::<&str>::new());
        unreached.reached();
        assert_eq!(told(&mut unreached, 3), ["refused"]);
        let made_up = (0..100_000).filter(|ms| {
            unreached.is_due(&ms.to_string(), now + Duration::from_millis(4_000 + ms))
        });
        assert_eq!(made_up.count(), 100);
        assert!(unreached.told.len() <= REASONS_MAX);
    }

    #[test]
    fn noise_about_one_thing_does_not_hide_another() {
        let mut complaints = Complaints::default();
        let now = Instant::now();
        let first = complaints.line("a", "it speaks in the clear", now);
        assert_eq!(first.as_deref(), Some("a: it speaks in the clear"));
        assert_eq!(complaints.line("b", "it speaks in the clear", now), None);
        let other = complaints.line("c", "it has no secret", now);
        assert_eq!(other.as_deref(), Some("c: it has no secret"));
        let later = complaints.line("d", "it speaks in the clear", now + INTERVAL);
        let told = "d: it speaks in the clear (1 similar lines were left out)";
        assert_eq!(later.as_deref(), Some(told));
    }

    #[test]
    fn reasons_that_strangers_make_up_are_bounded() {
        let mut complaints = Complaints::default();
        let now = Instant::now();
        let said = |complaints: &mut Complaints, from: u32, now| {
            (from..from + 1000)
                .filter_map(|at| complaints.line("x", &format!("reason {at}"), now))
                .count()
        };
        assert_eq!(said(&mut complaints, 0, now), REASONS_MAX + 1);
        assert_eq!(complaints.said.len(), REASONS_MAX + 1);
        // Places are free again when their reasons are old.
        assert_eq!(said(&mut complaints, 1000, now + INTERVAL), REASONS_MAX + 1);
        assert_eq!(complaints.said.len(), REASONS_MAX + 1);
    }
}
