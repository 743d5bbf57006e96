//! Whom a certificate names, and so what the group knows a member by that shows it.
//!
//! Certificates are renewed, with other keys; the names stay. So what is pinned at admission is the set of
//! its alternative names (DNS names and IP addresses), or the subject if there are none.
//!
//! Invariant: it follows from the certificate alone. If it depended on what a node's options list, nodes with
//! different lists would know a member by different names, and refuse each other for good.

use super::x509::{AltName, Contents};
use graviola::hashing::{Hash, Sha256};
use quorate_consensus::KeyId;
use rustls::pki_types::CertificateDer;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What a member with this certificate is known by.
pub(super) fn key_of(certificate: &CertificateDer<'_>) -> der::Result<KeyId> {
    let Contents { subject, names, .. } = Contents::read(certificate)?;
    Ok(match names.is_empty() {
        true => key(&[part(b"subject", &subject)].into()),
        false => key(&names.iter().map(named).collect()),
    })
}

fn named(name: &AltName) -> Vec<u8> {
    match name {
        AltName::Dns(name) => part(b"dns", name.as_bytes()),
        AltName::Ip(IpAddr::V4(address)) => part(b"ip", &address.octets()),
        AltName::Ip(IpAddr::V6(address)) => part(b"ip", &address.octets()),
    }
}

/// With its length, so that no two lists of names are the same bytes.
fn part(kind: &[u8], name: &[u8]) -> Vec<u8> {
    let length = (name.len() as u64).to_le_bytes();
    [kind, &b": "[..], &length, name].concat()
}

fn key(parts: &BTreeSet<Vec<u8>>) -> KeyId {
    let mut said = b"quorate certificate, ".to_vec();
    parts.iter().for_each(|part| said.extend(part));
    let hash = Sha256::hash(&said);
    let mut digest = [0; KeyId::NAME_BYTES];
    let bytes: &[u8] = hash.as_ref();
    digest.copy_from_slice(&bytes[..KeyId::NAME_BYTES]);
    KeyId::of_name(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[AltName]) -> KeyId {
        key(&names.iter().map(named).collect())
    }

    #[test]
    fn the_order_of_names_does_not_matter_and_each_of_them_does() {
        let dns = |name: &str| AltName::Dns(name.into());
        let address = AltName::Ip([10, 0, 0, 1].into());
        let both = of(&[dns("db1"), dns("db1.x")]);
        assert_eq!(of(&[dns("db1.x"), dns("db1"), dns("db1")]), both);
        let others =
            [of(&[dns("db1")]), of(&[dns("db1.x")]), of(&[dns("db1"), dns("db1.x"), address])];
        assert!(others.iter().all(|other| other.is_name() && *other != both));
    }

    #[test]
    fn names_of_different_kinds_are_different() {
        let of = |kind: &[u8], name: &[u8]| key(&[part(kind, name)].into());
        let ids = [of(b"dns", b"a"), of(b"ip", b"a"), of(b"dns", b"b"), of(b"subject", b"a")];
        for (at, id) in ids.iter().enumerate() {
            assert!(id.is_name() && !ids[..at].contains(id));
        }
    }
}
