//! MariaDB's test suites as its runner is to find them: with private keys that are private.
//!
//! The package installs the keys of its tests for everybody to read, and Quorate refuses such keys. The runner takes
//! all that it needs from around the directory that it is started in; so it is started in a copy, which is made of
//! symbolic links, but for those keys.

use anyhow::{Context, Result};
use quorate_lab::leftovers::clear;
use quorate_lab::server::Account;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const SHARE: &str = "/usr/share/mysql";
const SUITES: &str = "mysql-test";
/// Where the tests have their keys.
const DATA: &str = "std_data";
const KEY_MARK: &[u8] = b"PRIVATE KEY-----";
/// What the runner looks for beside `share`.
const PROGRAMS: [&str; 3] = ["bin", "lib", "sbin"];

/// The runner, if the package is installed.
pub fn runner() -> PathBuf {
    Path::new(SHARE).join(SUITES).join("mariadb-test-run")
}

/// Makes the copy in `dir`, anew, with keys that `account` alone may read; returns where the runner is to be started.
///
/// # Errors
/// What could not be read, made or linked.
pub fn make(dir: &Path, account: &Account) -> Result<PathBuf> {
    clear(dir)?;
    for name in PROGRAMS {
        link(&Path::new("/usr").join(name), dir)?;
    }
    let (share, suites) = (Path::new(SHARE), Path::new(SHARE).join(SUITES));
    let copy = dir.join("share/mysql");
    link_all(share, &copy, |entry| entry != suites)?;
    let data = suites.join(DATA);
    link_all(&suites, &copy.join(SUITES), |entry| entry != data)?;
    mirror(&data, &copy.join(SUITES).join(DATA), account)?;
    Ok(copy.join(SUITES))
}

/// Links to all files of `from`, in a directory for each of its own; but a copy of each key.
fn mirror(from: &Path, to: &Path, account: &Account) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in entries(from)? {
        let own = to.join(name(&entry)?);
        if entry.is_dir() {
            mirror(&entry, &own, account)?;
        } else if is_key(&entry) {
            fs::copy(&entry, &own).with_context(|| format!("copying {}", entry.display()))?;
            account.own(&own, 0o600)?;
        } else {
            link(&entry, to)?;
        }
    }
    Ok(())
}

fn is_key(path: &Path) -> bool {
    let marked = |text: Vec<u8>| text.windows(KEY_MARK.len()).any(|part| part == KEY_MARK);
    path.extension().is_some_and(|end| end == "pem" || end == "key")
        && fs::read(path).is_ok_and(marked)
}

/// Links to those entries of `from` that are `wanted`, in the new directory `to`.
fn link_all(from: &Path, to: &Path, wanted: impl Fn(&Path) -> bool) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    entries(from)?.iter().filter(|entry| wanted(entry)).try_for_each(|entry| link(entry, to))
}

fn link(entry: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    let own = to.join(name(entry)?);
    symlink(entry, &own).with_context(|| format!("linking {}", own.display()))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("reading {}", dir.display());
    let all = fs::read_dir(dir).with_context(reading)?.map(|entry| Ok(entry?.path()));
    all.collect::<Result<_>>().with_context(reading)
}

fn name(path: &Path) -> Result<&OsStr> {
    path.file_name().with_context(|| format!("{} has no name", path.display()))
}
