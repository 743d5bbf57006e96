//! What the server can do with files and directories: by their owners and modes, and by what systemd hides from it.
//!
//! Invariant: nothing is refused that may work. Whom an access control list may admit counts as admitted, and groups
//! are all of the account's.

use super::installed::protect_home;
use super::ACCOUNT;
use anyhow::{bail, Context, Result};
use rustix::fs::getxattr_query;
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rights, as the modes of files have them.
const READ: u32 = 4;
const ENTER: u32 = 1;
const ACCESS_LIST: &str = "system.posix_acl_access";
/// What `ProtectHome` is about.
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];

/// What the server is to do at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    Read,
    Write,
}

/// Of the server's account.
pub struct Access {
    user: u32,
    groups: Vec<u32>,
    /// As in the server's unit.
    protect_home: String,
}

impl Access {
    pub fn look() -> Result<Access> {
        let user = ids("-u")?[0];
        Ok(Access { user, groups: ids("-G")?, protect_home: protect_home() })
    }

    #[cfg(test)]
    pub fn of_user(user: u32) -> Access {
        Access { user, groups: Vec::new(), protect_home: "no".into() }
    }

    pub fn owns(&self, meta: &Metadata) -> bool {
        meta.uid() == self.user
    }

    pub fn may_read(&self, file: &Path, meta: &Metadata) -> bool {
        self.may(file, meta, READ)
    }

    /// Why the server cannot get to a place, which need not be there yet; and what to do.
    pub fn barred(&self, place: &Path, aim: Aim) -> Option<String> {
        let real = real(place);
        let ways = [place, real.as_path()];
        let home = HOMES.iter().find(|home| ways.iter().any(|way| way.starts_with(home)));
        if let Some(home) = home.filter(|_| self.is_kept_from_homes(aim)) {
            return Some(format!(
                "systemd keeps the server out of {home} (ProtectHome={} in its unit): choose another place",
                self.protect_home
            ));
        }
        // Directories before what is in them.
        let on_the_way: BTreeSet<&Path> =
            ways.iter().flat_map(|way| way.ancestors().skip(1)).collect();
        let blocks = |dir: &Path| {
            fs::metadata(dir).is_ok_and(|meta| meta.is_dir() && !self.may(dir, &meta, ENTER))
        };
        let blocked = on_the_way.into_iter().find(|dir| blocks(dir))?.display();
        Some(format!(
            "the server runs as {ACCOUNT}, which may not enter {blocked}: choose another place, or let it in \
             (chmod o+x {blocked})"
        ))
    }

    /// Why the server cannot read a file, if it is there; and what to do.
    pub fn unread(&self, file: &Path) -> Option<String> {
        self.barred(file, Aim::Read).or_else(|| {
            let meta = fs::metadata(file).ok().filter(|meta| !self.may_read(file, meta))?;
            Some(format!(
                "the server runs as {ACCOUNT}, which may not read it (mode {:o}): chown {ACCOUNT} {1}, or, if it is no \
                 secret, chmod o+r {1}",
                meta.mode() & 0o777,
                file.display()
            ))
        })
    }

    fn is_kept_from_homes(&self, aim: Aim) -> bool {
        match &*self.protect_home {
            "yes" | "tmpfs" => true,
            "read-only" => aim == Aim::Write,
            _ => false,
        }
    }

    fn may(&self, path: &Path, meta: &Metadata, right: u32) -> bool {
        let shift = match () {
            () if meta.uid() == self.user => 6,
            () if self.groups.contains(&meta.gid()) => 3,
            () => 0,
        };
        meta.mode() >> shift & right != 0 || getxattr_query(path, ACCESS_LIST).is_ok()
    }
}

/// Numbers of the account, or of its groups.
fn ids(which: &str) -> Result<Vec<u32>> {
    let output = Command::new("id").args([which, ACCOUNT]).output().context("running id")?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.split_whitespace().map(str::parse::<u32>).collect::<Result<Vec<_>, _>>() {
        Ok(ids) if output.status.success() && !ids.is_empty() => Ok(ids),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("id {which} {ACCOUNT}: {}. Nothing was changed", said.trim())
        }
    }
}

/// Without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
    let real = there.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)));
    real.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::fs::Permissions;
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_directory_that_blocks_is_named_also_behind_a_link() {
        let folder = std::env::temp_dir().join(format!("quorate-access-{}", std::process::id()));
        let (closed, file) = (folder.join("closed"), folder.join("closed/libquorate.so"));
        fs::create_dir_all(&closed).unwrap();
        fs::write(&file, "").unwrap();
        let link = folder.join("link");
        let _before = fs::remove_file(&link);
        symlink(&file, &link).unwrap();
        for (path, mode) in [(&folder, 0o755), (&closed, 0o710), (&file, 0o644)] {
            set_mode(path, mode);
        }

        let own = geteuid().as_raw();
        let (owner, stranger) = (Access::of_user(own), Access::of_user(own + 1));
        for path in [&file, &link, &closed.join("not/yet")] {
            assert_eq!(owner.unread(path), None, "{path:?}");
            let told = stranger.unread(path).expect("it is blocked");
            let real = fs::canonicalize(&closed).unwrap();
            assert!(told.contains(&format!("chmod o+x {}", real.display())), "{told}");
        }
        let groups = vec![fs::metadata(&closed).unwrap().gid()];
        let member = Access { groups, ..Access::of_user(own + 1) };
        assert_eq!(member.unread(&link), None);
        set_mode(&closed, 0o755);
        set_mode(&file, 0o640);
        let told = stranger.unread(&link).expect("it is a secret");
        assert!(told.contains("may not read it (mode 640)"), "{told}");
        assert_eq!(stranger.unread(&folder.join("none")), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_the_unit_hides_is_out_of_reach() {
        let barred = |protect_home: &str, place: &str, aim| {
            let access = Access { protect_home: protect_home.into(), ..Access::of_user(0) };
            access.barred(Path::new(place), aim)
        };
        let home = "/home/quorate-nobody/libquorate.so";
        for (protect_home, aim, is_barred) in [
            ("yes", Aim::Read, true),
            ("tmpfs", Aim::Read, true),
            ("read-only", Aim::Read, false),
            ("read-only", Aim::Write, true),
            ("no", Aim::Write, false),
        ] {
            assert_eq!(barred(protect_home, home, aim).is_some(), is_barred, "{protect_home}");
        }
        let told = barred("yes", "/root/quorate.secret", Aim::Read).unwrap();
        assert!(told.contains("out of /root (ProtectHome=yes"), "{told}");
        assert_eq!(barred("yes", "/etc/mysql/quorate.secret", Aim::Read), None);
        assert_eq!(barred("yes", "/homes/quorate.secret", Aim::Read), None);
    }
}
