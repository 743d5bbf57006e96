//! The group's secret and the directory of its log: what is there already, and what has to be done about it.
//!
//! Invariant: nothing is given to the server's account but what members take for a secret, and a directory that is
//! empty or holds a log.

use super::access::{Access, Aim};
use super::steps::LOG_DIR_MODE;
use super::{Step, ACCOUNT};
use anyhow::{bail, Context, Result};
use quorate_live::{Credential, GroupError, Privilege};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What each log has.
const META: &str = "meta";
/// What a log passes over in a directory that it is to begin in: beginnings of its own, and what a new file system has.
const HARMLESS: [&str; 3] = ["lock", "meta.tmp", "lost+found"];

/// `first`: of a group that begins.
pub fn secret(file: &Path, first: bool, access: &Access) -> Result<Option<Step>> {
    let shown = file.display();
    if let Some(why) = access.barred(file, Aim::Read) {
        bail!("the secret {shown}: {why}. Nothing was changed");
    }
    let meta = match fs::metadata(file) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if first {
                return Ok(Some(Step::MakeSecret(file.to_owned())));
            }
            bail!(
                "{shown} is not there: nothing was changed. Copy it from the server that was set up with --first, to \
                 the same place (scp -p THAT-SERVER:{shown} {shown}), and run this again"
            );
        }
        Err(error) => return Err(error).with_context(|| format!("looking at {shown}")),
    };
    // As members read it.
    match Credential::derive("setup", Privilege::Read, file) {
        Ok(_) => {}
        Err(error @ GroupError::SecretFile { .. }) => {
            let another = match first {
                true => "If no other server has a copy of it, delete it, and run this again: it makes another one",
                false => "The server that was set up with --first has a good one: copy it again (scp -p)",
            };
            bail!("{error}. {another}");
        }
        Err(error) => return Err(error.into()),
    }
    if access.may_read(file, &meta) {
        return Ok(None);
    }
    let file = fs::canonicalize(file).with_context(|| format!("looking at {shown}"))?;
    Ok(Some(Step::GiveSecret(file)))
}

pub fn log_dir(dir: &Path, access: &Access) -> Result<Option<Step>> {
    let shown = dir.display();
    if let Some(why) = access.barred(dir, Aim::Write) {
        bail!("the directory of the log, {shown}: {why} (--log-dir). Nothing was changed");
    }
    let meta = match fs::metadata(dir) {
        Ok(meta) if meta.is_dir() => meta,
        Ok(_) => bail!("--log-dir {shown} is no directory: nothing was changed. Name another one"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Some(Step::MakeLogDir(dir.to_owned())));
        }
        Err(error) => return Err(error).with_context(|| format!("looking at {shown}")),
    };
    let names = names(dir).with_context(|| format!("listing {shown}"))?;
    let other = names.iter().find(|name| !HARMLESS.contains(&name.as_str()));
    if let Some(other) = other.filter(|_| !holds_log(dir)) {
        bail!(
            "{shown} is no place for the group's log: it holds {other}, and no log. Nothing was changed. Name an \
             empty directory, or one that does not exist yet: --log-dir {}",
            dir.join("quorate").display()
        );
    }
    let is_unread = |name: &&String| {
        let file = dir.join(name);
        let meta = fs::symlink_metadata(&file).ok().filter(|meta| meta.is_file());
        meta.is_some_and(|meta| !access.may_read(&file, &meta))
    };
    if let Some(unread) = names.iter().find(is_unread) {
        bail!(
            "{shown} holds the group's log, and the server's account, {ACCOUNT}, may not read its file {unread}: \
             nothing was changed. Give all of it to that account (chown -R {ACCOUNT} {shown}), and run this again"
        );
    }
    if access.owns(&meta) && meta.mode() & 0o777 == LOG_DIR_MODE {
        return Ok(None);
    }
    let dir = fs::canonicalize(dir).with_context(|| format!("looking at {shown}"))?;
    Ok(Some(Step::GiveLogDir(dir)))
}

