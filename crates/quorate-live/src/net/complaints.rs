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

#[cfg(test)]
mod tests {
    use super::*;

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
