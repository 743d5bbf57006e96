//! When what waits in the log for this node's appliers is too much.
//!
//! Whoever lags costs the others nothing: its backlog is its own log, on its own disk. That has an end, before
//! which its operator hears of it several times, and at which the node gives up what it has not applied.

use quorate_live::KeptLog;
use std::time::Duration;

/// An operator is warned each time that the backlog has grown by this share of what there is to be, from the half
/// of it on.
const SHARE: u64 = 10;

#[derive(Default)]
pub struct Backlog {
    /// Bytes at which the next warning is due; 0: with the first half.
    warned_at: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    Warning(String),
    TooMuch(String),
}

impl Backlog {
    /// The log that is kept for `count` write sets, of which the oldest is of that age. Where no other server could send
    /// its state (`elsewhere`), nothing is given up: it may be the only one with all there is.
    pub fn look(
        &mut self,
        log: KeptLog,
        (count, age): (usize, Duration),
        elsewhere: bool,
    ) -> Option<Finding> {
        let KeptLog { bytes, max } = log;
        let (mib, mib_max, seconds) = (bytes >> 20, max >> 20, age.as_secs());
        let behind = format!(
            "This node is {count} write sets, {seconds} seconds behind its group, and its log has {mib} MiB \
             for them; quorate.log_max is {mib_max} MiB"
        );
        if bytes > max && elsewhere {
            return Some(Finding::TooMuch(format!("{behind}: it gives them up.")));
        }
        if bytes < max / 2 {
            self.warned_at = 0;
            return None;
        }
        if bytes < self.warned_at {
            return None;
        }
        self.warned_at = bytes + max / SHARE;
        let what_next = match elsewhere {
            true => {
                "Past that it would give them up and fetch the state from another node. The others are not affected."
            }
            false => "No other server is in sync that could send its state, so it keeps them, past that, too.",
        };
        Some(Finding::Warning(format!(
            "{behind}. {what_next} See what holds its appliers (a lock, a backup, a slow disk), give it more of them, or \
             take load off it"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_hears_of_a_backlog_several_times_before_it_is_given_up() {
        let mut backlog = Backlog::default();
        let mut look = |bytes| {
            let log = KeptLog { bytes, max: 1000 };
            let found = backlog.look(log, (7, Duration::from_secs(3)), true);
            match found {
                None => ' ',
                Some(Finding::Warning(_)) => 'w',
                Some(Finding::TooMuch(_)) => '!',
            }
        };
        let found: String = (0..=1050).step_by(50).map(&mut look).collect();
        assert_eq!(found, "          w w w w w w!");
        let found: String = [600, 400, 500, 550].map(look).into_iter().collect();
        assert_eq!(found, "  w ", "it may shrink, and grow again");
    }

    #[test]
    fn the_warning_has_the_figures() {
        let log = KeptLog { bytes: 7 << 30, max: 8 << 30 };
        let found = Backlog::default().look(log, (12, Duration::from_secs(90)), true);
        let Some(Finding::Warning(line)) = found else { panic!("{found:?}") };
        assert!(line.contains("12 write sets, 90 seconds behind"), "{line}");
        assert!(line.contains("7168 MiB for them; quorate.log_max is 8192 MiB"), "{line}");
    }

    #[test]
    fn what_no_other_server_has_is_not_given_up() {
        let (log, behind) =
            (KeptLog { bytes: 9 << 30, max: 8 << 30 }, (12, Duration::from_secs(90)));
        let mut backlog = Backlog::default();
        let found = backlog.look(log, behind, false);
        let Some(Finding::Warning(line)) = found else { panic!("{found:?}") };
        assert!(line.contains("so it keeps them"), "{line}");
        assert_eq!(backlog.look(log, behind, false), None, "said once");
        let found = backlog.look(log, behind, true);
        assert!(matches!(found, Some(Finding::TooMuch(_))), "another one has come: {found:?}");
    }
}