/// Of a server that has been started as a member: whether it has joined, its group knows.
pub fn holds_log(dir: &Path) -> bool {
    dir.join(META).is_file()
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_live::Secret;
    use rustix::process::geteuid;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        set_mode(&folder, 0o755);
        fs::canonicalize(folder).unwrap()
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// Of whoever runs this test, and of somebody else.
    fn accounts() -> [Access; 2] {
        let own = geteuid().as_raw();
        [own, own + 1].map(Access::of_user)
    }

    fn told(refused: Result<Option<Step>>) -> String {
        refused.expect_err("refused").to_string()
    }

    #[test]
    fn a_secret_is_made_or_given_or_refused() {
        let folder = folder("place-secret");
        let [own, other] = accounts();
        let path = folder.join("quorate.secret");
        let absent = told(secret(&path, false, &own));
        assert!(absent.contains("nothing was changed") && absent.contains("scp -p"), "{absent}");
        assert_eq!(secret(&path, true, &own).unwrap(), Some(Step::MakeSecret(path.clone())));

        Secret::new().unwrap().write(&path).unwrap();
        assert_eq!(secret(&path, false, &own).unwrap(), None);
        assert_eq!(secret(&path, false, &other).unwrap(), Some(Step::GiveSecret(path.clone())));
        set_mode(&path, 0o644);
        let shown = told(secret(&path, false, &other));
        assert!(shown.contains("chmod 600"), "{shown}");

        set_mode(&path, 0o600);
        fs::write(&path, "").unwrap();
        let torn = told(secret(&path, true, &own));
        assert!(torn.contains("it holds no secret") && torn.contains("delete it"), "{torn}");
        let torn = told(secret(&path, false, &own));
        assert!(torn.contains("it holds no secret") && torn.contains("scp -p"), "{torn}");
        set_mode(&folder, 0o700);
        let blocked = told(secret(&path, false, &other));
        assert!(blocked.contains(&format!("chmod o+x {}", folder.display())), "{blocked}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_directory_is_given_if_it_is_empty_or_holds_a_log() {
        let folder = folder("place-log");
        let [own, other] = accounts();
        let log = folder.join("log");
        assert_eq!(log_dir(&log, &other).unwrap(), Some(Step::MakeLogDir(log.clone())));
        // A new file system.
        fs::create_dir_all(log.join("lost+found")).unwrap();
        set_mode(&log, 0o755);
        let given = || Some(Step::GiveLogDir(log.clone()));
        assert_eq!(log_dir(&log, &own).unwrap(), given());
        set_mode(&log, 0o700);
        assert_eq!(log_dir(&log, &own).unwrap(), None);
        assert_eq!(log_dir(&log, &other).unwrap(), given());

        let file = |name: &str, mode: u32| {
            fs::write(log.join(name), "").unwrap();
            set_mode(&log.join(name), mode);
        };
        file("README", 0o644);
        let taken = told(log_dir(&log, &other));
        let instead = format!("--log-dir {}", log.join("quorate").display());
        assert!(taken.contains("it holds README") && taken.ends_with(&instead), "{taken}");
        assert!(!holds_log(&log));
        file("meta", 0o644);
        assert!(holds_log(&log));
        assert_eq!(log_dir(&log, &other).unwrap(), given());
        // As root has copied it.
        file("meta", 0o600);
        let unread = told(log_dir(&log, &other));
        assert!(unread.contains("file meta") && unread.contains("chown -R"), "{unread}");
        assert_eq!(log_dir(&log, &own).unwrap(), None);
        assert!(told(log_dir(&log.join("meta"), &own)).contains("is no directory"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_belongs_to_the_system_is_no_log() {
        let [own, _] = accounts();
        for dir in ["/", "/etc"] {
            let refused = told(log_dir(Path::new(dir), &own));
            assert!(refused.contains("is no place for the group's log"), "{refused}");
        }
    }
}
