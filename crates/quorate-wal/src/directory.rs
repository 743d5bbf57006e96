//! Is this directory ours, and is it free?

use crate::disk::Disk;
use crate::error::{IoContext, WalError};
use crate::meta::{MetaFile, META_NAME, META_TMP_NAME};
use crate::seal::DiskKeys;
use crate::segment::parse_file_name;
use rustix::fs::{flock, FlockOperation};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const LOCK_NAME: &str = "lock";
/// What may stand in a directory that counts as empty: our own beginnings, and what a file system
/// of its own brings along.
const HARMLESS: [&str; 3] = [LOCK_NAME, META_TMP_NAME, "lost+found"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Contents {
    Empty,
    Log,
}

/// Refuses a directory with other contents. Changes nothing.
pub(crate) fn classify(disk: &dyn Disk) -> Result<Contents, WalError> {
    let names = disk.list().doing("list", disk.dir())?;
    if names.iter().any(|name| name == META_NAME) {
        return Ok(Contents::Log);
    }
    if names.iter().any(|name| parse_file_name(name).is_some()) {
        return Err(WalError::Missing { file: disk.path(META_NAME) });
    }
    match names.iter().find(|name| !HARMLESS.contains(&name.as_str())) {
        None => Ok(Contents::Empty),
        Some(name) => Err(WalError::Foreign {
            dir: disk.dir().to_path_buf(),
            what: format!("it is not empty, it holds `{name}`, and has no file `{META_NAME}`"),
        }),
    }
}

/// Held while the log is open; released when dropped, or when the process ends however it ends.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the directory, which is created if it may be. A foreign one is left untouched.
    pub(crate) fn take(disk: &dyn Disk, create: bool) -> Result<Lock, WalError> {
        let dir = disk.dir();
        if !dir.exists() {
            if !create {
                return Err(WalError::NoLog { dir: dir.to_path_buf() });
            }
            fs::create_dir_all(dir).doing("create", dir)?;
        }
        match classify(disk)? {
            Contents::Empty if !create => {
                return Err(WalError::NoLog { dir: dir.to_path_buf() });
            }
            Contents::Empty => sync_names(dir).doing("sync the name of", dir)?,
            Contents::Log => {
                // Whatever else is wrong may be a write of the present owner; and keys come later.
                let foreign =
                    |e: &_| matches!(e, WalError::Foreign { .. } | WalError::Version { .. });
                if let Some(error) = MetaFile::open(disk, DiskKeys::default()).err().filter(foreign)
                {
                    return Err(error);
                }
            }
        }
        let path = disk.path(LOCK_NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .doing("open", &path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).doing("read", &path)?;
                let pid = if pid.is_empty() { "unknown" } else { pid.trim() }.to_string();
                return Err(WalError::InUse { dir: dir.to_path_buf(), pid });
            }
            Err(error) => return Err(io::Error::from(error)).doing("lock", &path),
        }
        // Only information for whoever is refused: it need not be durable.
        file.set_len(0).doing("write", &path)?;
        writeln!(file, "{}", std::process::id()).doing("write", &path)?;
        Ok(Lock { _file: file })
    }
}

/// The directory, and those that it is in, may just have been made, here or by whoever starts this.
fn sync_names(dir: &Path) -> io::Result<()> {
    let (dir, disk) = (dir.canonicalize()?, fs::metadata(dir)?.dev());
    for parent in dir.ancestors().skip(1) {
        if fs::metadata(parent)?.dev() != disk {
            break; // what something is mounted on was there before
        }
        match File::open(parent).and_then(|folder| folder.sync_all()) {
            // Who may not read it has not made anything there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}
