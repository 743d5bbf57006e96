//! The mark in a log directory that is an older state of itself (`lineage` in quorate-group): with
//! each further start its count of starts would grow, until nobody could tell any more.

use crate::error::GroupError;
use quorate_group::StartError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const NAME: &str = "rolled-back";

/// Refuses a directory that was marked by an earlier start.
pub(crate) fn check(dir: &Path) -> Result<(), GroupError> {
    match fs::read_to_string(path(dir)) {
        Ok(reason) => Err(StartError::RolledBack { dir: dir.display().to_string(), reason }.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(GroupError::Mark { path: path(dir), source }),
    }
}

/// Durable when it returns.
pub(crate) fn leave(dir: &Path, reason: &str) -> Result<(), GroupError> {
    write(dir, reason).map_err(|source| GroupError::Mark { path: path(dir), source })
}

fn write(dir: &Path, reason: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path(dir))?;
    file.write_all(reason.as_bytes())?;
    file.sync_all()?;
    File::open(dir)?.sync_all()
}

fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}
