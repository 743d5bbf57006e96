//! As whom a group is asked.

use super::clusters::Known;
use crate::cluster::Cluster;
use anyhow::{Context, Result};
use quorate_lab::server::{secret_in, security};
use quorate_live::{Credential, OperatorIdentity, Privilege, Security, TlsOptions};
use std::fs::File;
use std::path::Path;

/// By what was given, or is kept.
pub fn shown(known: &Known) -> Result<OperatorIdentity> {
    if let Some(file) = &known.operator_file {
        readable(file)?;
        return Ok(OperatorIdentity::Credential(Credential::read(file)?));
    }
    let Some(cert) = &known.ssl_cert else { return Ok(OperatorIdentity::Anonymous) };
    let key = known.ssl_key.clone().context("a certificate needs its key: --ssl-key")?;
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

/// Whoever can read the secret of a cluster on this machine needs no credential for it. Where members know each other by
/// certificates, an operator has one, too.
pub fn on_this_machine(cluster: &Cluster, given: &Known) -> Result<OperatorIdentity> {
    let secret = secret_in(&cluster.dir);
    let options = match security(&cluster.state.provider_options, secret.as_deref())? {
        Security::Secret(options) => options,
        Security::Certificates(_) => return shown(given),
        Security::ThisHost | Security::Insecure => return Ok(OperatorIdentity::Anonymous),
    };
    readable(&options.file).with_context(|| {
        format!("run the command as root, or as {}, whose servers they are", cluster.account.name)
    })?;
    let name = cluster.account.database_user();
    Ok(OperatorIdentity::Credential(Credential::derive(name, Privilege::All, &options.file)?))
}

/// So that a file of another account's is told as such.
fn readable(file: &Path) -> Result<()> {
    File::open(file).map(drop).with_context(|| format!("reading {}", file.display()))
}
