//! Finding what must be installed: the server, its tools, our provider.

use super::{Account, Missing};
use anyhow::{bail, Context, Result};
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Directories that an ordinary user's PATH often lacks.
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
const PROVIDER: &str = "libquorate.so";

/// Programs that nodes need beside the server, with Debian's packages.
const NEEDED: [(&str, &str); 7] = [
    ("mariadb-install-db", "mariadb-server-core"),
    ("mariadb", "mariadb-client-core"),
    ("mariadb-backup", "mariadb-backup"),
    ("wsrep_sst_mariabackup", "mariadb-server"),
    ("socat", "socat"),
    // Scripts that check certificates read these with it.
    ("openssl", "openssl"),
    ("setsid", "util-linux"),
];

pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM_PROGRAMS.iter().map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

pub fn find_mariadbd() -> Result<PathBuf> {
    find_program("mariadbd").ok_or_else(|| missing("mariadbd", &["mariadb-server"]))
}

/// One error that names all packages which are missing.
pub fn require_programs() -> Result<()> {
    let absent: Vec<_> = NEEDED.iter().filter(|(name, _)| find_program(name).is_none()).collect();
    if absent.is_empty() {
        return Ok(());
    }
    let programs: Vec<&str> = absent.iter().map(|(program, _)| *program).collect();
    let packages: Vec<&str> = absent.iter().map(|(_, package)| *package).collect();
    Err(missing(&programs.join(", "), &packages))
}

/// The provider given, or ours: beside this program, or in `../lib/quorate`.
pub fn find_provider(asked: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = asked {
        let path = std::path::absolute(path)?;
        if !path.is_file() {
            bail!("provider {} does not exist", path.display());
        }
        return Ok(path);
    }
    let program = env::current_exe().context("finding this program's own path")?;
    let beside = program.parent().unwrap_or(Path::new("/"));
    let installed = beside.parent().unwrap_or(Path::new("/")).join("lib/quorate");
    let places = [beside.join(PROVIDER), installed.join(PROVIDER)];
    places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let looked: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
        Missing(format!(
            "{PROVIDER} is neither {}: install Debian's package quorate-provider, or build it (cargo build --release), \
             or say where it is (--provider)",
            looked.join(" nor ")
        ))
        .into()
    })
}

/// Where servers can load the provider from: in place, or a copy in `folder` if their account
/// cannot read it there (below root's home, typically).
pub fn readable_provider(source: &Path, folder: &Path, account: &Account) -> Result<PathBuf> {
    const READ: u32 = 4;
    within_reach(source, folder, account, READ)
}

/// Where the account can run this very program from, as [`readable_provider`]: loggers run it.
pub fn runnable_program(folder: &Path, account: &Account) -> Result<PathBuf> {
    const READ_AND_RUN: u32 = 5;
    let program = env::current_exe().context("finding this program's own path")?;
    within_reach(&program, folder, account, READ_AND_RUN)
}

/// `source`, if everybody has these rights to it, or a copy in `folder` that the account has.
fn within_reach(source: &Path, folder: &Path, account: &Account, rights: u32) -> Result<PathBuf> {
    let mode = source
        .metadata()
        .with_context(|| format!("reading {}", source.display()))?
        .permissions()
        .mode();
    if account.blocked_at(source).is_none() && mode & rights == rights {
        return Ok(source.to_owned());
    }
    let name = source.file_name().with_context(|| format!("{} is no file", source.display()))?;
    let copy = folder.join(name);
    let unfinished = copy.with_extension("new");
    // Renamed into place: a running server keeps the file that it has mapped.
    fs::create_dir_all(folder)
        .and_then(|()| fs::copy(source, &unfinished).map(drop))
        .and_then(|()| fs::rename(&unfinished, &copy))
        .with_context(|| format!("copying {} to {}", source.display(), copy.display()))?;
    account.admit(folder, 0o750)?;
    const OWNER_WRITES: u32 = 0o200;
    account.admit(&copy, OWNER_WRITES | rights << 6 | rights << 3)?;
    Ok(copy)
}

/// An error that names what is to be installed.
pub fn missing(programs: &str, packages: &[&str]) -> anyhow::Error {
    let message =
        format!("{programs}: not installed; on Debian: apt-get install {}", packages.join(" "));
    Missing(message).into()
}
