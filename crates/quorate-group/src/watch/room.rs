//! Telling the operator that the disk of the log runs full, and that there is room again.
//!
//! The log waits for room by itself; this says so, and has it let go of what only retention keeps.

use crate::input::LogRoom;
use crate::output::LogLevel;
use quorate_consensus::Index;

#[derive(Default)]
pub(crate) struct RoomWatch {
    before: Option<LogRoom>,
    /// Of a logger: for whom it keeps its log.
    pub for_whom: ForWhom,
}

/// It is told from the half of the room on that a log may have, and each time that another tenth is taken.
const FOR_WHOM_FROM: u8 = 50;
const FOR_WHOM_STEP: u8 = 10;

#[derive(Default)]
pub(crate) struct ForWhom {
    told_at: Option<u8>,
}

impl ForWhom {
    pub fn is_due(&mut self, percent: u8) -> bool {
        if percent < FOR_WHOM_FROM {
            self.told_at = None;
            return false;
        }
        self.told_at.is_none_or(|told| percent >= (told + FOR_WHOM_STEP).min(100) && percent > told)
    }

    pub fn told(&mut self, percent: u8) {
        self.told_at = Some(percent);
    }
}

impl RoomWatch {
    /// What there is to say, if anything is new. `warning` is what the log says of it.
    pub fn look(
        &mut self,
        room: LogRoom,
        warning: Option<String>,
        dir: &str,
    ) -> Option<(LogLevel, String)> {
        let before = self.before.replace(room).unwrap_or(LogRoom::Enough);
        if before == room {
            return None;
        }
        let why = warning.unwrap_or_else(|| "the disk had no room for a new segment".into());
        match room {
            LogRoom::Enough => {
                Some((LogLevel::Info, format!("there is room again for the log in {dir}")))
            }
            LogRoom::Reserve { segments } => {
                let line = format!("the disk of the log in {dir} is full, {segments} segments are in reserve: {why}");
                Some((LogLevel::Warn, line))
            }
            LogRoom::Blocked => {
                let line = format!(
                    "the disk of the log in {dir} is full, and the log stands still: {why}"
                );
                Some((LogLevel::Error, line))
            }
        }
    }
}

/// A member that no majority needs stops before its reserve is used up. Should the group then commit
/// nothing for so long, although something waits, one that was needed is gone: this one goes on.
const PATIENCE_MS: u64 = 3000;

/// How long a member without room has seen nothing committed.
#[derive(Default)]
pub(crate) struct StandStill {
    /// The commit index, and since when it is that.
    since: Option<(Index, u64)>,
}

impl StandStill {
    /// Whether this member is to go on, if it has a log up to `last`, committed up to `commit`.
    pub fn look(&mut self, room: LogRoom, (last, commit): (Index, Index), now_ms: u64) -> bool {
        if room != LogRoom::Blocked || commit >= last {
            self.since = None;
            return false;
        }
        match self.since {
            Some((before, since_ms)) if before == commit => now_ms >= since_ms + PATIENCE_MS,
            _ => {
                self.since = Some((commit, now_ms));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_needed_goes_on_when_nothing_is_committed_any_more() {
        let mut stand = StandStill::default();
        let mut look = |room, commit, now_ms| stand.look(room, (9, commit), now_ms);
        assert!(!look(LogRoom::Reserve { segments: 1 }, 5, 0));
        assert!(!look(LogRoom::Blocked, 5, 9000));
        assert!(!look(LogRoom::Blocked, 6, 11_900), "others go on");
        assert!(!look(LogRoom::Blocked, 6, 14_000));
        assert!(look(LogRoom::Blocked, 6, 14_900));
        assert!(!look(LogRoom::Blocked, 9, 20_000), "nothing waits");
        assert!(!look(LogRoom::Blocked, 6, 20_100));
    }

    #[test]
    fn for_whom_a_log_is_kept_is_told_while_it_grows() {
        let mut for_whom = ForWhom::default();
        let mut tells = |percent| {
            let due = for_whom.is_due(percent);
            if due {
                for_whom.told(percent);
            }
            due
        };
        let seen = [10, 49, 50, 51, 59, 60, 95, 99, 100, 100, 70, 20, 50].map(&mut tells);
        let due = [2, 5, 6, 8, 12];
        assert_eq!(seen, std::array::from_fn(|at| due.contains(&at)));
    }

    #[test]
    fn each_change_is_reported_once() {
        let mut watch = RoomWatch::default();
        let mut look = |room| watch.look(room, Some("no space".into()), "/log");
        assert_eq!(look(LogRoom::Enough), None);
        let (level, line) = look(LogRoom::Reserve { segments: 2 }).unwrap();
        assert!(level == LogLevel::Warn && line.contains("/log is full, 2 segments"), "{line}");
        assert_eq!(look(LogRoom::Reserve { segments: 2 }), None);
        assert!(look(LogRoom::Reserve { segments: 1 }).is_some());
        let (level, line) = look(LogRoom::Blocked).unwrap();
        assert!(level == LogLevel::Error && line.ends_with("no space"), "{line}");
        assert_eq!(look(LogRoom::Blocked), None);
        let (level, line) = look(LogRoom::Enough).unwrap();
        assert!(level == LogLevel::Info && line.contains("room again"), "{line}");
    }
}
