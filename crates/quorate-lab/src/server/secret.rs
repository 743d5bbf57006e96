//! The secret by which the members of a group on this machine know each other.

use super::Account;
use anyhow::{Context, Result};
use quorate_live::Secret;
use std::path::{Path, PathBuf};

const NAME: &str = "secret";
/// Provider options that say by themselves whom a node believes.
const OTHERS: [&str; 4] =
    ["quorate.secret_file", "quorate.insecure", "socket.ssl_cert", "socket.ssl_key"];

/// The file in `dir`, if there is one.
pub fn secret_in(dir: &Path) -> Option<PathBuf> {
    Some(dir.join(NAME)).filter(|path| path.exists())
}

/// Makes one there, for the account alone, unless it is there already.
pub fn make_secret(dir: &Path, account: &Account) -> Result<PathBuf> {
    if let Some(path) = secret_in(dir) {
        return Ok(path);
    }
    let path = dir.join(NAME);
    Secret::new()?.write(&path).with_context(|| format!("writing {}", path.display()))?;
    account.own(&path, 0o600)?;
    Ok(path)
}

/// Whether these provider options say how nodes know each other.
pub fn names_security(provider_options: &str) -> bool {
    provider_options
        .split(';')
        .filter_map(|pair| pair.split_once('='))
        .any(|(name, _)| OTHERS.contains(&name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_ones_own_stand_in_place_of_the_secret() {
        assert!(names_security("a=b; socket.ssl_cert = /c;socket.ssl_key=/k"));
        assert!(names_security("quorate.insecure=yes"));
        assert!(!names_security("socket.dynamic=yes;evs.suspect_timeout=PT1S;"));
    }
}
