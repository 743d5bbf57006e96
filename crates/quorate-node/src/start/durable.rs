//! Making a folder of files durable.
//!
//! The server's state transfer scripts do not sync what they write, and the server then opens it
//! as data that was there before. A node that calls itself a member on such data, and loses its
//! power within the next half minute, has files that are empty; if that happens to all members
//! that were filled lately, the data is nowhere. So whoever received a state syncs it before the
//! group may count on it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Syncs all files and directories below `folder`, and itself. What vanishes meanwhile (a
/// temporary file of the server's) needs no sync.
pub fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Links are not followed to directories: those are somebody else's, or a loop.
        let synced = match entry.file_type()? {
            kind if kind.is_dir() => sync_tree(&path),
            kind if kind.is_file() => sync(&path),
            kind if kind.is_symlink() && path.is_file() => sync(&path),
            _ => Ok(()),
        };
        match synced {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other?,
        }
    }
    sync(folder)
}

fn sync(path: &Path) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    File::open(path).and_then(|file| file.sync_all()).map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_tree_is_synced() {
        let folder = std::env::temp_dir().join(format!("quorate-durable-{}", std::process::id()));
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/b/file"), "text").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("dangling")).unwrap();
        std::os::unix::fs::symlink("..", folder.join("a/loop")).unwrap();
        std::os::unix::fs::symlink("a/b/file", folder.join("link")).unwrap();
        let synced = sync_tree(&folder);
        fs::remove_dir_all(&folder).unwrap();
        synced.unwrap();
        let error = sync_tree(&folder).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
