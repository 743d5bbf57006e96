//! Whom a member talks to, and how it knows.
//!
//! | security | connections | who is believed |
//! |---|---|---|
//! | a secret | TLS 1.3 | who proves that it has the group's secret (`proof`) |
//! | certificates | TLS 1.3 | who has the key of a certificate that is trusted (`certified`) |
//! | this host | plain, from and to this host alone | every process of this host |
//! | none | plain | whoever reaches the port |
//!
//! Invariant: with the first two, nothing that comes on a connection is decoded before the other side
//! has shown who it is. Only `dynamic`, which exists to switch a running group over, allows plain
//! connections beside them, and dials one only to a peer that says it has no other.

mod certificates;
mod certified;
mod expiry;
pub(crate) mod fuzzing;
mod names;
mod own_key;
mod proof;
mod secret;
mod verifier;
mod x509;

use certificates::Loaded;
pub use certificates::TlsOptions;
pub(crate) use expiry::Expiry;
pub use secret::Secret;

use crate::error::GroupError;
use certified::Certified;
use graviola::hashing::{Hash, Sha256};
use own_key::OwnKey;
use quorate_consensus::KeyId;
use rustls::{ClientConfig, ServerConfig};
use secret::Secrets;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use proof::{demand, offer, Binding};

/// What the connections of a member stand on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Plain connections between processes of this host, and no others.
    ThisHost,
    /// Plain connections; whoever reaches the port is believed.
    Insecure,
    Secret(SecretOptions),
    Certificates(TlsOptions),
}

/// A secret that all members have, and nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretOptions {
    pub file: PathBuf,
    /// As in [`TlsOptions`].
    pub dynamic: bool,
}

/// Ready for use.
pub(crate) struct Trust {
    /// Without it, connections are plain.
    pub tls: Option<Tls>,
    pub dynamic: bool,
    /// When this member's certificate ends, if it has one.
    pub expiry: Option<Expiry>,
    /// What this member's connections show.
    pub key: KeyId,
    this_host_only: bool,
}

/// What encrypts connections.
pub(crate) struct Tls {
    pub client: Arc<ClientConfig>,
    pub server: Arc<ServerConfig>,
    pub proving: Option<Proving>,
    /// By whose certificates members are known.
    pub certified: Option<Arc<Certified>>,
}

/// What is to be proved on a connection before anything else is said.
pub(crate) struct Proving {
    pub secrets: Secrets,
    /// The public key that this member shows.
    pub public_key: Vec<u8>,
}

impl Trust {
    /// Reads the files. With a secret, the member's own key is in `dir`, and is made there if it is
    /// missing; without a directory, it is one for this process.
    pub fn load(security: &Security, dir: Option<&Path>) -> Result<Trust, GroupError> {
        let this_host_only = *security == Security::ThisHost;
        let plain = Trust {
            tls: None,
            dynamic: false,
            expiry: None,
            key: KeyId::default(),
            this_host_only,
        };
        Ok(match security {
            Security::ThisHost | Security::Insecure => plain,
            Security::Secret(options) => {
                let secrets = Secrets::read(&options.file)?;
                let own = dir.map_or_else(OwnKey::passing, OwnKey::of_directory)?;
                let (key, tls) = (key_id(own.public()), own.tls(secrets)?);
                Trust { tls: Some(tls), dynamic: options.dynamic, key, ..plain }
            }
            Security::Certificates(options) => {
                let Loaded { tls, key, expiry } = certificates::load(options)?;
                let (tls, expiry) = (Some(tls), Some(expiry));
                Trust { tls, dynamic: options.dynamic, expiry, key, ..plain }
            }
        })
    }

    /// Whether a process at this address may be talked to at all.
    pub fn admits(&self, addr: IpAddr) -> bool {
        !self.this_host_only || addr.to_canonical().is_loopback()
    }
}

impl Security {
    /// Whether it is enough for a member that listens at `listen` and tells others to connect to
    /// `advertise`: who can be reached from other hosts needs more than this host's good manners.
    pub fn check_reach(&self, listen: &str, advertise: &str) -> Result<(), GroupError> {
        let for_all = |addr: &SocketAddr| addr.ip().is_unspecified();
        if *self != Security::ThisHost
            || (on_this_host(advertise, |_| false) && on_this_host(listen, for_all))
        {
            return Ok(());
        }
        Err(GroupError::Unprotected { addr: advertise.to_owned() })
    }
}

/// What a public key, as TLS carries it, is known by.
fn key_id(public_key: &[u8]) -> KeyId {
    let mut id = KeyId::default();
    id.0.copy_from_slice(Sha256::hash(public_key).as_ref());
    id
}

/// Whether all that `addr` stands for is, or is `also`, an address that only this host has.
fn on_this_host(addr: &str, also: impl Fn(&SocketAddr) -> bool) -> bool {
    addr.to_socket_addrs().is_ok_and(|mut addrs| {
        addrs.all(|addr| addr.ip().to_canonical().is_loopback() || also(&addr))
    })
}

/// The cryptography is written for processors of the last ten years.
fn check_processor() -> Result<(), GroupError> {
    match missing_cpu_feature() {
        Some(feature) => Err(GroupError::TlsUnsupported { feature }),
        None => Ok(()),
    }
}

#[cfg(target_arch = "x86_64")]
fn missing_cpu_feature() -> Option<&'static str> {
    let needed = [
        ("aes", std::arch::is_x86_feature_detected!("aes")),
        ("pclmulqdq", std::arch::is_x86_feature_detected!("pclmulqdq")),
        ("ssse3", std::arch::is_x86_feature_detected!("ssse3")),
        ("bmi1", std::arch::is_x86_feature_detected!("bmi1")),
        ("bmi2", std::arch::is_x86_feature_detected!("bmi2")),
        ("adx", std::arch::is_x86_feature_detected!("adx")),
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
    ];
    needed.into_iter().find(|(_, present)| !present).map(|(name, _)| name)
}

#[cfg(not(target_arch = "x86_64"))]
fn missing_cpu_feature() -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod reach_tests {
    use super::*;

    #[test]
    fn who_can_be_reached_from_elsewhere_is_to_be_protected() {
        let open = |listen: &str, advertise: &str| {
            Security::ThisHost.check_reach(listen, advertise).is_err()
        };
        assert!(!open("0.0.0.0:4567", "127.0.0.1:4567") && !open("[::]:4567", "[::1]:4567"));
        assert!(!open("127.0.0.2:1", "localhost:1"));
        assert!(open("0.0.0.0:4567", "10.0.0.1:4567"), "others are told to come");
        assert!(open("10.0.0.1:4567", "127.0.0.1:4567"), "it listens to others alone");
        assert!(open("0.0.0.0:4567", "no-such-host.invalid:4567"), "nobody knows where that is");
        assert!(Security::Insecure.check_reach("0.0.0.0:4567", "10.0.0.1:4567").is_ok());
    }

    #[test]
    fn without_protection_only_this_host_is_talked_to() {
        let trust = Trust::load(&Security::ThisHost, None).unwrap();
        let admits = |addr: &str| trust.admits(addr.parse().unwrap());
        assert!(admits("127.0.0.1") && admits("127.8.0.1") && admits("::1"));
        assert!(admits("::ffff:127.0.0.1"));
        assert!(!admits("10.0.0.1") && !admits("::ffff:10.0.0.1") && !admits("2001:db8::1"));
        assert!(Trust::load(&Security::Insecure, None).unwrap().admits([10, 0, 0, 1].into()));
    }
}
