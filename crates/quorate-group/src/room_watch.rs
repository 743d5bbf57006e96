//! Telling the operator that the disk of the log runs full, and that there is room again.
//!
//! The log waits for room by itself; this says so, and has it let go of what only retention keeps.

use crate::machine::LogLevel;
use quorate_wal::Room;
use std::path::Path;

#[derive(Default)]
pub(crate) struct RoomWatch {
    before: Option<Room>,
}

impl RoomWatch {
    /// What there is to say, if anything is new. `warning` is what the log says of it.
    pub fn look(
        &mut self,
        room: Room,
        warning: Option<String>,
        dir: &Path,
    ) -> Option<(LogLevel, String)> {
        let before = self.before.replace(room).unwrap_or(Room::Enough);
        if before == room {
            return None;
        }
        let dir = dir.display();
        let why = warning.unwrap_or_else(|| "the disk had no room for a new segment".into());
        match room {
            Room::Enough => {
                Some((LogLevel::Info, format!("there is room again for the log in {dir}")))
            }
            Room::Reserve { segments } => {
                let line = format!("the disk of the log in {dir} is full, {segments} segments are in reserve: {why}");
                Some((LogLevel::Warn, line))
            }
            Room::Blocked => {
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
    fn each_change_is_told_once() {
        let mut watch = RoomWatch::default();
        let mut look = |room| watch.look(room, Some("no space".into()), Path::new("/log"));
        assert_eq!(look(Room::Enough), None);
        let (level, line) = look(Room::Reserve { segments: 2 }).unwrap();
        assert!(level == LogLevel::Warn && line.contains("/log is full, 2 segments"), "{line}");
        assert_eq!(look(Room::Reserve { segments: 2 }), None);
        assert!(look(Room::Reserve { segments: 1 }).is_some());
        let (level, line) = look(Room::Blocked).unwrap();
        assert!(level == LogLevel::Error && line.ends_with("no space"), "{line}");
        assert_eq!(look(Room::Blocked), None);
        let (level, line) = look(Room::Enough).unwrap();
        assert!(level == LogLevel::Info && line.contains("room again"), "{line}");
    }
}
