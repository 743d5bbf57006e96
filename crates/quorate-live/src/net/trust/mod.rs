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
mod credential;
mod expiry;
pub(crate) mod fuzzing;
mod hex;
mod holders;
mod https;
mod named;
mod names;
mod operators;
mod own_key;
mod proof;
mod secret;
mod transfer;
mod verifier;
mod x509;

use certificates::Loaded;
pub use certificates::{TlsOptions, ANY_NAME};
pub use credential::Credential;
pub use expiry::Expiry;
pub(crate) use hex::digits;
pub(super) use holders::Holder;
pub use https::{https, Https};
pub use named::{parse_bool, SecurityError};
pub use operators::{OperatorId, Operators, Privilege};
#[cfg(test)]
pub(crate) use secret::tests::Folder;
pub(crate) use secret::{random_bits, read_digits, write_private};
pub use secret::{read_private, Secret};
pub use transfer::TransferFiles;

use crate::error::GroupError;
use certified::Certified;
use graviola::hashing::{Hash, Sha256};
use own_key::OwnKey;
use proof::Shown;
use quorate_consensus::KeyId;
use rustls::{ClientConfig, ServerConfig};
use secret::Secrets;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use proof::read_claim;
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

/// By what an operator is known to members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorIdentity {
    /// Where connections are plain.
    Anonymous,
    Credential(Credential),
    /// Its own certificate; `names` are those of the members that it believes.
    Certificate(TlsOptions),
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
    /// Why other hosts are not to be talked to, whatever reaches them.
    this_host_only: Option<&'static str>,
}

/// What is missing for connections with other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack<'a> {
    /// Anything that protects them.
    Protection,
    /// The names of those whose certificates of this CA count: all would, without anybody having said so.
    Names { ca: &'a PathBuf },
}

impl Lack<'_> {
    fn remedy(self) -> &'static str {
        match self {
            Lack::Protection => {
                "nothing protects this node's connections with other hosts: set quorate.secret_file on all nodes"
            }
            Lack::Names { .. } => {
                "any certificate of the CA would do, for whatever host: name the members in quorate.ssl_names on \
                 all nodes"
            }
        }
    }
}

/// What encrypts connections.
#[derive(Clone)]
pub(crate) struct Tls {
    pub client: Arc<ClientConfig>,
    pub server: Arc<ServerConfig>,
    pub proving: Option<Proving>,
    /// Whose the certificates are, where there are any.
    pub certified: Option<Arc<Certified>>,
}

/// What is to be proved on a connection before anything else is said.
#[derive(Clone)]
pub(crate) struct Proving {
    pub shown: Shown,
    /// The public key that this side shows.
    pub public_key: Vec<u8>,
}

/// What the files of a [`Security`] hold, read and found to be good. Nothing was written yet.
pub(crate) struct Credentials {
    material: Material,
    dynamic: bool,
    this_host_only: Option<&'static str>,
}

enum Material {
    None,
    Secrets(Secrets),
    Certificates(Loaded),
}

impl Credentials {
    pub fn read(security: &Security, operators: &Operators) -> Result<Credentials, GroupError> {
        let (material, dynamic) = match security {
            Security::ThisHost | Security::Insecure => (Material::None, false),
            Security::Secret(options) => {
                check_processor()?;
                (Material::Secrets(Secrets::read(&options.file)?), options.dynamic)
            }
            Security::Certificates(options) => {
                let loaded = certificates::load_members(options, operators)?;
                (Material::Certificates(loaded), options.dynamic)
            }
        };
        Ok(Credentials { material, dynamic, this_host_only: security.lack().map(Lack::remedy) })
    }

    /// Of a member that starts with its log in `dir`: with a secret, its own key is there, and is made if it is
    /// missing.
    pub fn of_member(&self, dir: &Path) -> Result<Trust, GroupError> {
        self.with_key(|| OwnKey::of_directory(dir))
    }

    /// Of a member that runs, which is known by the key that it has.
    pub fn of_running_member(&self, dir: &Path) -> Result<Trust, GroupError> {
        self.with_key(|| OwnKey::there(dir))
    }

    /// What a server needs for state transfers, with a secret: in the same directory.
    pub fn write_transfer_files(&self, dir: &Path) -> Result<(), GroupError> {
        match &self.material {
            Material::Secrets(secrets) => TransferFiles::of(dir).write(secrets),
            Material::None | Material::Certificates(_) => Ok(()),
        }
    }

    /// Of one process, which nobody has to know again.
    pub fn of_process(&self) -> Result<Trust, GroupError> {
        self.with_key(OwnKey::passing)
    }

    fn with_key(
        &self,
        own: impl FnOnce() -> Result<OwnKey, GroupError>,
    ) -> Result<Trust, GroupError> {
        let plain = Trust {
            tls: None,
            dynamic: self.dynamic,
            expiry: None,
            key: KeyId::default(),
            this_host_only: self.this_host_only,
        };
        Ok(match &self.material {
            Material::None => plain,
            Material::Secrets(secrets) => {
                let own = own()?;
                let key = key_id(own.public());
                Trust { tls: Some(own.tls(Shown::Member(secrets.clone()))?), key, ..plain }
            }
            Material::Certificates(Loaded { tls, key, expiry, .. }) => {
                Trust { tls: Some(tls.clone()), expiry: Some(expiry.clone()), key: *key, ..plain }
            }
        })
    }
}

