//! What is read of a certificate (RFC 5280, 4.1) beside what TLS itself looks at: when it ends, and whom it
//! names.

use der::asn1::{AnyRef, GeneralizedTime, ObjectIdentifier, UtcTime};
use der::{Decode, Reader, SliceReader, Tag, TagNumber, Tagged};
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use std::time::SystemTime;

const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

/// Of a certificate that may be anybody's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub not_after: SystemTime,
    /// As it is encoded.
    pub subject: Vec<u8>,
    /// The alternative names that are of these two kinds, in the certificate's order.
    pub names: Vec<AltName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AltName {
    /// In small letters.
    Dns(String),
    Ip(IpAddr),
}

impl Contents {
    pub fn read(certificate: &CertificateDer<'_>) -> der::Result<Contents> {
        SliceReader::new(certificate)?.sequence(|certificate| {
            let contents = certificate.sequence(signed)?;
            pass_over(certificate)?;
            Ok(contents)
        })
    }
}

fn signed<'a, R: Reader<'a>>(signed: &mut R) -> der::Result<Contents> {
    // A version, where it is not the first one; then serial number, algorithm, and issuer.
    if AnyRef::decode(signed)?.tag() != Tag::Integer {
        AnyRef::decode(signed)?;
    }
    AnyRef::decode(signed)?;
    AnyRef::decode(signed)?;
    let not_after = signed.sequence(|validity| {
        time(AnyRef::decode(validity)?)?;
        time(AnyRef::decode(validity)?)
    })?;
    let subject = AnyRef::decode(signed)?.value().to_vec();
    // The public key; then perhaps two numbers that nobody uses, and extensions.
    AnyRef::decode(signed)?;
    let mut names = Vec::new();
    while !signed.is_finished() {
        let field = AnyRef::decode(signed)?;
        if is_marked(field, TagNumber::N3) {
            names = alternative_names(field.value())?;
        }
    }
    Ok(Contents { not_after, subject, names })
}

fn alternative_names(extensions: &[u8]) -> der::Result<Vec<AltName>> {
    let mut names = Vec::new();
    SliceReader::new(extensions)?.sequence(|extensions| {
        while !extensions.is_finished() {
            extensions.sequence(|extension| {
                let kind = ObjectIdentifier::decode(extension)?;
                let mut value = AnyRef::decode(extension)?;
                if value.tag() == Tag::Boolean {
                    value = AnyRef::decode(extension)?;
                }
                if kind == SUBJECT_ALT_NAME {
                    names = SliceReader::new(value.value())?.sequence(general_names)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok(names)
}

fn general_names<'a, R: Reader<'a>>(list: &mut R) -> der::Result<Vec<AltName>> {
    let mut names = Vec::new();
    while !list.is_finished() {
        let name = AnyRef::decode(list)?;
        if is_marked(name, TagNumber::N2) {
            let text = std::str::from_utf8(name.value()).ok();
            names.extend(text.map(|text| AltName::Dns(text.to_ascii_lowercase())));
        } else if is_marked(name, TagNumber::N7) {
            names.extend(address(name.value()).map(AltName::Ip));
        }
    }
    Ok(names)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let of_four = |bytes| <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let of_sixteen = |bytes| <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    of_four(bytes).or_else(|_| of_sixteen(bytes)).ok()
}

fn is_marked(value: AnyRef<'_>, with: TagNumber) -> bool {
    matches!(value.tag(), Tag::ContextSpecific { number, .. } if number == with)
}

fn time(value: AnyRef<'_>) -> der::Result<SystemTime> {
    match value.tag() {
        Tag::UtcTime => Ok(value.decode_as::<UtcTime>()?.to_system_time()),
        _ => Ok(value.decode_as::<GeneralizedTime>()?.to_system_time()),
    }
}

/// All that is left.
fn pass_over<'a>(reader: &mut impl Reader<'a>) -> der::Result<()> {
    while !reader.is_finished() {
        AnyRef::decode(reader)?;
    }
    Ok(())
}
