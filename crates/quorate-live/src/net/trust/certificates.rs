//! Members that know each other by certificates.
//!
//! Both sides of a connection show a certificate, and each demands that the other's is signed by
//! the CA it was given, or is itself among the certificates in that file (one self-signed
//! certificate for all nodes is a common set-up). Of what the CA signed, only certificates for one of the
//! names of members are taken, where names are given: a CA that signs for others, too, is not enough. Which
//! member has which name is not compared: members move between addresses.

use super::certified::{why, Certified};
use super::expiry::Expiry;
use super::holders::Holders;
use super::operators::Operators;
use super::secret::shown_to_others;
use super::verifier::{finished, Verifier};
use super::x509::Contents;
use super::{check_processor, Tls};
use crate::error::GroupError;
use quorate_consensus::KeyId;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, Error, ServerConfig, SupportedCipherSuite};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use webpki::{CertRevocationList, EndEntityCert, OwnedCertRevocationList};

/// Says that a CA signs for nobody but the members (and operators) of one group.
pub const ANY_NAME: &str = "*";

/// The files that a node's encryption is made of, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// This node's certificate, followed by those between it and the CA.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Who signs members' certificates. `None`: every member has this node's own certificate, and nobody counts
    /// for whom one of those behind it has signed.
    pub ca: Option<PathBuf>,
    /// What the CA's certificates of members are for: DNS names or IP addresses, any of which a certificate has
    /// to have as an alternative name; a wildcard has none of them. [`ANY_NAME`] alone: whatever the CA signed.
    /// Empty: the same, and with a CA a member then talks to its own host only.
    pub names: Vec<String>,
    /// Lists of certificates that were revoked before their end.
    pub crl: Option<PathBuf>,
    /// The cipher suites that are allowed, as OpenSSL names them, with colons between; empty: all.
    pub ciphers: String,
    /// Plain connections are accepted, too, and made to who says that it has no others: while a group is
    /// switched over, node by node.
    pub dynamic: bool,
}

/// What is made of the files.
pub(super) struct Loaded {
    pub tls: Tls,
    /// What this member is known by.
    pub key: KeyId,
    pub expiry: Expiry,
    /// Why this member would count as none by what it says itself of members' names.
    pub refusal: Option<String>,
}

pub(super) fn load(options: &TlsOptions, operators: &Operators) -> Result<Loaded, GroupError> {
    check_processor()?;
    let provider = Arc::new(provider(&options.ciphers)?);
    refuse_shown_key(&options.key)?;
    let chain: Vec<CertificateDer<'static>> = read_all(&options.cert, "certificate")?;
    check_version(&options.cert, &chain)?;
    let trusted: Vec<CertificateDer<'static>> = match &options.ca {
        Some(ca) => read_all(ca, "certificate")?,
        None => vec![chain[0].clone()],
    };
    let expiry = first_end(options, &chain, &trusted)?;
    let holders = Holders::new(options.listed_names(), operators, trusted.clone())?;
    let revoked = options.crl.as_deref().map_or(Ok(Vec::new()), revoked)?;
    let certified = Arc::new(Certified::new(provider.clone(), trusted, holders, revoked));
    let (shown, between) = (&chain[0], &chain[1..]);
    certified.check_own(shown, between).map_err(|what| bad_file(&options.cert, what))?;
    let (key, refusal) = (certified.key_of(shown), certified.refuses_member(shown));
    let verifier = Arc::new(Verifier(certified.clone()));
    let bad_pair = |error: Error| {
        let reason = format!("it does not fit {}: {error}", options.cert.display());
        bad_file(&options.key, reason)
    };
    let client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(bad_pair)?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_client_auth_cert(chain.clone(), private_key(&options.key)?)
        .map_err(bad_pair)?;
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(bad_pair)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, private_key(&options.key)?)
        .map_err(bad_pair)?;
    let tls = Tls { certified: Some(certified), ..finished(client, server, None) };
    Ok(Loaded { tls, key, expiry, refusal })
}

/// Of a member, which is to count as one by what it says itself of members' names.
pub(super) fn load_members(
    options: &TlsOptions,
    operators: &Operators,
) -> Result<Loaded, GroupError> {
    let mut loaded = load(options, operators)?;
    match loaded.refusal.take() {
        Some(reason) => Err(bad_file(&options.cert, reason)),
        None => Ok(loaded),
    }
}