impl Trust {
    /// What an operator dials with.
    pub fn of_operator(identity: &OperatorIdentity) -> Result<Trust, GroupError> {
        let tls = match identity {
            OperatorIdentity::Anonymous => None,
            OperatorIdentity::Credential(credential) => {
                Some(OwnKey::passing()?.tls(Shown::Operator(credential.clone()))?)
            }
            OperatorIdentity::Certificate(options) => {
                Some(certificates::load(options, &Operators::default())?.tls)
            }
        };
        let (expiry, key) = (None, KeyId::default());
        Ok(Trust { tls, dynamic: false, expiry, key, this_host_only: None })
    }

    /// Why a process at this address may not be talked to at all, and what to do about it.
    pub fn bars(&self, addr: IpAddr) -> Option<&'static str> {
        self.this_host_only.filter(|_| !addr.to_canonical().is_loopback())
    }
}

impl Security {
    /// Whether it is enough for a member that listens at `listen` and tells others to connect to
    /// `advertise`: who can be reached from other hosts needs more than this host's good manners.
    pub fn check_reach(&self, listen: &str, advertise: &str) -> Result<(), GroupError> {
        let Some(lack) = self.lack() else { return Ok(()) };
        let for_all = |addr: &SocketAddr| addr.ip().is_unspecified();
        if on_this_host(advertise, |_| false) && on_this_host(listen, for_all) {
            return Ok(());
        }
        let addr = advertise.to_owned();
        Err(match lack {
            Lack::Protection => GroupError::Unprotected { addr },
            Lack::Names { ca } => GroupError::MembersUnnamed { addr, ca: ca.clone() },
        })
    }

    fn lack(&self) -> Option<Lack<'_>> {
        match self {
            Security::ThisHost => Some(Lack::Protection),
            Security::Certificates(TlsOptions { ca: Some(ca), names, .. }) if names.is_empty() => {
                Some(Lack::Names { ca })
            }
            _ => None,
        }
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

/// The cryptography is written for processors of the last ten years, and asserts what it needs.
pub(crate) fn check_processor() -> Result<(), GroupError> {
    let features = cpu_features();
    let missing: Vec<_> =
        features.into_iter().filter(|(_, present)| !present).map(|(name, _)| name).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(GroupError::TlsUnsupported { features: missing.join(", ") }),
    }
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> [(&'static str, bool); 7] {
    use std::arch::is_x86_feature_detected as has;
    [
        ("aes", has!("aes")),
        ("pclmulqdq", has!("pclmulqdq")),
        ("bmi1", has!("bmi1")),
        ("bmi2", has!("bmi2")),
        ("adx", has!("adx")),
        ("avx", has!("avx")),
        ("avx2", has!("avx2")),
    ]
}

#[cfg(target_arch = "aarch64")]
fn cpu_features() -> [(&'static str, bool); 4] {
    use std::arch::is_aarch64_feature_detected as has;
    [("neon", has!("neon")), ("aes", has!("aes")), ("pmull", has!("pmull")), ("sha2", has!("sha2"))]
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
    fn a_ca_alone_is_not_enough_for_other_hosts() {
        let certificates = |text: &str| {
            let text = format!("socket.ssl_cert=/c;socket.ssl_key=/k;{text}");
            Security::in_options(&text).unwrap().unwrap()
        };
        let refused = |text: &str| {
            let listening = certificates(text).check_reach("0.0.0.0:4567", "10.0.0.1:4567");
            listening.err().map(|error| error.to_string())
        };
        let error = refused("socket.ssl_ca=/etc/ca.pem").unwrap();
        for part in
            ["/etc/ca.pem", "10.0.0.1:4567", "quorate.ssl_names=NAME", "quorate.ssl_names=*"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        for enough in
            ["", "socket.ssl_ca=/a;quorate.ssl_names=db1", "socket.ssl_ca=/a;quorate.ssl_names=*"]
        {
            assert_eq!(refused(enough), None, "{enough}");
            assert_eq!(certificates(enough).lack(), None, "{enough}");
        }
        let unbound = certificates("socket.ssl_ca=/a");
        assert!(unbound.check_reach("0.0.0.0:4567", "127.0.0.1:4567").is_ok());
        // Others that come to the wildcard are told what is missing.
        assert!(unbound.lack().unwrap().remedy().contains("quorate.ssl_names"));
    }

    #[test]
    fn without_protection_only_this_host_is_talked_to() {
        let read = |security| Credentials::read(&security, &Operators::default());
        let trust = |security| read(security).unwrap().of_process().unwrap();
        let this_host = trust(Security::ThisHost);
        let admits = |addr: &str| this_host.bars(addr.parse().unwrap()).is_none();
        assert!(admits("127.0.0.1") && admits("127.8.0.1") && admits("::1"));
        assert!(admits("::ffff:127.0.0.1"));
        assert!(!admits("10.0.0.1") && !admits("::ffff:10.0.0.1") && !admits("2001:db8::1"));
        let barred = this_host.bars([10, 0, 0, 1].into()).unwrap();
        assert!(barred.contains("quorate.secret_file"), "{barred}");
        assert_eq!(trust(Security::Insecure).bars([10, 0, 0, 1].into()), None);
    }
}
