//! Finding, checking and locking a cluster's directory.

use super::config::EXTRA;
use super::{Account, State};
use anyhow::{bail, Context, Result};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const LOCK: &str = ".lock";
const SYSTEM_DIR: &str = "/var/lib/quorate";
/// Longest path of a unix socket (`sun_path`, with its ending zero).
const SOCKET_PATH_MAX: usize = 107;

/// Where the cluster is (or will be made): what the user said, else `./quorate-data`, else
/// [`SYSTEM_DIR`] when only that holds a cluster, or when the servers' account could not enter
/// the current directory (root's home, typically).
pub fn resolve_dir(asked: Option<&Path>) -> Result<PathBuf> {
    if let Some(dir) = asked {
        return std::path::absolute(dir).with_context(|| format!("directory {}", dir.display()));
    }
    let here = std::path::absolute("quorate-data").context("the current directory is gone")?;
    let system = PathBuf::from(SYSTEM_DIR);
    if State::exists(&here) {
        return Ok(here);
    }
    if State::exists(&system) {
        return Ok(system);
    }
    let reachable = Account::choose().map_or(true, |account| account.blocked_at(&here).is_none());
    Ok(if reachable { here } else { system })
}

/// Refuses what cannot work or is not ours, then makes the directory if it does not exist.
pub fn prepare(dir: &Path, account: &Account) -> Result<()> {
    let shown = dir.display();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@,".contains(c);
    if !dir.to_str().is_some_and(|text| text.chars().all(plain)) {
        bail!(
            "the path {shown} has a character that server options cannot carry: choose a --dir \
               of letters, digits and /._-+@,"
        );
    }
    let longest = dir.join("node9/mariadb.sock");
    if longest.as_os_str().len() > SOCKET_PATH_MAX {
        bail!(
            "the path {shown} is too long: a socket path has at most {SOCKET_PATH_MAX} bytes; \
               choose a shorter --dir"
        );
    }
    if let Some(blocked) = account.blocked_at(dir) {
        bail!(
            "the servers run as {} and may not enter {}: choose another --dir, such as \
               {SYSTEM_DIR}, or allow it (chmod o+x {1})",
            account.name,
            blocked.display()
        );
    }
    if !State::exists(dir) {
        match fs::read_dir(dir) {
            Ok(entries) => {
                // A lock is left where an earlier command failed before it made anything; options
                // may be written before the cluster is made.
                let known = [OsStr::new(LOCK), OsStr::new(EXTRA)];
                if entries.flatten().any(|entry| !known.contains(&&*entry.file_name())) {
                    bail!(
                        "{shown} is not empty and holds no cluster: it is left alone; choose \
                           another --dir, or empty it"
                    );
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::create_dir_all(dir)
                    .with_context(|| format!("making the cluster's directory {shown}"))?
            }
            Err(error) => return Err(error).with_context(|| format!("reading {shown}")),
        }
    }
    account.admit(dir, 0o750)
}

/// Held while processes are started or stopped, so that two commands do not start a node twice.
/// The kernel drops it with the process.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    pub fn take(dir: &Path) -> Result<Lock> {
        let path = dir.join(LOCK);
        let file = File::create(&path).with_context(|| format!("opening {}", path.display()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                eprintln!("another quorate command works on {}; waiting for it", dir.display());
                flock(&file, FlockOperation::LockExclusive).context("waiting for the lock")?;
            }
            Err(error) => return Err(error).with_context(|| format!("locking {}", path.display())),
        }
        Ok(Lock { _file: file })
    }
}
