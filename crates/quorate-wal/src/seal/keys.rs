//! The keys that a node is given.

use super::data_key::KeyOfKeys;
use graviola::hashing::hmac::Hmac;
use graviola::hashing::Sha256;
use std::fmt;
use std::sync::Arc;

/// What a key is known by. It says nothing about the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskKeyId(pub u64);

impl fmt::Display for DiskKeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

impl fmt::Debug for DiskKeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The keys that the files of a log are, or are to be, encrypted with. Clones share them.
#[derive(Clone, Default)]
pub struct DiskKeys {
    keys: Arc<[KeyOfKeys]>,
    encrypts: bool,
    refuses_plain: bool,
}

impl DiskKeys {
    /// All of these open files that were encrypted with them. With `encrypts`, new files are encrypted
    /// with the first; else, and without any key, they are in the clear.
    ///
    /// The cryptography needs a processor of the last ten years: the caller has looked
    /// (`check_processor` of `quorate-live`), else this panics.
    pub fn new(keys: &[[u8; 32]], encrypts: bool) -> Self {
        let keys: Arc<[KeyOfKeys]> = keys.iter().map(KeyOfKeys::new).collect();
        let encrypts = encrypts && !keys.is_empty();
        DiskKeys { keys, encrypts, refuses_plain: false }
    }

    /// Files in the clear are not read either: whoever can write to the disk, and has no key, puts nothing there
    /// that is taken for this node's own. (The file of term and vote can be read without a
    /// key, but is not believed without its seal.)
    pub fn refusing_plain(self) -> Self {
        DiskKeys { refuses_plain: self.encrypts, ..self }
    }

    pub(crate) fn refuses_plain(&self) -> bool {
        self.refuses_plain
    }

    /// What a key is known by.
    pub fn id_of(key: &[u8; 32]) -> DiskKeyId {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&derive(key, b"quorate: id of a key of files")[..8]);
        DiskKeyId(u64::from_be_bytes(bytes))
    }

    /// Of the key for new files; `None`: they are in the clear.
    pub fn encrypts_with(&self) -> Option<DiskKeyId> {
        self.own().map(|key| key.id)
    }

    pub(crate) fn own(&self) -> Option<&KeyOfKeys> {
        self.keys.first().filter(|_| self.encrypts)
    }

    pub(crate) fn find(&self, id: DiskKeyId) -> Option<&KeyOfKeys> {
        self.keys.iter().find(|key| key.id == id)
    }
}

/// Only what they are known by.
impl fmt::Debug for DiskKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.keys.iter().map(|key| key.id);
        out.debug_struct("DiskKeys")
            .field("keys", &ids.collect::<Vec<_>>())
            .field("encrypts", &self.encrypts)
            .finish()
    }
}

/// For a sentence: "none", or their ids.
impl fmt::Display for DiskKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.keys.is_empty() {
            return out.write_str("none");
        }
        let ids: Vec<String> = self.keys.iter().map(|key| key.id.to_string()).collect();
        out.write_str(&ids.join(", "))
    }
}

/// 256 bits for one purpose.
pub(super) fn derive(key: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new(key);
    mac.update(purpose);
    let mut out = [0; 32];
    out.copy_from_slice(mac.finish().as_ref());
    out
}
