//! Rows and what is written to them.

use crate::oracle::Tag;
use std::collections::BTreeMap;

pub type Key = u8;
pub type Rows = BTreeMap<Key, Vec<Tag>>;

/// Stands for the table's definition.
pub const SCHEMA: Key = Key::MAX;

/// Where the rows are.
pub const TABLE: &str = "t";

/// The table that DDL changes: the rows', or one that no transaction uses.
pub fn table_of(ddl: Tag) -> &'static str {
    if ddl % 5 == 0 {
        "u"
    } else {
        TABLE
    }
}

/// A row's new image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    pub key: Key,
    /// The [`digest_of`] the row that was read.
    pub seen: u64,
    /// What is added to it.
    pub tag: Tag,
}

pub type Writes = Vec<Write>;

/// Of what is written.
pub(super) fn digest(writes: &[Write]) -> u64 {
    hash(encode(writes).into_iter())
}

/// A row's content, as a number.
pub(super) fn digest_of(row: &[Tag]) -> u64 {
    hash(row.iter().flat_map(|tag| tag.to_le_bytes()))
}

fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Of one row image.
const WRITE_LEN: usize = 17;

/// The row events of a write set.
pub fn encode(writes: &[Write]) -> Vec<u8> {
    let mut out = Vec::with_capacity(writes.len() * WRITE_LEN);
    for Write { key, seen, tag } in writes {
        out.push(*key);
        out.extend_from_slice(&seen.to_le_bytes());
        out.extend_from_slice(&tag.to_le_bytes());
    }
    out
}

/// What [`encode`] made; `None` if it is cut off.
pub fn decode(bytes: &[u8]) -> Option<Writes> {
    let images = bytes.chunks_exact(WRITE_LEN);
    if !images.remainder().is_empty() {
        return None;
    }
    images
        .map(|image| {
            let (key, rest) = image.split_first()?;
            let (seen, tag) = rest.split_first_chunk()?;
            let tag = Tag::from_le_bytes(tag.try_into().ok()?);
            Some(Write { key: *key, seen: u64::from_le_bytes(*seen), tag })
        })
        .collect()
}
