//! A member's own key, where members prove themselves by the group's secret.
//!
//! TLS carries the bare public key (RFC 7250) in place of a certificate: nothing is signed by anybody,
//! nothing expires, nothing is to be managed. Whose key it is does not matter to TLS; `proof` binds it to
//! the secret.
//!
//! Invariant: a key that was shown to others is on disk, in the directory of the log, for its owner alone.

use super::proof::Shown;
use super::verifier::{finished, Judge, Verifier};
use super::{check_processor, Proving, Tls};
use crate::error::GroupError;
use crate::private_file;
use graviola::signing::eddsa::Ed25519SigningKey;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::crypto::{verify_tls13_signature_with_raw_key, CryptoProvider};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, Error, ServerConfig};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// In the directory of the log; PKCS #8.
const NAME: &str = "member.key";
/// Of an Ed25519 key there are 83.
const PKCS8_BYTES_MAX: usize = 128;

pub(super) struct OwnKey {
    key: Arc<CertifiedKey>,
    provider: Arc<CryptoProvider>,
}

impl OwnKey {
    /// The one in this directory; a new one is kept there.
    pub fn of_directory(dir: &Path) -> Result<OwnKey, GroupError> {
        let path = dir.join(NAME);
        if !path.try_exists().map_err(|source| failed(&path, source))? {
            private_file::replace(&path, &generate()?).map_err(|source| failed(&path, source))?;
        }
        OwnKey::there(dir)
    }

    /// The one in this directory, which the group knows: another one would be somebody else's.
    pub fn there(dir: &Path) -> Result<OwnKey, GroupError> {
        let path = dir.join(NAME);
        let pkcs8 = fs::read(&path).map_err(|source| failed(&path, source))?;
        OwnKey::of(pkcs8).map_err(|error| failed(&path, io::Error::other(error)))
    }

    /// For one process, which nobody has to know again.
    pub fn passing() -> Result<OwnKey, GroupError> {
        // What was just made can be read.
        OwnKey::of(generate()?).map_err(|_| GroupError::NoEntropy)
    }

    fn of(pkcs8: Vec<u8>) -> Result<OwnKey, Error> {
        check_processor().map_err(|error| Error::General(error.to_string()))?;
        let provider = Arc::new(rustls_graviola::default_provider());
        let pkcs8 = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8));
        let key = provider.key_provider.load_private_key(pkcs8)?;
        let public =
            key.public_key().ok_or_else(|| Error::General("it has no public key".into()))?;
        let shown = CertificateDer::from(public.as_ref().to_vec());
        Ok(OwnKey { key: Arc::new(CertifiedKey::new(vec![shown], key)), provider })
    }

    /// The public key, as TLS carries it.
    pub fn public(&self) -> &[u8] {
        self.key.cert.first().map(AsRef::as_ref).unwrap_or_default()
    }

    /// `shown`: what is proved beside the key.
    pub fn tls(self, shown: Shown) -> Result<Tls, GroupError> {
        let public_key = self.public().to_vec();
        let OwnKey { key, provider } = self;
        let anybody = Arc::new(Verifier(Arc::new(Anybody(provider.clone()))));
        let unfit = |error: Error| GroupError::Tls { reason: error.to_string() };
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(unfit)?
            .dangerous()
            .with_custom_certificate_verifier(anybody.clone())
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                key.clone(),
            )));
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unfit)?
            .with_client_cert_verifier(anybody)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
        Ok(finished(client, server, Some(Proving { shown, public_key })))
    }
}

fn failed(path: &Path, source: io::Error) -> GroupError {
    GroupError::KeyFile { path: path.to_owned(), source }
}

fn generate() -> Result<Vec<u8>, GroupError> {
    check_processor()?;
    let mut pkcs8 = [0; PKCS8_BYTES_MAX];
    let key = Ed25519SigningKey::generate().map_err(|_| GroupError::NoEntropy)?;
    let encoded = key.to_pkcs8_der(&mut pkcs8).map_err(|error| GroupError::Tls {
        reason: format!("a new key cannot be written down: {error:?}"),
    })?;
    Ok(encoded.to_vec())
}

/// Any key will do, if its holder shows that it has it.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl Judge for Anybody {
    const BARE_KEYS: bool = true;

    fn provider(&self) -> &CryptoProvider {
        &self.0
    }

    fn check(
        &self,
        _shown: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn check_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }
}
