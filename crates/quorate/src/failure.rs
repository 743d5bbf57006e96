//! Exit codes, and the one error type that carries its own.

use anyhow::{Context, Result};
use serde_json::{json, Value};
use std::fs::File;
use std::path::Path;
use std::{fmt, io};

/// Done; for `status`: every node is Synced.
pub const OK: u8 = 0;
/// The command failed; for `status`: some node is not Synced, the cluster still accepts writes.
pub const FAILED: u8 = 1;
/// `status` only: no node accepts writes.
pub const NO_PRIMARY: u8 = 2;
/// `chaos` only: something that was promised was not kept.
pub const VIOLATED: u8 = 2;
/// The command line is wrong.
pub const USAGE: u8 = 64;
/// There is no cluster where it was looked for.
pub const NO_CLUSTER: u8 = 66;
/// Software that must be installed first is missing.
pub const MISSING_SOFTWARE: u8 = 69;
/// No member of the group answers.
pub const UNREACHABLE: u8 = 69;
/// The time limit passed; servers may still be on their way.
pub const TIMED_OUT: u8 = 75;
/// The files belong to another account, or to root; or the members do not let this operator do that.
pub const NO_PERMISSION: u8 = 77;

/// An error with an exit code other than [`FAILED`].
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub message: String,
}

impl Failure {
    pub fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<quorate_lab::server::Missing>() {
        return MISSING_SOFTWARE;
    }
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.code;
    }
    let denied = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    match error.chain().any(denied) {
        true => NO_PERMISSION,
        false => FAILED,
    }
}

/// So that a file of another account's is told as such: whoever reads it later tells why in words alone.
pub fn readable(file: &Path) -> Result<()> {
    File::open(file).map(drop).with_context(|| format!("reading {}", file.display()))
}

/// An error for who reads JSON, in one line (docs/run/json.md).
pub fn document(code: u8, reason: &str) -> Value {
    json!({ "error": { "code": code, "reason": reason } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::page::names_fields_of;

    #[test]
    fn the_page_names_the_fields_of_an_error() {
        names_fields_of(&document(UNREACHABLE, "no member answers"));
    }
}
