//! The system account that the servers run as: `mysql` when root starts them, else oneself.

use super::Missing;
use anyhow::{Context, Result};
use rustix::process::geteuid;
use std::fs::{self, File};
use std::os::unix::fs::{chown, fchown, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Debug)]
pub struct Account {
    pub name: String,
    uid: u32,
    gid: u32,
    /// Root starts the servers and they switch to this account themselves (`--user`).
    pub switch: bool,
}

impl Account {
    /// The account for a new cluster.
    pub fn choose() -> Result<Account> {
        if geteuid().is_root() {
            return Account::lookup(|name, _| name == "mysql").ok_or_else(|| {
                Missing(
                    "there is no account `mysql` for the servers to run as (they refuse to run as \
                     root): apt-get install mariadb-server makes it, or run this command as an \
                     ordinary user"
                        .to_owned(),
                )
                .into()
            });
        }
        let own = geteuid().as_raw();
        Account::lookup(|_, uid| uid == own)
            .with_context(|| format!("user id {own} has no name in /etc/passwd"))
    }

    pub fn named(name: &str) -> Result<Account> {
        Account::lookup(|candidate, _| candidate == name)
            .with_context(|| format!("the servers' account {name} is gone from /etc/passwd"))
    }

    /// The MariaDB account that this process may connect as through a unix socket.
    pub fn database_user(&self) -> &str {
        if self.switch {
            "root"
        } else {
            &self.name
        }
    }

    /// Than the one that this process runs as.
    pub fn is_another(&self) -> bool {
        self.switch
    }

    /// Lets a program that does not switch by itself run as this account.
    pub fn run_as(&self, command: &mut Command) {
        if self.switch {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// Makes `path` the account's own, for nobody else to read.
    pub fn own(&self, path: &Path, mode: u32) -> Result<()> {
        self.give(path, Some(self.uid), mode)
    }

    /// As [`Self::own`], of an open file. The account may put a link to another file in the place of a path below its own
    /// directories, and root would give that file away.
    pub fn own_file(&self, file: &File, path: &Path, mode: u32) -> Result<()> {
        if self.switch {
            fchown(file, Some(self.uid), Some(self.gid))
                .with_context(|| format!("giving {} to {}", path.display(), self.name))?;
        }
        file.set_permissions(fs::Permissions::from_mode(mode))
            .with_context(|| format!("setting the mode of {}", path.display()))
    }

    /// Lets the account into `path`, which stays the caller's.
    pub fn admit(&self, path: &Path, mode: u32) -> Result<()> {
        self.give(path, None, mode)
    }

    /// The first directory on the way to `path` that the account may not enter.
    pub fn blocked_at<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let mut directories: Vec<&Path> = path.ancestors().collect();
        directories.reverse();
        directories.into_iter().find(|directory| match fs::metadata(directory) {
            Ok(meta) if meta.is_dir() => {
                let shift = match () {
                    () if meta.uid() == self.uid => 6,
                    () if meta.gid() == self.gid => 3,
                    () => 0,
                };
                self.switch && meta.mode() >> shift & 1 == 0
            }
            // Files are not entered; what does not exist is the caller's to make.
            _ => false,
        })
    }

    fn give(&self, path: &Path, uid: Option<u32>, mode: u32) -> Result<()> {
        if self.switch {
            chown(path, uid, Some(self.gid))
                .with_context(|| format!("giving {} to {}", path.display(), self.name))?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .with_context(|| format!("setting the mode of {}", path.display()))
    }

    fn lookup(matches: impl Fn(&str, u32) -> bool) -> Option<Account> {
        let passwd = fs::read_to_string("/etc/passwd").ok()?;
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            let switch = geteuid().as_raw() != uid;
            matches(name, uid).then(|| Account { name: name.to_owned(), uid, gid, switch })
        })
    }
}
