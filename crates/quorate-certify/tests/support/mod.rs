//! Write sets and keys from raw parts, which need not be what a builder would make.

use bytes::Bytes;
use quorate_certify::*;

/// Encodes a write set with exactly these keys.
pub fn write_set(header: &Header, keys: &[Key]) -> WriteSet {
    let mut bytes = WriteSetBuilder::new().finish(header).to_vec();
    bytes.truncate(80);
    bytes[72..76].copy_from_slice(&(keys.len() as u32).to_le_bytes());
    for key in keys {
        bytes.extend_from_slice(&key.raw().to_le_bytes());
    }
    if header.term != 0 {
        bytes.extend_from_slice(&header.term.to_le_bytes());
    }
    WriteSet::parse(Bytes::from(bytes)).expect("well-formed")
}

pub fn key(path: u64, key_type: KeyType) -> Key {
    Key::from_raw((path + 1) << 2).with_type(key_type)
}
