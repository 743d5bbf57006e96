//! Members that know each other by certificates.
//!
//! Both sides of a connection show a certificate, and each demands that the other's is signed by
//! the CA it was given, or is itself among the certificates in that file (one self-signed
//! certificate for all nodes is a common set-up). Of what the CA signed, only certificates for one of the
//! names of members are taken, where names are given: a CA that signs for others, too, is not enough. Which
//! member has which name is not compared: members move between addresses.

use super::expiry::Expiry;
use super::holders::Holders;
use super::operators::Operators;
use super::secret::shown_to_others;
use super::verifier::{finished, Judge, Verifier};
use super::{check_processor, Tls};
use crate::error::GroupError;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SupportedCipherSuite,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that a node's encryption is made of, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// This node's certificate, followed by those between it and the CA.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Who signs members' certificates. `None`: every member has this node's own certificate.
    pub ca: Option<PathBuf>,
    /// What the CA's certificates of members are for: DNS names or IP addresses, any of which a certificate has
    /// to have as an alternative name. Empty: whatever the CA signed.
    pub names: Vec<String>,
    /// The cipher suites that are allowed, as OpenSSL names them, with colons between; empty: all.
    pub ciphers: String,
    /// Plain connections are accepted, too, and made to who says that it has no others: while a group is
    /// switched over, node by node.
    pub dynamic: bool,
}

/// With the time when this member's own certificate ends.
pub(super) fn load(
    options: &TlsOptions,
    operators: &Operators,
) -> Result<(Tls, Expiry), GroupError> {
    check_processor()?;
    let provider = Arc::new(provider(&options.ciphers)?);
    refuse_shown_key(&options.key)?;
    let chain = certificates(&options.cert)?;
    if let Err(error) =
        chain.iter().try_for_each(|each| ParsedCertificate::try_from(each).map(drop))
    {
        let reason = format!(
            "{error}; certificates must be of X.509 version 3: `openssl x509 -req` makes them \
             with -extfile or -copy_extensions"
        );
        return Err(bad_file(&options.cert, reason));
    }
    let expiry = Expiry::of(&options.cert, &chain[0])?;
    let trusted = certificates(options.ca.as_ref().unwrap_or(&options.cert))?;
    let key = || {
        PrivateKeyDer::from_pem_file(&options.key)
            .map_err(|error| bad_file(&options.key, error.to_string()))
    };
    let holders = Arc::new(Holders::new(&options.names, operators, trusted.clone())?);
    let verifier = Arc::new(Verifier(Certified::new(provider.clone(), trusted, holders.clone())));
    let bad_pair = |error: Error| {
        let reason = format!("it does not fit {}: {error}", options.cert.display());
        bad_file(&options.key, reason)
    };
    let client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(bad_pair)?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_client_auth_cert(chain.clone(), key()?)
        .map_err(bad_pair)?;
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(bad_pair)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key()?)
        .map_err(bad_pair)?;
    Ok((Tls { holders: Some(holders), ..finished(client, server, None) }, expiry))
}

/// With the suites of TLS 1.3 that are named.
fn provider(ciphers: &str) -> Result<CryptoProvider, GroupError> {
    let mut provider = rustls_graviola::default_provider();
    let named: Vec<&str> = ciphers.split([':', ',', ' ']).filter(|name| !name.is_empty()).collect();
    if named.is_empty() {
        return Ok(provider);
    }
    provider.cipher_suites.retain(|suite| suite.tls13().is_some());
    let there: Vec<String> = provider.cipher_suites.iter().map(openssl_name).collect();
    provider.cipher_suites.retain(|suite| named.contains(&openssl_name(suite).as_str()));
    match provider.cipher_suites.is_empty() {
        true => Err(GroupError::Ciphers { named: ciphers.to_owned(), there: there.join(":") }),
        false => Ok(provider),
    }
}

fn openssl_name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
}

fn refuse_shown_key(path: &Path) -> Result<(), GroupError> {
    let metadata = fs::metadata(path).map_err(|error| bad_file(path, error.to_string()))?;
    match shown_to_others(&metadata) {
        Some(reason) => Err(bad_file(path, reason)),
        None => Ok(()),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, GroupError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match read {
        Ok(found) => {
            let found: Vec<_> = found;
            match found.is_empty() {
                true => Err(bad_file(path, "it holds no certificate in PEM form".into())),
                false => Ok(found),
            }
        }
        Err(error) => Err(bad_file(path, error.to_string())),
    }
}

pub(super) fn bad_file(path: &Path, reason: String) -> GroupError {
    GroupError::TlsFile { path: path.to_owned(), reason }
}

/// A certificate that the CA has signed, or that is among those that are trusted.
#[derive(Debug)]
struct Certified {
    provider: Arc<CryptoProvider>,
    roots: RootCertStore,
    holders: Arc<Holders>,
}

impl Certified {
    fn new(
        provider: Arc<CryptoProvider>,
        trusted: Vec<CertificateDer<'static>>,
        holders: Arc<Holders>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        // One that is no CA can still be trusted as itself.
        roots.add_parsable_certificates(trusted);
        Self { provider, roots, holders }
    }
}

impl Judge for Certified {
    const BARE_KEYS: bool = false;

    fn provider(&self) -> &CryptoProvider {
        &self.provider
    }

    fn check(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(shown)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let signed = verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            between,
            now,
            algorithms,
        );
        match signed {
            // A certificate that is trusted as itself is no one's, so nobody signed it.
            Err(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::Other(_),
            )) if self.holders.trusts(shown) => Ok(()),
            Ok(()) => self.holders.check(&parsed),
            other => other,
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, shown, signature, algorithms)
    }
}
