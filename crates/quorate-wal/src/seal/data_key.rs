//! Keys of single files, and how they lie in the heads of these.

use super::chunks::{Salt, TAG_BYTES};
use super::keys::{derive, DiskKeyId, DiskKeys};
use crate::disk::Disk;
use graviola::aead::{AesGcm, XChaCha20Poly1305};
use graviola::hashing::hmac::Hmac;
use graviola::hashing::Sha256;
use std::io;
use std::sync::Arc;

const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;

/// A key of the node's: it wraps the keys of files.
pub(crate) struct KeyOfKeys {
    pub(crate) id: DiskKeyId,
    cipher: XChaCha20Poly1305,
    /// Keyed, for the file of term and vote.
    slots: Hmac<Sha256>,
}

impl KeyOfKeys {
    pub(super) fn new(key: &[u8; KEY_BYTES]) -> Self {
        let cipher = XChaCha20Poly1305::new(derive(key, b"quorate: wrapping of keys of files"));
        let slots = Hmac::new(derive(key, b"quorate: file of term and vote"));
        KeyOfKeys { id: DiskKeys::id_of(key), cipher, slots }
    }

    /// For a slot of the file of term and vote.
    pub(crate) fn mac_of_slots(&self) -> Hmac<Sha256> {
        self.slots.clone()
    }
}

/// The key of one life of one file.
#[derive(Clone)]
pub(crate) struct DataKey {
    /// Keyed with it.
    mac: Arc<Hmac<Sha256>>,
}

impl DataKey {
    fn new(bytes: [u8; KEY_BYTES]) -> Self {
        DataKey { mac: Arc::new(Hmac::new(bytes)) }
    }

    /// What one write to the file is sealed with.
    pub(crate) fn of_write(&self, salt: &Salt) -> WriteKey {
        let mut mac = Hmac::clone(&self.mac);
        mac.update(salt);
        WriteKey { salt: *salt, cipher: AesGcm::new(mac.finish().as_ref()) }
    }

    /// One that everybody knows.
    pub(crate) fn of_fuzzing(bytes: [u8; KEY_BYTES]) -> Self {
        Self::new(bytes)
    }
}

/// The key of one write to one file.
pub(crate) struct WriteKey {
    pub(crate) salt: Salt,
    pub(super) cipher: AesGcm,
}

/// A wrapped data key:
///
/// ```text
/// 0 u64 id of the key that wraps | 8 nonce of 24 bytes | 32 data key, wrapped | 64 tag of 16 bytes
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Envelope([u8; Envelope::BYTES]);

/// Why an envelope is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotOpened {
    NoKey(DiskKeyId),
    /// The key is there, and nothing was wrapped with it that is this.
    Forged,
    /// There is none: the file is in the clear, and such ones are refused.
    Plain,
}

impl Envelope {
    pub(crate) const BYTES: usize = 80;

    /// A new data key, wrapped for a file whose head begins with `head`.
    pub(crate) fn seal(
        key: &KeyOfKeys,
        disk: &dyn Disk,
        head: &[u8],
    ) -> io::Result<(Envelope, DataKey)> {
        let data_key: [u8; KEY_BYTES] = random_bytes(disk)?;
        let nonce: [u8; NONCE_BYTES] = random_bytes(disk)?;
        let (mut wrapped, mut tag) = (data_key, [0; TAG_BYTES]);
        key.cipher.encrypt(&nonce, head, &mut wrapped, &mut tag);
        let mut bytes = [0; Self::BYTES];
        bytes[0..8].copy_from_slice(&key.id.0.to_le_bytes());
        bytes[8..32].copy_from_slice(&nonce);
        bytes[32..64].copy_from_slice(&wrapped);
        bytes[64..].copy_from_slice(&tag);
        Ok((Envelope(bytes), DataKey::new(data_key)))
    }

    pub(crate) fn open(&self, keys: &DiskKeys, head: &[u8]) -> Result<DataKey, NotOpened> {
        let key = keys.find(self.key()).ok_or(NotOpened::NoKey(self.key()))?;
        let nonce = self.0[8..32].try_into().expect("24 bytes");
        let mut data_key: [u8; KEY_BYTES] = self.0[32..64].try_into().expect("32 bytes");
        let opened = key.cipher.decrypt(nonce, head, &mut data_key, &self.0[64..]);
        opened.map(|()| DataKey::new(data_key)).map_err(|_| NotOpened::Forged)
    }

    /// With what it is wrapped.
    pub(crate) fn key(&self) -> DiskKeyId {
        DiskKeyId(u64::from_le_bytes(self.0[0..8].try_into().expect("8 bytes")))
    }

    pub(crate) fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    pub(crate) fn of(bytes: [u8; Self::BYTES]) -> Self {
        Envelope(bytes)
    }
}

/// From where the disk takes its random numbers.
pub(crate) fn random_bytes<const N: usize>(disk: &dyn Disk) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    for part in bytes.chunks_mut(16) {
        part.copy_from_slice(&disk.random()?.to_le_bytes()[..part.len()]);
    }
    Ok(bytes)
}
