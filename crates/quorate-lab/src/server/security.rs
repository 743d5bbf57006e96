//! By what the members of a group know each other, and what has to be told to whom for it.

use super::Account;
use anyhow::{Context, Result};
use quorate_live::{DiskKey, Secret, SecretOptions, Security, SecurityError, TransferFiles};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const NAME: &str = "secret";
const KEY_NAME: &str = "log-key";

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

/// The same for a key of logs on disk.
pub fn make_key(dir: &Path, account: &Account) -> Result<PathBuf> {
    let path = dir.join(KEY_NAME);
    if !path.exists() {
        DiskKey::new()?.write(&path).with_context(|| format!("writing {}", path.display()))?;
        account.own(&path, 0o600)?;
    }
    Ok(path)
}

/// By what the nodes of a group know each other: what their provider options say of it, else the group's own
/// `secret`.
pub fn security(provider_options: &str, secret: Option<&Path>) -> Result<Security, SecurityError> {
    let own = secret.map(|file| SecretOptions { file: file.to_owned(), dynamic: false });
    let own = own.map_or(Security::ThisHost, Security::Secret);
    Ok(Security::in_options(provider_options)?.unwrap_or(own))
}

/// What the server's scripts for state transfers are told, in the group `[sst]` of the server's file of options:
/// to encrypt with the identity that the group's connections have. Both sides show a certificate and check the
/// other's. Empty: the group is not protected either.
pub fn transfer_options(security: &Security, log_dir: &Path) -> Vec<(&'static str, String)> {
    let TransferFiles { cert, key, ca } = match security {
        Security::ThisHost | Security::Insecure => return Vec::new(),
        Security::Secret(_) => TransferFiles::of(log_dir),
        Security::Certificates(tls) => {
            let ca = tls.ca.as_ref().unwrap_or(&tls.cert).clone();
            TransferFiles { cert: tls.cert.clone(), key: tls.key.clone(), ca }
        }
    };
    let show = |path: PathBuf| path.display().to_string();
    vec![
        // Key and certificate in two files; read by the script for mariabackup, the other one needs no such word.
        ("encrypt", "3".to_owned()),
        ("ssl-mode", "VERIFY_CA".to_owned()),
        ("tcert", show(cert)),
        ("tkey", show(key)),
        ("tca", show(ca)),
    ]
}

/// What `quorate logger` is told.
pub fn logger_arguments(security: &Security) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut tell = |name: &str, value: OsString| arguments.extend([name.into(), value]);
    let dynamic = match security {
        Security::ThisHost => false,
        Security::Insecure => return vec!["--insecure".into()],
        Security::Secret(options) => {
            tell("--secret-file", options.file.clone().into());
            options.dynamic
        }
        Security::Certificates(tls) => {
            tell("--ssl-cert", tls.cert.clone().into());
            tell("--ssl-key", tls.key.clone().into());
            if let Some(ca) = &tls.ca {
                tell("--ssl-ca", ca.clone().into());
            }
            if let Some(crl) = &tls.crl {
                tell("--ssl-crl", crl.clone().into());
            }
            if !tls.names.is_empty() {
                tell("--ssl-names", tls.names.join(",").into());
            }
            if !tls.ciphers.is_empty() {
                tell("--ssl-cipher", tls.ciphers.clone().into());
            }
            tls.dynamic
        }
    };
    if dynamic {
        arguments.push("--dynamic".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_encrypted_with_the_groups_identity() {
        let of = |text: &str| {
            let security = security(text, Some(Path::new("/group"))).unwrap();
            let options = transfer_options(&security, Path::new("/log"));
            let lines: Vec<String> = options.iter().map(|(k, v)| format!("{k}={v}")).collect();
            lines.join(" ")
        };
        let checked = "encrypt=3 ssl-mode=VERIFY_CA";
        assert_eq!(
            of(""),
            format!("{checked} tcert=/log/transfer.pem tkey=/log/transfer-key.pem tca=/log/transfer-ca.pem")
        );
        let own = "socket.ssl_cert=/c;socket.ssl_key=/k";
        assert_eq!(of(own), format!("{checked} tcert=/c tkey=/k tca=/c"));
        assert_eq!(
            of(&format!("{own};socket.ssl_ca=/a")),
            format!("{checked} tcert=/c tkey=/k tca=/a")
        );
        assert_eq!(of("quorate.insecure=yes"), "");
    }

    #[test]
    fn options_of_ones_own_stand_in_place_of_the_secret() {
        let of = |options: &str| security(options, Some(Path::new("/group"))).unwrap();
        let file = |security| match security {
            Security::Secret(options) => options.file,
            other => panic!("{other:?}"),
        };
        assert_eq!(file(of("socket.dynamic=yes;evs.suspect_timeout=PT1S;")), Path::new("/group"));
        assert_eq!(file(of("quorate.secret_file=/own")), Path::new("/own"));
        assert_eq!(of("quorate.insecure=yes"), Security::Insecure);
        let certificates = of("a=b; socket.ssl_cert = /c;socket.ssl_key=/k");
        assert!(matches!(certificates, Security::Certificates(_)));
    }
}
