//! The identity that state transfers use: a key and a self-signed certificate made from the group's secret,
//! so that all members have the same without anything being sent around.
//!
//! State transfers are the server's scripts, which know TLS with files alone:
//!
//! ```text
//! transfer.pem      the certificate of the member's own (the first) secret      [sst] tcert
//! transfer-key.pem  its key                                                     [sst] tkey
//! transfer-ca.pem   the certificates of all secrets that are valid now          [sst] tca
//! ```
//!
//! Whoever has the secret can show the certificate, and takes no other. While the secret is changed, members
//! that have both take both.
//!
//! Invariants:
//! - one secret gives one certificate, byte for byte: both sides compare it with the file that they have;
//! - nothing of the secret can be computed from the key, nor from what proofs show of it: it has a domain of
//!   its own;
//! - the files are whole, for their owner alone, and only written if they change.

use super::key_id;
use super::secret::{Secret, Secrets};
use crate::error::GroupError;
use crate::private_file;
use der::pem::{encode_string, LineEnding};
use graviola::hashing::hmac::Hmac;
use graviola::hashing::Sha256;
use graviola::signing::eddsa::Ed25519SigningKey;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const DOMAIN: &[u8] = b"quorate state transfer, key of Ed25519";

/// The files of the transfers' identity in the directory of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Whose certificates are taken.
    pub ca: PathBuf,
}

impl TransferFiles {
    /// They are there once a member with a secret has started.
    pub fn of(dir: &Path) -> TransferFiles {
        TransferFiles {
            cert: dir.join("transfer.pem"),
            key: dir.join("transfer-key.pem"),
            ca: dir.join("transfer-ca.pem"),
        }
    }

    pub(super) fn write(&self, secrets: &Secrets) -> Result<(), GroupError> {
        let own = Identity::of(secrets.own())?;
        let taken = secrets.all().iter().map(|secret| Identity::of(secret)?.certificate_pem());
        let taken: String = taken.collect::<Result<_, _>>()?;
        // Who takes a certificate does so before it is shown; a key stands before its certificate.
        keep(&self.ca, &taken)?;
        keep(&self.key, &own.key_pem()?)?;
        keep(&self.cert, &own.certificate_pem()?)
    }
}

struct Identity {
    key: Ed25519SigningKey,
    certificate: Vec<u8>,
}

impl Identity {
    fn of(secret: &Secret) -> Result<Identity, GroupError> {
        let mut hmac = Hmac::<Sha256>::new(secret.bytes());
        hmac.update(DOMAIN);
        let key = Ed25519SigningKey::from_bytes(hmac.finish().as_ref()).map_err(unwritten)?;
        let mut spki = [0; 64];
        let certificate =
            certificate(&key, key.public_key().to_spki_der(&mut spki).map_err(unwritten)?);
        Ok(Identity { key, certificate })
    }

    fn certificate_pem(&self) -> Result<String, GroupError> {
        encode_string("CERTIFICATE", LineEnding::LF, &self.certificate).map_err(unwritten)
    }

    /// PKCS #8 of the first version (RFC 5208): OpenSSL does not read the second one, with the public key.
    fn key_pem(&self) -> Result<String, GroupError> {
        let seed = item(OCTETS, &[&item(OCTETS, &[self.key.as_seed()])]);
        let pkcs8 = item(SEQUENCE, &[&item(INTEGER, &[&[0]]), &algorithm(), &seed]);
        encode_string("PRIVATE KEY", LineEnding::LF, &pkcs8).map_err(unwritten)
    }
}

fn unwritten(error: impl std::fmt::Debug) -> GroupError {
    let reason = format!("the identity of state transfers cannot be written down: {error:?}");
    GroupError::Tls { reason }
}

const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// X.509 version 3 (RFC 5280), signed by itself, without an end. Ed25519 signs the same with the same bytes.
fn certificate(key: &Ed25519SigningKey, spki: &[u8]) -> Vec<u8> {
    /// 2.5.4.3
    const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
    /// 2.5.29.19
    const BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 0x13];
    const TRUE: [u8; 3] = [0x01, 0x01, 0xff];

    let id = key_id(spki).0;
    // Names differ where keys do: a verifier that looks for a signer by its name finds the right one.
    let digits: String = id[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let name = item(UTF8, &[format!("quorate-{digits}").as_bytes()]);
    let name = item(SEQUENCE, &[&item(OID, &[&COMMON_NAME]), &name]);
    let name = item(SEQUENCE, &[&item(SET, &[&name])]);
    // Positive, and of full length.
    let serial = item(INTEGER, &[&[id[8] & 0x3f | 0x40], &id[9..24]]);
    // The end is "no well-defined expiration date", RFC 5280, 4.1.2.5.
    let (from, until) = (item(UTC_TIME, &[b"200101000000Z"]), item(TIME, &[b"99991231235959Z"]));
    let signer = item(OCTETS, &[&item(SEQUENCE, &[&TRUE])]);
    let signer = item(SEQUENCE, &[&item(OID, &[&BASIC_CONSTRAINTS]), &TRUE, &signer]);
    let parts = [
        item(VERSION, &[&item(INTEGER, &[&[2]])]),
        serial,
        algorithm(),
        name.clone(),
        item(SEQUENCE, &[&from, &until]),
        name,
        spki.to_vec(),
        item(EXTENSIONS, &[&item(SEQUENCE, &[&signer])]),
    ];
    let body = item(SEQUENCE, &[&parts.concat()]);
    let signature = item(BITS, &[&[0], &key.sign(&body)]);
    item(SEQUENCE, &[&body, &algorithm(), &signature])
}

/// Ed25519: 1.3.101.112
fn algorithm() -> Vec<u8> {
    item(SEQUENCE, &[&item(OID, &[&[0x2b, 0x65, 0x70]])])
}

/// One element of DER: tag, length, content.
fn item(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len();
    debug_assert!(length < 1 << 16);
    let (high, low) = ((length >> 8) as u8, length as u8);
    let mut out = match length {
        0..=0x7f => vec![tag, low],
        0x80..=0xff => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    out.extend(content);
    out
}

fn keep(path: &Path, text: &str) -> Result<(), GroupError> {
    let failed = |source: io::Error| GroupError::TransferFile { path: path.to_owned(), source };
    match is_there(path, text).map_err(failed)? {
        true => Ok(()),
        false => private_file::replace(path, text.as_bytes()).map_err(failed),
    }
}

fn is_there(path: &Path, text: &str) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(metadata) => {
            Ok(metadata.mode() & 0o777 == private_file::MODE && fs::read(path)? == text.as_bytes())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
