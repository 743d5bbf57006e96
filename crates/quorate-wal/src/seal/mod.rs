//! Encryption of files at rest: what the log, and the snapshots beside it, are sealed with.
//!
//! ```text
//!  key file ──> key (256 bits, has an id)
//!                 │ wraps                          XChaCha20-Poly1305, 192 random bits of nonce
//!                 ▼
//!  head of a file: id, wrapped data key            256 random bits, for this one life of this file
//!                 │ HMAC-SHA256 of a salt          128 random bits, for one write
//!                 ▼
//!  key of one write
//!                 │ seals                          AES-256-GCM, the nonce is the place in the file
//!                 ▼
//!  chunks of up to 1 MiB, each with its tag
//! ```
//!
//! AES-GCM, for it is ten times as fast as ChaCha20 here; a key for each write, for its nonces are too short
//! to be drawn by chance.
//!
//! What holds:
//!
//! * A nonce never comes twice under one key, also not on a machine that was set back: salts are drawn from
//!   the system for each write, and no place of a file is in one write twice.
//! * What is in a file was written into this life of this file, at this place of it: else its tag does
//!   not fit. Heads, which are in the clear, are sealed in as well.
//! * A data key is in no file but wrapped, and a key of the node's in none at all.
//! * Without keys nothing is drawn, copied or looked at: files are as they always were.
//!
//! Whoever can write to the disk can still put an older state of a whole directory back; the group then
//! finds a member that is an older state of itself.

mod chunks;
mod data_key;
mod keys;

pub(crate) use chunks::{sealed_bytes, Salt, CHUNK_BYTES};
pub(crate) use data_key::{random_bytes, DataKey, Envelope, KeyOfKeys, NotOpened, WriteKey};
pub use keys::{DiskKeyId, DiskKeys};

/// Added to the version of a file's plain format: the same content, sealed. It is a matter of each node's
/// own, whatever the level of the group.
pub(crate) const SEALED: u32 = 1 << 8;

#[cfg(test)]
mod tests;
