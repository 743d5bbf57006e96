//! Wall clocks that can be set, one for each server.
//!
//! The kernel keeps one wall clock for all (its time namespaces have only the others), so the
//! server is given another by `libfaketime`: date and time jump, the monotonic clocks and the
//! times of files stay as they are. A change takes up to a second to be noticed.

use crate::leftovers::names_in;
use crate::server::{Missing, Node};
use anyhow::{Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
/// Where distributions keep libraries: with and without a folder for the architecture.
const FOLDERS: [&str; 3] = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];

/// What the library keeps for each process (and for those that a process under another account
/// starts, such as the scripts of a state transfer), and leaves there when the process is killed.
const KEPT: [&str; 2] = ["faketime_shm_", "sem.faketime_sem_"];
const SHARED_MEMORY: &str = "/dev/shm";

/// The clocks of a cluster. Of what its processes leave, nothing is there when this is dropped:
/// after they are gone.
pub(super) struct Clocks {
    library: PathBuf,
    since: SystemTime,
}

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

impl Clocks {
    pub fn find() -> Result<Clocks> {
        Ok(Clocks { library: library()?, since: SystemTime::now() })
    }

    /// Sets a server's clock this many seconds before (negative) or after the machine's.
    pub fn set(&self, node: &Node, offset_seconds: i64) -> Result<()> {
        let path = file(node);
        let new = path.with_extension("new");
        // Replaced as a whole: it is read at any time.
        fs::write(&new, format!("{offset_seconds:+}\n"))
            .and_then(|()| fs::rename(&new, &path))
            .with_context(|| format!("writing {}", path.display()))
    }

    /// Makes a server to be started follow the node's clock.
    pub fn follow(&self, command: &mut Command, node: &Node) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", file(node))
            .env("FAKETIME_CACHE_DURATION", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1");
    }

    /// Deletes what processes that are gone have left since this was made: the next of the same
    /// number could not start.
    pub fn sweep(&self) -> Result<()> {
        let folder = Path::new(SHARED_MEMORY);
        let left = names_in(folder)?.into_iter().filter(|name| is_of_the_gone(name));
        left.map(|name| folder.join(name)).try_for_each(|path| {
            let made = path.metadata().and_then(|metadata| metadata.modified());
            let deleted = match made {
                Ok(made) if made < self.since => Ok(()),
                made => made.and_then(|_| fs::remove_file(&path)),
            };
            match deleted {
                // Another run that sweeps was faster.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                deleted => deleted.with_context(|| format!("deleting {}", path.display())),
            }
        })
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        if let Err(error) = self.sweep() {
            eprintln!("{error:#}");
        }
    }
}

/// Whether a file in shared memory belongs to a process that there is no longer.
fn is_of_the_gone(name: &str) -> bool {
    KEPT.iter()
        .filter_map(|kept| name.strip_prefix(kept)?.parse::<u32>().ok())
        .any(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

fn file(node: &Node) -> PathBuf {
    node.dir.join("clock")
}
