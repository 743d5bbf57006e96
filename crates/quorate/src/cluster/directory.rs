//! Finding, checking and locking a cluster's directory.

use super::config::EXTRA;
use super::{Account, State};
use crate::failure::{Failure, TIMED_OUT};
use anyhow::{bail, Context, Result};
use rustix::fs::{flock, FlockOperation};
use rustix::io::{retry_on_intr, Errno};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

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
/// The kernel drops it with the process. The file has the pid of its holder, for whoever waits.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits no longer than this for a command that has it.
    pub fn take(dir: &Path, limit_secs: u64) -> Result<Lock> {
        let path = dir.join(LOCK);
        // What it says of its holder stays until there is another one.
        let opened = File::options().write(true).create(true).truncate(false).open(&path);
        let file = opened.with_context(|| format!("opening {}", path.display()))?;
        let locking = || format!("locking {}", path.display());
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock::of(file)),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error).with_context(locking),
        }
        let dir = dir.display();
        eprintln!("{} works on {dir}; waiting for it, {limit_secs} s at most", holder(&path));
        match await_lock(file, Duration::from_secs(limit_secs)).with_context(locking)? {
            Some(file) => Ok(Lock::of(file)),
            None => {
                let message = format!(
                    "{} still works on {dir} after {limit_secs} s, so this command has done nothing: wait until that \
                     one has ended, or end it; or let this one wait longer (--timeout)",
                    holder(&path)
                );
                Err(Failure::new(TIMED_OUT, message).into())
            }
        }
    }

    fn of(mut file: File) -> Lock {
        // It is only told to people: a disk that is full keeps nobody from stopping nodes.
        let _told = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Lock { _file: file }
    }
}

/// The file, once it is locked; `None` if `limit` passed first. Nobody can break off waiting for a lock, so a thread of
/// its own does it: where that comes too late, the lock goes with the file.
fn await_lock(file: File, limit: Duration) -> io::Result<Option<File>> {
    let (taken, arrival) = channel();
    thread::spawn(move || {
        let locked = retry_on_intr(|| flock(&file, FlockOperation::LockExclusive));
        let _late = taken.send(locked.map(|()| file));
    });
    match arrival.recv_timeout(limit) {
        Ok(locked) => Ok(Some(locked?)),
        Err(_) => Ok(None),
    }
}

/// Who has the lock, as far as it says so.
fn holder(path: &Path) -> String {
    let pid = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u32>().ok());
    let named = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    format!("another quorate command{named}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::exit_code;

    #[test]
    fn a_lock_is_waited_for_no_longer_than_the_limit() {
        let dir = std::env::temp_dir().join(format!("quorate-lock-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let first = Lock::take(&dir, 0).unwrap();
        let refused = Lock::take(&dir, 0).unwrap_err();
        assert_eq!(exit_code(&refused), TIMED_OUT);
        let told = refused.to_string();
        let by = format!("another quorate command (pid {}) still works on", std::process::id());
        assert!(told.starts_with(&by) && told.contains("has done nothing"), "{told}");

        let waiting = thread::spawn({
            let dir = dir.clone();
            move || Lock::take(&dir, 60).map(drop)
        });
        drop(first);
        waiting.join().unwrap().unwrap();
        // Who gave up waiting has not kept it.
        Lock::take(&dir, 60).unwrap();
        fs::remove_dir_all(dir).unwrap();
    }
}
