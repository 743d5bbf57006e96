//! Whose certificate it may be that the other side of a connection shows.

use super::holders::{Holder, Holders};
use super::verifier::Judge;
use quorate_consensus::KeyId;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{verify_tls13_signature, CryptoProvider};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore};
use std::sync::Arc;
use webpki::{
    CertRevocationList, EndEntityCert, KeyUsage, RevocationOptions, RevocationOptionsBuilder,
};

/// A certificate that the CA has signed, or that is among those that are trusted.
#[derive(Debug)]
pub(crate) struct Certified {
    provider: Arc<CryptoProvider>,
    roots: RootCertStore,
    holders: Holders,
    revoked: Vec<CertRevocationList<'static>>,
}

impl Certified {
    pub fn new(
        provider: Arc<CryptoProvider>,
        trusted: Vec<CertificateDer<'static>>,
        holders: Holders,
        revoked: Vec<CertRevocationList<'static>>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        // One that is no CA can still be trusted as itself.
        roots.add_parsable_certificates(trusted);
        Self { provider, roots, holders, revoked }
    }

    /// What a member is known by that shows this certificate, which was checked.
    pub fn key_of(&self, shown: &CertificateDer<'_>) -> KeyId {
        self.holders.key_of(shown)
    }

    /// Whose it is, of one that was checked.
    pub fn holder(&self, shown: &CertificateDer<'_>) -> Result<Holder, Error> {
        self.holders.holder(shown)
    }

    /// Whether this member's own certificate is one that the revocation lists let pass; what the others will
    /// say to the rest of it, they say themselves.
    pub fn check_own(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
    ) -> Result<(), String> {
        let now = UnixTime::now();
        let by_lists = self.check_signed(shown, between, now, &self.revoked);
        let without = self.check_signed(shown, between, now, &[]);
        match (by_lists, without) {
            (Err(error), Ok(())) => Err(why(&error)),
            _ => Ok(()),
        }
    }

    /// Why whoever shows this certificate is no member, by the names that this member was given.
    pub fn refuses_member(&self, shown: &CertificateDer<'_>) -> Option<String> {
        if self.holders.trusts(shown) {
            return None;
        }
        let text = |error: Error| match error {
            Error::General(text) => text,
            other => other.to_string(),
        };
        match self.holders.check(shown).and_then(|()| self.holders.holder(shown)) {
            Ok(Holder::Member(_)) => None,
            Ok(Holder::Operator(operator)) => Some(format!(
                "the certificate is that of operator {} (quorate.operators), and makes no member: give this node \
                 one for a name of its own",
                operator.name
            )),
            Err(error) => Some(text(error)),
        }
    }

    fn check_signed(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
        revoked: &[CertRevocationList<'_>],
    ) -> Result<(), webpki::Error> {
        let lists: Vec<&CertRevocationList<'_>> = revoked.iter().collect();
        // None, where there are no lists.
        let revocation = RevocationOptionsBuilder::new(&lists).ok();
        let revocation: Option<RevocationOptions<'_>> = revocation.map(|options| options.build());
        let algorithms = self.provider.signature_verification_algorithms.all;
        EndEntityCert::try_from(shown)?
            .verify_for_usage(
                algorithms,
                &self.roots.roots,
                between,
                now,
                KeyUsage::server_auth(),
                revocation,
                None,
            )
            .map(drop)
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
        match self.check_signed(shown, between, now, &self.revoked) {
            // A certificate that is trusted as itself is no one's, so nobody signed it.
            Err(webpki::Error::UnknownIssuer | webpki::Error::CaUsedAsEndEntity)
                if self.holders.trusts(shown) =>
            {
                Ok(())
            }
            Ok(()) => self.holders.check(shown),
            Err(error) => Err(told(error)),
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

/// With the alert that tells the other side.
fn told(error: webpki::Error) -> Error {
    let known = match &error {
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        webpki::Error::CertExpired { .. } => CertificateError::Expired,
        webpki::Error::CertNotValidYet { .. } => CertificateError::NotValidYet,
        webpki::Error::CertRevoked => CertificateError::Revoked,
        webpki::Error::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        _ => return Error::General(why(&error)),
    };
    known.into()
}

pub(super) fn why(error: &webpki::Error) -> String {
    match error {
        webpki::Error::CertRevoked => {
            "a revocation list of socket.ssl_crl has the certificate: take another one".into()
        }
        webpki::Error::InvalidCrlSignatureForPublicKey => {
            "a revocation list of socket.ssl_crl is another CA's, which has the same name: put the right one \
             into the file"
                .into()
        }
        webpki::Error::UnknownRevocationStatus => {
            "socket.ssl_crl has no list of a CA that signed the certificate, or one between it and the \
             trusted ones: put the lists of all of them into the file"
                .into()
        }
        other => format!("the certificate is not taken: {other:?}"),
    }
}
