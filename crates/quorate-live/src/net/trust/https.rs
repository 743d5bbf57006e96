//! TLS for a program beside a member that speaks HTTP: it shows a certificate, and asks for none. With members' own
//! connections this has the cryptography and the rules for files in common, and nothing else.

use super::certificates::{bad_file, check_version, private_key, read_all, refuse_shown_key};
use super::x509::Contents;
use super::{check_processor, Expiry};
use crate::error::GroupError;
use rustls::version::TLS13;
use rustls::{Error, ServerConfig};
use std::path::Path;
use std::sync::Arc;

/// What is spoken inside.
const HTTP_1_1: &[u8] = b"http/1.1";

/// What such a program shows.
pub struct Https {
    pub config: Arc<ServerConfig>,
    /// The first end of the certificate and of those behind it, as far as they can be read.
    pub expiry: Option<Expiry>,
}

/// Of a certificate, with those between it and its CA behind it, and its key; both in PEM.
pub fn https(cert: &Path, key: &Path) -> Result<Https, GroupError> {
    check_processor()?;
    read(cert, key).map_err(|error| match error {
        GroupError::TlsFile { path, reason } => GroupError::HttpsFile { path, reason },
        other => other,
    })
}

fn read(cert: &Path, key: &Path) -> Result<Https, GroupError> {
    refuse_shown_key(key)?;
    let chain = read_all(cert, "certificate")?;
    check_version(cert, &chain)?;
    let contents = chain.iter().filter_map(|each| Contents::read(each).ok());
    let first_end = contents.map(|contents| contents.not_after).min();
    let expiry = first_end.map(|at| Expiry { path: cert.to_owned(), at });
    let bad_pair =
        |error: Error| bad_file(key, format!("it does not fit {}: {error}", cert.display()));
    let mut config =
        ServerConfig::builder_with_provider(rustls_graviola::default_provider().into())
            .with_protocol_versions(&[&TLS13])
            .map_err(bad_pair)?
            .with_no_client_auth()
            .with_single_cert(chain, private_key(key)?)
            .map_err(bad_pair)?;
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Ok(Https { config: Arc::new(config), expiry })
}
