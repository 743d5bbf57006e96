//! Where a start continues: what the data directory says of the database in it, and which history of
//! which group that belongs to.

pub mod durable;
pub mod failed;
pub mod genesis;
pub mod grastate;
pub mod isolated;
pub mod refused;
pub mod resume;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file beside the database that says what the database is, and cannot be used. To go on as if it were missing could
/// replace the database, or take a failed write set for one that succeeded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} cannot be used: {reason}. It says what the database beside it is, so this node did not connect to its group. \
     Nothing was changed. {advice}", .path.display()
)]
pub struct UnusableNote {
    pub path: PathBuf,
    pub reason: String,
    pub advice: &'static str,
}

/// The text of such a file; `None`: there is none.
pub(crate) fn read_note(path: &Path) -> Result<Option<String>, UnusableNote> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(UnusableNote {
            path: path.to_path_buf(),
            reason: error.to_string(),
            advice: "Give the file back to the server's user (chown mysql) or mend the disk, and start the node again. \
                     If the file is lost, empty the data directory (keep a copy): the node then fetches the state from \
                     another one",
        }),
    }
}

/// Puts a file with this text in the place of the one that is there, durably: after a crash it is the one or the other.
pub(crate) fn replace_note(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(new, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// A uuid as files have it, with hyphens or without.
pub fn parse_uuid(text: &str) -> Option<u128> {
    u128::from_str_radix(&text.replace('-', ""), 16).ok()
}

/// A place in a history of write sets: the interface's GTID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    pub uuid: u128,
    pub seqno: i64,
}
