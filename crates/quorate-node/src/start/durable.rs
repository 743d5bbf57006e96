//! Making a folder of files durable.
//!
//! The server's state transfer scripts do not sync what they write, and the server then opens it
//! as data that was there before. A node that calls itself a member on such data, and loses its
//! power within the next half minute, has files that are empty; if that happens to all members
//! that were filled lately, the data is nowhere. So whoever received a state syncs it before the
//! group may count on it.
//!
//! By then the server has opened its files, and holds locks (`fcntl`) on some, which keep a second
//! server off them. A process that closes a file, however it had opened it, loses its locks on it:
//! so the files are synced by another process, sync(1). `syncfs` would open none of them; but the
//! kernel does not pass it to file systems in user space (it succeeds, and nothing is durable), and
//! links may lead to other file systems.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// So that the arguments of one process stay far below what the kernel takes.
const AT_ONCE: usize = 200;

/// Syncs all files and directories below `folder`, and itself. What vanishes meanwhile (a
/// temporary file of the server's) needs no sync.
pub fn sync_tree(folder: &Path) -> io::Result<()> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.chunks(AT_ONCE).try_for_each(|some| sync(some.to_vec()))
}

/// Directories after what they hold.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Links are not followed to directories: those are somebody else's, or a loop.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => match collect(&path, paths) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                other => other?,
            },
            Ok(kind) if kind.is_file() || kind.is_symlink() && path.is_file() => paths.push(path),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    paths.push(folder.to_owned());
    Ok(())
}

fn sync(mut paths: Vec<PathBuf>) -> io::Result<()> {
    loop {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("sync(1): {error}"));
        let output = Command::new("sync").arg("--").args(&paths).output().map_err(named)?;
        if output.status.success() {
            return Ok(());
        }
        let count = paths.len();
        paths.retain(|path| path.exists());
        if paths.len() == count {
            return Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::FlockOperation;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

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

    #[test]
    fn what_vanishes_is_passed_over_and_what_cannot_be_synced_is_not() {
        let folder = std::env::temp_dir().join(format!("quorate-vanished-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (there, gone) = (folder.join("there"), folder.join("gone"));
        fs::write(&there, "text").unwrap();
        let synced = sync(vec![gone, there]);
        // It is there, and is no file that could be synced.
        let error = sync(vec!["/proc/self/status".into()]).unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
        synced.unwrap();
        assert!(error.to_string().contains("/proc/self/status"), "{error}");
    }

    #[test]
    fn the_servers_locks_stay() {
        let folder = std::env::temp_dir().join(format!("quorate-locked-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = File::create(folder.join("ibdata1")).unwrap();
        rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let inode = format!(":{} ", file.metadata().unwrap().ino());
        let held = || {
            let locks = fs::read_to_string("/proc/locks").unwrap();
            locks.lines().any(|line| line.contains("POSIX") && line.contains(&inode))
        };
        assert!(held());
        let synced = sync_tree(&folder);
        let held = held();
        fs::remove_dir_all(&folder).unwrap();
        synced.unwrap();
        assert!(held);
    }
}
