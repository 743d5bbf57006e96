//! Lines that members cause by what they put into the log: paced, so that none of them fills the error log.

use crate::blocking::{self, Mutex};
use quorate_live::Paced;
use std::time::Instant;

/// Lines at once: a server may fail in a few statements one after another.
const AT_ONCE: u64 = 64;

/// What a line is about. None of them keeps back the others.
#[derive(Clone, Copy, Debug)]
pub enum Caused {
    /// An error of another one, or that it was wrong.
    Votes,
    /// An error of this node, or of the group.
    Errors,
    Unreadable,
}

pub(super) struct CausedLines {
    began: Instant,
    kinds: [Mutex<Paced>; 3],
}

impl Default for CausedLines {
    fn default() -> Self {
        let kinds = std::array::from_fn(|_| Mutex::new(Paced::new(AT_ONCE)));
        Self { began: blocking::now(), kinds }
    }
}

impl CausedLines {
    /// The line as it is to be written, if one may be written now.
    pub fn due(&self, what: Caused, line: &str) -> Option<String> {
        let now_ms = blocking::now().saturating_duration_since(self.began).as_millis();
        let others = self.kinds[what as usize].lock().due(now_ms as u64)?;
        Some(line.to_owned() + &others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_cut_off_and_keeps_back_no_others() {
        let lines = CausedLines::default();
        let told = (0..10 * AT_ONCE).filter_map(|_| lines.due(Caused::Unreadable, "said"));
        assert!((AT_ONCE..2 * AT_ONCE).contains(&(told.count() as u64)));
        assert_eq!(lines.due(Caused::Votes, "said").as_deref(), Some("said"));
    }
}
