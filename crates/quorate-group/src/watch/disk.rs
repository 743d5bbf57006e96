//! Telling the operator that the log's disk stands still, and that it goes on.
//!
//! What that means for leadership is the core's to decide; this only makes sure that a member which
//! hands leadership over, or falls behind, says why.

use crate::output::LogLevel;
use quorate_consensus::Index;
use std::time::Duration;

pub(crate) struct DiskWatch {
    persisted: Index,
    /// When the log was last seen to be on disk as far as it goes, or to get further.
    moved_ms: u64,
    reported: bool,
}

impl DiskWatch {
    pub fn new(now_ms: u64) -> Self {
        Self { persisted: 0, moved_ms: now_ms, reported: false }
    }

    /// Something was written, if only a piece of a long entry.
    pub fn moved(&mut self, now_ms: u64) {
        self.moved_ms = now_ms;
    }

    /// What there is to say, if the log ends at `last` and is on disk up to `persisted`.
    pub fn look(
        &mut self,
        (last, persisted): (Index, Index),
        (dir, patience_ms): (&str, u64),
        now_ms: u64,
    ) -> Option<(LogLevel, String)> {
        let still_ms = now_ms.saturating_sub(self.moved_ms);
        let still = Duration::from_millis(still_ms);
        if persisted >= last || persisted != self.persisted {
            (self.persisted, self.moved_ms) = (persisted, now_ms);
            return std::mem::take(&mut self.reported).then(|| {
                let line = format!("the disk of the log in {dir} goes on, after {still:.1?}");
                (LogLevel::Info, line)
            });
        }
        if self.reported || still_ms < patience_ms {
            return None;
        }
        self.reported = true;
        let line = format!(
            "the disk of the log in {dir} has written nothing for {still:.1?}: this node acknowledges \
             nothing meanwhile, and if it leads it hands leadership over should this last; the others \
             go on without it, and nothing is lost. See what the kernel says of that disk"
        );
        Some((LogLevel::Warn, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_entry_is_no_standstill() {
        let mut watch = DiskWatch::new(0);
        for second in 1..20 {
            watch.moved(second * 1000);
            assert_eq!(watch.look((5, 4), ("/log", 1000), second * 1000 + 900), None);
        }
        assert!(watch.look((5, 4), ("/log", 1000), 21_000).is_some());
    }

    #[test]
    fn a_disk_that_stands_still_is_reported_once() {
        let at = |tenths: u64| tenths * 100;
        let log = ("/log", 1000);
        let mut watch = DiskWatch::new(0);
        // Nothing to write, for long; then a write that takes its time, but less than a second.
        assert!(watch.look((0, 0), log, at(50)).is_none());
        assert!(watch.look((5, 0), log, at(55)).is_none());
        assert!(watch.look((9, 5), log, at(64)).is_none());
        assert!(watch.look((9, 5), log, at(73)).is_none());
        let (level, line) = watch.look((11, 5), log, at(75)).unwrap();
        assert_eq!(level, LogLevel::Warn);
        assert!(line.contains("/log has written nothing for 1.1s"), "{line}");
        assert!(watch.look((12, 5), log, at(90)).is_none());
        let (level, line) = watch.look((12, 11), log, at(95)).unwrap();
        assert_eq!(level, LogLevel::Info);
        assert!(line.contains("goes on, after 3.1s"), "{line}");
        assert!(watch.look((12, 12), log, at(96)).is_none());
        // One that is written in pieces, for long.
        assert!(watch.look((13, 12), log, at(97)).is_none());
        for tenths in 98..150 {
            watch.moved(at(tenths));
            assert!(watch.look((13, 12), log, at(tenths)).is_none());
        }
    }
}
