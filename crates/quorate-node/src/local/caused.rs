//! What members cause by what they put into the log: lines, and answers. Paced, so that none of them fills the error
//! log, or the group's.

use crate::blocking::{self, Mutex};
use quorate_live::Paced;
use std::time::Instant;

/// Of each at once: a server may fail in a few statements one after another.
const AT_ONCE: u64 = 64;

/// What is caused; the first ones are what a line is about. None of them keeps back the others.
#[derive(Clone, Copy, Debug)]
pub enum Caused {
    /// An error of another one, or that it was wrong.
    Votes,
    /// An error of this node, or of the group.
    Errors,
    Unreadable,
    /// This node looks again at a poll in which it has not voted; each member that waits causes it once in ten seconds.
    Reminders,
}

pub(super) struct Paces {
    began: Instant,
    kinds: [Mutex<Paced>; 4],
}

impl Default for Paces {
    fn default() -> Self {
        let kinds = std::array::from_fn(|_| Mutex::new(Paced::new(AT_ONCE)));
        Self { began: blocking::now(), kinds }
    }
}

impl Paces {
    pub fn due(&self, what: Caused) -> Option<String> {
        let now_ms = blocking::now().saturating_duration_since(self.began).as_millis();
        self.kinds[what as usize].lock().due(now_ms as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_cut_off_and_keeps_back_no_others() {
        let paces = Paces::default();
        let told = (0..10 * AT_ONCE).filter_map(|_| paces.due(Caused::Unreadable));
        assert!((AT_ONCE..2 * AT_ONCE).contains(&(told.count() as u64)));
        assert_eq!(paces.due(Caused::Votes).as_deref(), Some(""));
    }
}
