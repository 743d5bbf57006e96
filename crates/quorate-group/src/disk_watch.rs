//! Telling the operator that the log's disk stands still, and that it goes on.
//!
//! What that means for leadership is the core's to decide; this only makes sure that a member which
//! hands leadership over, or falls behind, says why.

use crate::machine::LogLevel;
use quorate_consensus::Index;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) struct DiskWatch {
    /// How far the log was on disk, and how often the log had said that it gets on.
    seen: (Index, u64),
    /// When the log was last seen to be on disk as far as it goes, or to get further.
    moved: Instant,
    told: bool,
}

impl DiskWatch {
    pub fn new(now: Instant) -> Self {
        Self { seen: (0, 0), moved: now, told: false }
    }

    /// What there is to say, if the log ends at `last` and is on disk up to `persisted`. It has
    /// reported so often: a long entry takes several reports.
    pub fn look(
        &mut self,
        (last, persisted, reports): (Index, Index, u64),
        (dir, patience): (&Path, Duration),
        now: Instant,
    ) -> Option<(LogLevel, String)> {
        let still = now.saturating_duration_since(self.moved);
        let dir = dir.display();
        let seen = (persisted, reports);
        if persisted >= last || seen != self.seen {
            (self.seen, self.moved) = (seen, now);
            return std::mem::take(&mut self.told).then(|| {
                let line = format!("the disk of the log in {dir} goes on, after {still:.1?}");
                (LogLevel::Info, line)
            });
        }
        if self.told || still < patience {
            return None;
        }
        self.told = true;
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
        let begin = Instant::now();
        let log = (Path::new("/log"), Duration::from_secs(1));
        let mut watch = DiskWatch::new(begin);
        for second in 1..20 {
            let now = begin + Duration::from_secs(second);
            assert!(watch.look((5, 4, second), log, now).is_none());
        }
        assert!(watch.look((5, 4, 19), log, begin + Duration::from_secs(21)).is_some());
    }

    #[test]
    fn a_disk_that_stands_still_is_told_of_once() {
        let begin = Instant::now();
        let at = |tenths: u64| begin + Duration::from_millis(tenths * 100);
        let log = (Path::new("/log"), Duration::from_secs(1));
        let mut watch = DiskWatch::new(begin);
        // Nothing to write, for long; then a write that takes its time, but less than a second.
        assert!(watch.look((0, 0, 0), log, at(50)).is_none());
        assert!(watch.look((5, 0, 0), log, at(55)).is_none());
        assert!(watch.look((9, 5, 0), log, at(64)).is_none());
        assert!(watch.look((9, 5, 0), log, at(73)).is_none());
        let (level, line) = watch.look((11, 5, 0), log, at(75)).unwrap();
        assert_eq!(level, LogLevel::Warn);
        assert!(line.contains("/log has written nothing for 1.1s"), "{line}");
        assert!(watch.look((12, 5, 0), log, at(90)).is_none());
        let (level, line) = watch.look((12, 11, 0), log, at(95)).unwrap();
        assert_eq!(level, LogLevel::Info);
        assert!(line.contains("goes on, after 3.1s"), "{line}");
        assert!(watch.look((12, 12, 0), log, at(96)).is_none());
    }
}