/// Of what this node shows, the CAs between included, whichever ends first; or the last of the CAs that it goes by.
fn first_end(
    options: &TlsOptions,
    chain: &[CertificateDer<'_>],
    trusted: &[CertificateDer<'_>],
) -> Result<Expiry, GroupError> {
    let end = |each: &CertificateDer<'_>| Ok(Contents::read(each)?.not_after);
    let shown: der::Result<Vec<SystemTime>> = chain.iter().map(end).collect();
    let shown = shown.map_err(|error| bad_file(&options.cert, error.to_string()))?;
    // A CA that cannot be read is passed over by TLS, too.
    let ca = trusted.iter().filter_map(|each| end(each).ok()).max();
    let of = |path: &PathBuf, at: SystemTime| Expiry { path: path.clone(), at };
    let ends = shown.into_iter().min().map(|at| of(&options.cert, at)).into_iter();
    let first = ends.chain(options.ca.as_ref().zip(ca).map(|(path, at)| of(path, at)));
    let first = first.min_by_key(|expiry| expiry.at);
    first.ok_or_else(|| bad_file(&options.cert, "it has no certificate".into()))
}

pub(super) fn check_version(path: &Path, chain: &[CertificateDer<'_>]) -> Result<(), GroupError> {
    let read = chain.iter().try_for_each(|each| EndEntityCert::try_from(each).map(drop));
    read.map_err(|error| {
        let reason = format!(
            "{}; certificates must be of X.509 version 3: `openssl x509 -req` makes them \
             with -extfile or -copy_extensions",
            why(&error)
        );
        bad_file(path, reason)
    })
}

fn revoked(path: &Path) -> Result<Vec<CertRevocationList<'static>>, GroupError> {
    let lists: Vec<CertificateRevocationListDer<'_>> = read_all(path, "revocation list")?;
    let read = |list: &CertificateRevocationListDer<'_>| {
        OwnedCertRevocationList::from_der(list.as_ref()).map(CertRevocationList::from)
    };
    let lists = lists.iter().map(read).collect::<Result<_, _>>();
    lists.map_err(|error| {
        bad_file(path, format!("no revocation list that can be used: {}", why(&error)))
    })
}

impl TlsOptions {
    fn listed_names(&self) -> &[String] {
        match &self.names[..] {
            [any] if any == ANY_NAME => &[],
            listed => listed,
        }
    }

    /// Whether every certificate that the CA has signed is a member's, if it is no operator's.
    pub(crate) fn lets_in_all(&self) -> bool {
        self.ca.is_some() && self.listed_names().is_empty()
    }

    /// What whoever runs a member with these is to be told at its start.
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions = Vec::new();
        if self.lets_in_all() {
            cautions.push(
                "Any certificate that the CA of socket.ssl_ca has signed is let in as a member: unless that CA is \
                 for this group alone, list the members' names in quorate.ssl_names"
                    .to_owned(),
            );
        }
        // As Galera's users have them: there they do not restrict TLS 1.3 either.
        if !self.ciphers.trim().is_empty() && named_suites(&self.ciphers).next().is_none() {
            cautions.push(format!(
                "socket.ssl_cipher={} has no effect: members speak TLS 1.3, and it names none of its cipher \
                 suites. All of them are allowed",
                self.ciphers
            ));
        }
        cautions
    }
}

/// What is meant as a suite of TLS 1.3, whether there is such a one or not. OpenSSL's names of those of older versions,
/// and of groups of them, begin otherwise.
fn named_suites(ciphers: &str) -> impl Iterator<Item = &str> {
    let is_meant = |name: &&str| name.get(..3).is_some_and(|tls| tls.eq_ignore_ascii_case("tls"));
    ciphers.split([':', ',', ' ']).filter(is_meant)
}

/// With the suites of TLS 1.3 that are named, or all.
fn provider(ciphers: &str) -> Result<CryptoProvider, GroupError> {
    let mut provider = rustls_graviola::default_provider();
    provider.cipher_suites.retain(|suite| suite.tls13().is_some());
    let there: Vec<String> = provider.cipher_suites.iter().map(openssl_name).collect();
    let named: Vec<&str> = named_suites(ciphers).collect();
    if named.is_empty() {
        return Ok(provider);
    }
    provider.cipher_suites.retain(|suite| named.contains(&openssl_name(suite).as_str()));
    match provider.cipher_suites.is_empty() {
        true => Err(GroupError::Ciphers { named: ciphers.to_owned(), there: there.join(":") }),
        false => Ok(provider),
    }
}

fn openssl_name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
}

pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, GroupError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| bad_file(path, error.to_string()))
}

pub(super) fn refuse_shown_key(path: &Path) -> Result<(), GroupError> {
    let metadata = fs::metadata(path).map_err(|error| bad_file(path, error.to_string()))?;
    match shown_to_others(&metadata) {
        Some(reason) => Err(bad_file(path, reason)),
        None => Ok(()),
    }
}

/// All of a kind that a file in PEM form has; at least one.
pub(super) fn read_all<T: PemObject>(path: &Path, kind: &str) -> Result<Vec<T>, GroupError> {
    let read = T::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<T>, _>>);
    match read {
        Ok(found) if found.is_empty() => {
            Err(bad_file(path, format!("it holds no {kind} in PEM form")))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(bad_file(path, error.to_string())),
    }
}

pub(super) fn bad_file(path: &Path, reason: String) -> GroupError {
    GroupError::TlsFile { path: path.to_owned(), reason }
}
