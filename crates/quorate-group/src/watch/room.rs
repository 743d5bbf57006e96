//! Telling the operator that the disk of the log runs full, and that there is room again.
//!
//! The log waits for room by itself; this says so, and has it let go of what only retention keeps.

use crate::input::LogRoom;
use crate::output::LogLevel;

#[derive(Default)]
pub(crate) struct RoomWatch {
    before: Option<LogRoom>,
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

#[cfg(test)]
mod tests {
    use super::*;

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
