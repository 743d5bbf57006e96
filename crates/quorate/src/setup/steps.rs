//! What a plan has done, step by step.
//!
//! Invariant: a file is whole under its name, on the disk, with its owner and mode, or it is not there: whatever ends a
//! step in the middle.

use super::installed::{free_port, SOCKET};
use anyhow::{Context, Result};
use quorate_lab::server::Account;
use quorate_live::Secret;
use rustix::fs::{renameat_with, OFlags, RenameFlags, CWD};
use serde_json::{json, Value};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const SECRET_MODE: u32 = 0o600;
pub const LOG_DIR_MODE: u32 = 0o700;
/// Of the file of options, and of directories that lead to the log, whatever the umask is: what the server's account
/// cannot read has no effect, without a word.
const OPTIONS_MODE: u32 = 0o644;
const WAY_MODE: u32 = 0o755;

#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The group's secret, which the other servers get a copy of.
    MakeSecret(PathBuf),
    /// It is there, and the server cannot read it.
    GiveSecret(PathBuf),
    /// The directory of the group's log.
    MakeLogDir(PathBuf),
    /// It is there, and not the server's alone.
    GiveLogDir(PathBuf),
    WriteConfig {
        path: PathBuf,
        text: String,
    },
    /// Systemd holds the server's port.
    FreePort,
}

impl Step {
    pub fn carry_out(&self, account: &Account) -> Result<()> {
        match self {
            // One that has come there meanwhile is that of the group.
            Step::MakeSecret(path) => put(path, rename_to_nothing, |new| {
                Secret::new()?.write(new)?;
                give(new, SECRET_MODE, account)
            }),
            Step::GiveSecret(path) => give(path, SECRET_MODE, account),
            Step::MakeLogDir(path) => {
                make_dirs(path).with_context(|| format!("making {}", path.display()))?;
                give(path, LOG_DIR_MODE, account)
            }
            Step::GiveLogDir(path) => give(path, LOG_DIR_MODE, account),
            Step::WriteConfig { path, text } => {
                put(path, |new, path| fs::rename(new, path), |new| Ok(write_options(new, text)?))
            }
            Step::FreePort => free_port(),
        }
    }

    /// See docs/run/json.md.
    pub fn document(&self) -> Value {
        match self {
            Step::MakeSecret(path) => json!({ "do": "make_secret", "path": path }),
            Step::GiveSecret(path) => json!({ "do": "give_secret", "path": path }),
            Step::MakeLogDir(path) => json!({ "do": "make_log_dir", "path": path }),
            Step::GiveLogDir(path) => json!({ "do": "give_log_dir", "path": path }),
            Step::WriteConfig { path, .. } => json!({ "do": "write_config", "path": path }),
            Step::FreePort => json!({ "do": "disable_unit", "unit": SOCKET }),
        }
    }
}

/// Does not take the place of a file that is there.
fn rename_to_nothing(new: PathBuf, path: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, new, CWD, path, RenameFlags::NOREPLACE)?)
}

/// Puts a file there, with `name`, that `fill` writes under another name.
fn put(
    path: &Path,
    name: impl FnOnce(PathBuf, &Path) -> io::Result<()>,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let write = || -> Result<()> {
        remove(&new)?;
        fill(&new)?;
        File::open(&new)?.sync_all()?;
        Ok(name(new.clone(), path)?)
    };
    let written = write();
    if written.is_err() {
        // The error is what counts.
        let _left = remove(&new);
    }
    written.with_context(|| format!("writing {}, which is as it was", path.display()))?;
    sync_parent(path).with_context(|| format!("syncing the directory of {}", path.display()))
}

/// What a crash left there, too.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write_options(new: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(SECRET_MODE).open(new)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(OPTIONS_MODE))
}

/// Makes it the account's own. The account may have put a link in its place, if the directory is its own: that is not
/// followed.
fn give(path: &Path, mode: u32, account: &Account) -> Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))?;
    account.own_file(&file, path, mode)
}

/// With those that lead there.
fn make_dirs(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().skip(1).take_while(|above| !above.exists()).collect();
    missing.into_iter().rev().try_for_each(|above| make_dir(above, WAY_MODE))?;
    make_dir(dir, LOG_DIR_MODE)
}

fn make_dir(dir: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(LOG_DIR_MODE).create(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(mode))?;
    sync_parent(dir)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// As root, the servers'; else one's own.
    fn account() -> Account {
        Account::choose().or_else(|_| Account::named("root")).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_of_options_can_be_read_by_the_server_and_is_whole_or_as_it_was() {
        let folder = folder("steps-options");
        let (path, new) = (folder.join("70-quorate.cnf"), folder.join("70-quorate.cnf.new"));
        fs::write(&new, "torn by a crash").unwrap();
        let step = Step::WriteConfig { path: path.clone(), text: "[mariadbd]\n".into() };
        step.carry_out(&account()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[mariadbd]\n");
        assert_eq!(mode(&path), 0o644);

        let full = put(&path, rename_to_nothing, |new| {
            fs::write(new, "half of ")?;
            bail!("no space")
        });
        assert!(format!("{:#}", full.unwrap_err()).ends_with("which is as it was: no space"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "[mariadbd]\n");
        assert!(!new.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_secret_is_there_as_a_whole_and_for_the_server_alone() {
        let folder = folder("steps-secret");
        let path = folder.join("quorate.secret");
        Step::MakeSecret(path.clone()).carry_out(&account()).unwrap();
        let made = fs::read_to_string(&path).unwrap();
        assert!(made.ends_with('\n') && made.lines().count() == 2, "{} bytes", made.len());
        assert_eq!(mode(&path), 0o600);
        // One that came there after the plan was made is that of the group.
        assert!(Step::MakeSecret(path.clone()).carry_out(&account()).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), made);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);

        fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
        Step::GiveSecret(path.clone()).carry_out(&account()).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), mode(&path)), (made, 0o600));
        let link = folder.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Step::GiveSecret(link).carry_out(&account()).is_err(), "a link is not followed");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_log_is_the_servers_alone_and_everybody_gets_to_it() {
        let folder = folder("steps-log");
        let log = folder.join("srv/quorate/log");
        Step::MakeLogDir(log.clone()).carry_out(&account()).unwrap();
        let modes = [&folder.join("srv"), &folder.join("srv/quorate"), &log].map(|dir| mode(dir));
        assert_eq!(modes, [0o755, 0o755, 0o700]);
        fs::set_permissions(&log, Permissions::from_mode(0o755)).unwrap();
        Step::GiveLogDir(log.clone()).carry_out(&account()).unwrap();
        assert_eq!(mode(&log), 0o700);
        fs::remove_dir_all(&folder).unwrap();
    }
}
