//! The seal of a slot: that a node with one of the keys wrote it. Without it, somebody who can write to the disk
//! could say that less of the log had been synced, and cut off its end unnoticed.
//!
//! ```text
//! 192 u64 1 | 200 u64 id of the key | 208 HMAC-SHA256 of 0..192 without the checksum
//! ```
//!
//! Zeros: there is none. What is sealed stays readable: it is no secret.

use super::{SlotError, SLOT_BYTES};
use crate::seal::{DiskKeyId, DiskKeys, KeyOfKeys};
use graviola::hashing::hmac::Hmac;
use graviola::hashing::Sha256;

const SEAL_AT: usize = 192;
const TAG_AT: usize = SEAL_AT + 16;
const TAG_BYTES: usize = 32;

/// Seals the fields, before the checksum is put over all.
pub(super) fn put(bytes: &mut [u8; SLOT_BYTES], key: &KeyOfKeys) {
    let tag = mac(bytes, key).finish();
    bytes[SEAL_AT..SEAL_AT + 8].copy_from_slice(&1u64.to_le_bytes());
    bytes[SEAL_AT + 8..TAG_AT].copy_from_slice(&key.id.0.to_le_bytes());
    bytes[TAG_AT..TAG_AT + TAG_BYTES].copy_from_slice(tag.as_ref());
}

/// Whether a slot, intact by its checksum, may be believed by a node with these keys.
pub(super) fn check(bytes: &[u8; SLOT_BYTES], keys: &DiskKeys) -> Result<(), SlotError> {
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    if u64_at(SEAL_AT) == 0 {
        return if keys.refuses_plain() { Err(SlotError::Plain) } else { Ok(()) };
    }
    let id = DiskKeyId(u64_at(SEAL_AT + 8));
    let key = keys.find(id).ok_or(SlotError::NoKey(id))?;
    let tag = &bytes[TAG_AT..TAG_AT + TAG_BYTES];
    mac(bytes, key).verify(tag).map_err(|_| SlotError::Damaged)
}

fn mac(bytes: &[u8; SLOT_BYTES], key: &KeyOfKeys) -> Hmac<Sha256> {
    let mut mac = key.mac_of_slots();
    mac.update(&bytes[..12]);
    mac.update(&bytes[16..SEAL_AT]);
    mac
}
