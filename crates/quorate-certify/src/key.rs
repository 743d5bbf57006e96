//! Certification keys.
//!
//! The server names what a transaction touched by a path of up to three parts (schema, table, row)
//! and a type. Only the hash of the path travels and is compared: two paths with the same hash are
//! taken for the same object, which can cause a needless conflict or dependency, never a missed one.
//!
//! The hash is part of the group protocol and must not change:
//! `h(server) = ROOT`, `h(path / part) = XXH3-64(part, seed = h(path))`. Each part is hashed as a
//! unit of its own length, so `ab/c` and `a/bc` differ. The two lowest bits give way to the type.

use twox_hash::XxHash3_64;

/// `h` of the empty path, the key of the whole server: "Quorate." in ASCII.
const ROOT: u64 = u64::from_le_bytes(*b"Quorate.");

pub(crate) const TYPE_BITS: u64 = 0b11;

/// How a transaction used the object; wsrep's numbers. Stronger types compare greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum KeyType {
    Shared = 0,
    /// Referenced, not modified: the parent row of a foreign key, and every prefix of a path.
    Reference = 1,
    Update = 2,
    /// Created or deleted; in TOI, whatever the statement is about.
    Exclusive = 3,
}

impl KeyType {
    pub const ALL: [KeyType; 4] =
        [KeyType::Shared, KeyType::Reference, KeyType::Update, KeyType::Exclusive];

    /// The type of the prefixes of a path, whatever the type of its leaf (as in Galera 26.4.23).
    pub const PREFIX: KeyType = KeyType::Reference;

    /// `None` for what is not a `wsrep_key_type`.
    pub fn from_wsrep(number: u32) -> Option<KeyType> {
        KeyType::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// A hashed path (62 bits) and a type (2 bits). The hash is never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl Key {
    /// Bytes of a key in a write set.
    pub const ENCODED_LEN: usize = 8;

    pub(crate) fn new(path: PathHash, key_type: KeyType) -> Key {
        Key::from_raw((path.0 & !TYPE_BITS) | key_type as u64)
    }

    /// Every number is a key: the one path hash that tables reserve for "empty" becomes another.
    pub fn from_raw(raw: u64) -> Key {
        if raw & !TYPE_BITS == 0 {
            Key(raw | (TYPE_BITS + 1))
        } else {
            Key(raw)
        }
    }

    pub fn raw(self) -> u64 {
        self.0
    }

    /// The path alone; equal for all types.
    pub fn path(self) -> u64 {
        self.0 & !TYPE_BITS
    }

    pub fn key_type(self) -> KeyType {
        KeyType::ALL[(self.0 & TYPE_BITS) as usize]
    }

    pub fn with_type(self, key_type: KeyType) -> Key {
        Key(self.path() | key_type as u64)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}/{:?}", self.path(), self.key_type())
    }
}

/// The hash of a path so far; see the head of this module.
#[derive(Clone, Copy)]
pub struct PathHash(u64);

impl PathHash {
    pub const SERVER: PathHash = PathHash(ROOT);

    pub fn child(self, part: &[u8]) -> PathHash {
        PathHash(XxHash3_64::oneshot_with_seed(self.0, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_boundaries_matter() {
        let a = PathHash::SERVER.child(b"ab").child(b"c");
        let b = PathHash::SERVER.child(b"a").child(b"bc");
        let c = PathHash::SERVER.child(b"abc");
        assert!(a.0 != b.0 && b.0 != c.0 && a.0 != c.0);
        assert_ne!(PathHash::SERVER.child(b"").0, PathHash::SERVER.0);
    }

    /// These numbers are on disk and on the wire in every group: a change is a protocol change.
    #[test]
    fn hash_is_frozen() {
        let table = PathHash::SERVER.child(b"test").child(b"t1");
        let row = table.child(&[0x80, 0, 0, 1]);
        let long = table.child(&[b'x'; 600]);
        let raw = [PathHash::SERVER, table, row, long].map(|p| Key::new(p, KeyType::Update).raw());
        let frozen =
            [3343206260273018194, 11155405886926312926, 2761127504212336766, 5304322953516952134];
        assert_eq!(raw, frozen);
    }

    #[test]
    fn type_survives_and_zero_path_is_avoided() {
        for key_type in KeyType::ALL {
            let key = Key::from_raw(key_type as u64);
            assert_ne!(key.path(), 0);
            assert_eq!(key.key_type(), key_type);
            assert_eq!(KeyType::from_wsrep(key_type as u32), Some(key_type));
        }
        assert_eq!(KeyType::from_wsrep(4), None);
    }
}
