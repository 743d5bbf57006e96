//! Whom a certificate names, and so what the group knows a member by that shows it.
//!
//! Certificates are renewed, with other keys; the name stays. So what is pinned at admission is the name: the
//! first alternative name that is one of those that `quorate.ssl_names` lists; without such a list the first
//! alternative name that is a DNS name or an IP address; without any the subject.

use super::x509::{AltName, Contents};
use graviola::hashing::{Hash, Sha256};
use quorate_consensus::KeyId;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::IpAddr;

/// What a member with this certificate is known by. `listed`: the names that members may have; empty: any.
pub(super) fn key_of(
    certificate: &CertificateDer<'_>,
    listed: &[ServerName<'_>],
) -> der::Result<KeyId> {
    let Contents { subject, names, .. } = Contents::read(certificate)?;
    let is_listed = |name: &&AltName| listed.iter().any(|listed| covers(name, listed));
    let name = names.iter().find(is_listed).or(names.first());
    Ok(match name {
        Some(AltName::Dns(name)) => key(b"dns", name.as_bytes()),
        Some(AltName::Ip(IpAddr::V4(address))) => key(b"ip", &address.octets()),
        Some(AltName::Ip(IpAddr::V6(address))) => key(b"ip", &address.octets()),
        None => key(b"subject", &subject),
    })
}

/// Whether a certificate for this name is one for the listed one; that it is was found before, by TLS.
fn covers(name: &AltName, listed: &ServerName<'_>) -> bool {
    match (name, listed) {
        (AltName::Dns(name), ServerName::DnsName(listed)) => {
            let listed = listed.as_ref().to_ascii_lowercase();
            let of_all = || Some((name.strip_prefix("*.")?, listed.split_once('.')?.1));
            *name == listed || of_all().is_some_and(|(domain, other)| domain == other)
        }
        (AltName::Ip(address), ServerName::IpAddress(listed)) => *address == IpAddr::from(*listed),
        _ => false,
    }
}

fn key(kind: &[u8], name: &[u8]) -> KeyId {
    let hash = Sha256::hash(&[b"quorate certificate, ", kind, b": ", name].concat());
    let mut digest = [0; KeyId::NAME_BYTES];
    let bytes: &[u8] = hash.as_ref();
    digest.copy_from_slice(&bytes[..KeyId::NAME_BYTES]);
    KeyId::of_name(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str) -> ServerName<'static> {
        ServerName::try_from(name.to_owned()).unwrap()
    }

    #[test]
    fn a_name_covers_itself_and_one_with_an_asterisk_all_of_its_domain() {
        let dns = |name: &str| AltName::Dns(name.into());
        let address = AltName::Ip([10, 0, 0, 1].into());
        for (name, of, covered) in [
            (dns("db1.x"), "DB1.x", true),
            (dns("db1.x"), "db2.x", false),
            (dns("*.x"), "db1.x", true),
            (dns("*.x"), "x", false),
            (dns("*.x"), "a.b.x", false),
            (address.clone(), "10.0.0.1", true),
            (address, "10.0.0.2", false),
            (dns("10.0.0.1"), "10.0.0.1", false),
        ] {
            assert_eq!(covers(&name, &listed(of)), covered, "{name:?} {of}");
        }
    }

    #[test]
    fn names_of_different_kinds_are_different() {
        let ids = [key(b"dns", b"a"), key(b"ip", b"a"), key(b"dns", b"b"), key(b"subject", b"a")];
        for (at, id) in ids.iter().enumerate() {
            assert!(id.is_name() && !ids[..at].contains(id));
        }
    }
}
