//! Telling a server that hangs in the middle of a commit from one that has much to write.
//!
//! A server with a binary log writes a transaction there after its turn to commit, when its commit counts as under
//! way. With a gigabyte that may take longer than any other commit may. Those next to it may go to the binary
//! log in one group with it, and take as long.

use std::time::{Duration, Instant};

/// What a slow disk needs for a part of a large transaction, 1 MiB.
const PART_TIME: Duration = Duration::from_millis(100);

/// Between two looks; while nobody looks, the process may have been stopped, and the server with it.
const LOOK_MAX: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct CommitWatch {
    commit: Option<i64>,
    /// How long it has been the same, as far as this was looked at.
    still: Duration,
    looked: Option<Instant>,
}

impl CommitWatch {
    /// The commit that is under way, if it has been for longer than so many parts of large transactions take whose
    /// commits are under way with it.
    pub fn look(&mut self, commit: Option<i64>, parts: usize, now: Instant) -> Option<i64> {
        let looked = self.looked.replace(now).unwrap_or(now);
        match commit == self.commit {
            true => self.still += now.duration_since(looked).min(LOOK_MAX),
            false => (self.commit, self.still) = (commit, Duration::ZERO),
        }
        let allowed = PART_TIME * u32::try_from(parts).unwrap_or(u32::MAX);
        commit.filter(|_| self.still >= allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_with_much_to_write_is_under_way_only_when_it_has_had_its_time() {
        let mut watch = CommitWatch::default();
        let began = Instant::now();
        let mut look = |commit, parts, tenths| {
            watch.look(commit, parts, began + Duration::from_millis(100) * tenths)
        };
        assert_eq!(look(Some(7), 0, 0), Some(7), "a small one has none");
        for tenths in 1..=30 {
            assert_eq!(look(Some(8), 30, tenths), None, "{tenths}");
        }
        assert_eq!(look(Some(8), 30, 31), Some(8), "the server hangs");
        assert_eq!(look(Some(9), 30, 32), None, "it went on");
        assert_eq!(look(Some(9), 30, 632), None, "it was stopped for a minute");
        assert_eq!(look(Some(9), 0, 633), Some(9));
        assert_eq!(look(None, 0, 634), None);
    }
}
