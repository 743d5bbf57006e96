//! MariaDB's test suites as its runner is to find them: with private keys that are private.
//!
//! The package installs the keys of its tests for everybody to read, and Quorate refuses such keys. And a warning fails
//! a test, unless the suite expects it: it expects many of Galera's. The runner takes all that it needs from around the
//! directory that it is started in; so it is started in a copy, which is made of symbolic links, but for those keys and
//! for what the suite expects.

use anyhow::{ensure, Context, Result};
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
const SUITE: &str = "suite/galera";
const SUITE_FILE: &str = "suite.pm";
/// What it expects follows.
const EXPECTED_MARK: &str = "push @::global_suppressions,\n  (\n";
/// That a test means what Quorate warns of, as patterns: any certificate of a CA counts; suites of no effect.
const EXPECTED: [&str; 2] = [
    r"WSREP: Any certificate that the CA of socket\.ssl_ca has signed is let in as a member",
    r"WSREP: socket\.ssl_cipher=.* has no effect",
];
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
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    for name in PROGRAMS {
        link(&Path::new("/usr").join(name), dir)?;
    }
    let (share, suites) = (Path::new(SHARE), Path::new(SHARE).join(SUITES));
    let copy = dir.join("share/mysql");
    link_all(share, &copy, |entry| entry != suites)?;
    let (data, all) = (suites.join(DATA), suites.join("suite"));
    let copy = copy.join(SUITES);
    link_all(&suites, &copy, |entry| entry != data && entry != all)?;
    mirror(&data, &copy.join(DATA), account)?;
    let suite = suites.join(SUITE);
    link_all(&all, &copy.join("suite"), |entry| entry != suite)?;
    let expects = suite.join(SUITE_FILE);
    link_all(&suite, &copy.join(SUITE), |entry| entry != expects)?;
    let text = fs::read_to_string(&expects);
    let text = text.with_context(|| format!("reading {}", expects.display()))?;
    let more: String = EXPECTED.iter().map(|pattern| format!("     qr({pattern}),\n")).collect();
    ensure!(text.contains(EXPECTED_MARK), "{} does not say what it expects", expects.display());
    let own = copy.join(SUITE).join(SUITE_FILE);
    fs::write(&own, text.replacen(EXPECTED_MARK, &format!("{EXPECTED_MARK}{more}"), 1))
        .with_context(|| format!("writing {}", own.display()))?;
    Ok(copy)
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
