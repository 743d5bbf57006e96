//! That the group has refused this database as it stands beside this log, in a file *beside the log*: it is about the
//! two of them, and goes with the log that does not belong to the database.
//!
//! What shows it is that the group has not committed as much yet as the database has. A moment later it may have, with
//! other transactions, and a service manager has started the node again by then: so the first finding counts.
//!
//! The file stays until a state is fetched, or the database is accepted at another place.

use crate::start::{parse_uuid, Position};
use quorate_consensus::MemberId;
use quorate_live::replace_private;
use std::fs::{self, File};
use std::io;
use std::path::Path;

pub const NAME: &str = "refused_database";

/// The database that was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    At(Position),
    /// There was one, and the file does not say which (any more).
    Unknown,
}

impl Refused {
    /// `None`: none was.
    pub fn read(log_dir: &Path) -> Option<Self> {
        match fs::read_to_string(log_dir.join(NAME)) {
            Ok(text) => Some(parse(&text).map_or(Self::Unknown, Self::At)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(Self::Unknown),
        }
    }

    pub fn is(self, database: Position) -> bool {
        match self {
            Self::At(position) => position == database,
            Self::Unknown => true,
        }
    }
}

/// Durable when it returns.
pub fn note(log_dir: &Path, database: Position) -> io::Result<()> {
    replace_private(&log_dir.join(NAME), render(database).as_bytes())
}

/// The database is another one now.
pub fn forget(log_dir: &Path) -> io::Result<()> {
    match fs::remove_file(log_dir.join(NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(log_dir)?.sync_all(),
    }
}

pub(crate) fn render(database: Position) -> String {
    format!("{}:{}\n", MemberId(database.uuid), database.seqno)
}

pub(crate) fn parse(text: &str) -> Option<Position> {
    let (uuid, seqno) = text.trim().rsplit_once(':')?;
    Some(Position { uuid: parse_uuid(uuid)?, seqno: seqno.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_until_it_is_forgotten_and_a_torn_file_is_of_any_database() {
        let dir = std::env::temp_dir().join(format!("quorate-refused-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let dir = dir.as_path();
        let database = Position { uuid: 77 << 64, seqno: 12 };
        assert_eq!(Refused::read(dir), None);
        note(dir, database).unwrap();
        let found = Refused::read(dir).unwrap();
        assert_eq!(found, Refused::At(database));
        assert!(found.is(database) && !found.is(Position { seqno: 13, ..database }));
        fs::write(dir.join(NAME), "0000").unwrap();
        assert!(Refused::read(dir).unwrap().is(database));
        for _ in 0..2 {
            forget(dir).unwrap();
            assert_eq!(Refused::read(dir), None);
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
