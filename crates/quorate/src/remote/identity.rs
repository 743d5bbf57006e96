//! As whom a group is asked.
//!
//! Invariant: what the command line says counts first, then what is kept of the group, and then the environment, which
//! may have been set for another group.

use super::clusters::Known;
use crate::cluster::Cluster;
use crate::failure::readable;
use anyhow::{Context, Result};
use quorate_lab::server::{secret_in, security};
use quorate_live::{Credential, OperatorIdentity, Privilege, Security, TlsOptions};
use std::env;
use std::path::PathBuf;

/// Names the credential of who says nothing else.
const ENVIRONMENT: &str = "QUORATE_OPERATOR_FILE";

/// By what was given, is kept, or stands in the environment.
pub fn shown(given: &Known, kept: &Known) -> Result<OperatorIdentity> {
    let environment = env::var_os(ENVIRONMENT).filter(|file| !file.is_empty());
    of(&chosen(given, kept, environment.map(PathBuf::from)))
}

fn chosen(given: &Known, kept: &Known, environment: Option<PathBuf>) -> Known {
    let named = [given, kept].into_iter().find(|known| !known.shows_nothing());
    named.cloned().unwrap_or(Known { operator_file: environment, ..Known::default() })
}

fn of(known: &Known) -> Result<OperatorIdentity> {
    if let Some(file) = &known.operator_file {
        readable(file)?;
        return Ok(OperatorIdentity::Credential(Credential::read(file)?));
    }
    let Some(cert) = &known.ssl_cert else { return Ok(OperatorIdentity::Anonymous) };
    let key = known.ssl_key.clone().context("a certificate needs its key: --ssl-key")?;
    [Some(cert), Some(&key), known.ssl_ca.as_ref()]
        .into_iter()
        .flatten()
        .try_for_each(|file| readable(file))?;
    Ok(OperatorIdentity::Certificate(TlsOptions {
        cert: cert.clone(),
        key,
        ca: known.ssl_ca.clone(),
        names: known.ssl_names.clone(),
        crl: None,
        ciphers: String::new(),
        dynamic: false,
    }))
}

/// Whoever can read the secret of a cluster on this machine needs no credential for it, and may give one all the same.
/// Where members know each other by certificates, an operator has one, too.
pub fn on_this_machine(cluster: &Cluster, given: &Known) -> Result<OperatorIdentity> {
    if !given.shows_nothing() {
        return of(given);
    }
    let secret = secret_in(&cluster.dir);
    let options = match security(&cluster.state.provider_options, secret.as_deref())? {
        Security::Secret(options) => options,
        Security::Certificates(_) => return shown(given, &Known::default()),
        Security::ThisHost | Security::Insecure => return Ok(OperatorIdentity::Anonymous),
    };
    readable(&options.file).with_context(|| {
        format!("run the command as root, or as {}, whose servers they are", cluster.account.name)
    })?;
    let name = cluster.account.database_user();
    Ok(OperatorIdentity::Credential(Credential::derive(name, Privilege::All, &options.file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_counts_before_what_is_kept_and_both_before_the_environment() {
        let nothing = Known { seeds: vec!["h:1".into()], ..Known::default() };
        let credential = Known { operator_file: Some("b".into()), ..nothing.clone() };
        let certificate = Known { ssl_cert: Some("c".into()), ..nothing.clone() };
        let of_another = || Some(PathBuf::from("a"));
        for (given, kept, wanted) in [
            (&certificate, &credential, &certificate),
            (&credential, &certificate, &credential),
            (&certificate, &nothing, &certificate),
            (&nothing, &credential, &credential),
            (&nothing, &certificate, &certificate),
        ] {
            assert_eq!(chosen(given, kept, of_another()), *wanted);
            assert_eq!(chosen(given, kept, None), *wanted);
        }
        assert_eq!(chosen(&nothing, &nothing, of_another()).operator_file, of_another());
        assert!(chosen(&nothing, &nothing, None).shows_nothing());
    }
}
