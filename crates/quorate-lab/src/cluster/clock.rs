//! Wall clocks that can be set, one for each server.
//!
//! The kernel keeps one wall clock for all (its time namespaces have only the others), so the
//! server is given another by `libfaketime`: date and time jump, the monotonic clocks and the
//! times of files stay as they are. A change takes up to a second to be noticed.

use crate::server::{Missing, Node};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
/// Where distributions keep libraries: with and without a folder for the architecture.
const FOLDERS: [&str; 3] = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];

/// The library, found before anything is made.
pub(super) fn library() -> Result<PathBuf> {
    let within = |folder: &Path| {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let folders = FOLDERS.iter().map(Path::new);
    folders
        .flat_map(|folder| std::iter::once(folder.to_owned()).chain(within(folder)))
        .map(|folder| folder.join(LIBRARY))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            let text = "wall clocks can be set with libfaketime only, which is not installed; on \
                        Debian: apt-get install libfaketime";
            Missing(text.to_owned()).into()
        })
}

/// The library keeps a segment of shared memory and a semaphore for each process, and leaves those
/// of one that was killed. What was started by the process uses the same.
pub(super) fn forget(pid: i32) -> Result<()> {
    for name in ["faketime_shm_", "sem.faketime_sem_"] {
        let path = Path::new("/dev/shm").join(format!("{name}{pid}"));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("deleting {}", path.display()))
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sets a server's clock this many seconds before (negative) or after the machine's.
pub(super) fn set(node: &Node, offset_seconds: i64) -> Result<()> {
    let path = file(node);
    let new = path.with_extension("new");
    // Replaced as a whole: it is read at any time.
    fs::write(&new, format!("{offset_seconds:+}\n"))
        .and_then(|()| fs::rename(&new, &path))
        .with_context(|| format!("writing {}", path.display()))
}

/// Makes a server to be started follow the node's clock.
pub(super) fn follow(command: &mut Command, node: &Node, library: &Path) {
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", file(node))
        .env("FAKETIME_CACHE_DURATION", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("NO_FAKE_STAT", "1");
}

fn file(node: &Node) -> PathBuf {
    node.dir.join("clock")
}
