//! The mark in a log directory that is an older state of itself (`lineage` in quorate-group): with
//! each further start its count of starts would grow, until nobody could tell any more.

use crate::error::GroupError;
use crate::private_file;
use quorate_group::StartError;
use quorate_wal::give_up_prepared;
use std::fs;
use std::io;
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

/// Durable when it returns. On a full disk it takes of what the log has set aside: the process ends.
pub(crate) fn leave(dir: &Path, reason: &str) -> Result<(), GroupError> {
    let path = path(dir);
    let put = || private_file::replace(&path, reason.as_bytes());
    let left = put().or_else(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if give_up_prepared(dir)? => {
            put()
        }
        _ => Err(error),
    });
    left.map_err(|source| GroupError::Mark { path, source })
}

fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}
