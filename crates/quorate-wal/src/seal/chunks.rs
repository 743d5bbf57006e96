//! Sealing and opening, in place.
//!
//! Something long is sealed in chunks, so that it need not be in memory twice. A chunk knows where in the
//! file it stands (its nonce says so), and its file's or record's head (sealed in with it), which says how
//! many there are: none can be moved, left out or put in.

use super::data_key::{DataKey, WriteKey};

/// Random bits, drawn for one write: they make its key.
pub(crate) type Salt = [u8; 16];

/// As much as one chunk holds, without its tag.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;
pub(crate) const TAG_BYTES: usize = 16;

/// What so many bytes take, sealed; also none of them have a tag.
pub(crate) const fn sealed_bytes(plain: usize) -> usize {
    let chunks = plain.div_ceil(CHUNK_BYTES);
    plain + TAG_BYTES * if chunks == 0 { 1 } else { chunks }
}

impl WriteKey {
    /// Seals what `buf` holds from `from` on, at most a chunk, and appends its tag. It will stand at `place`
    /// (bytes) of the file.
    pub(crate) fn seal(&self, place: u64, head: &[u8], buf: &mut Vec<u8>, from: usize) {
        debug_assert!(buf.len() - from <= CHUNK_BYTES);
        let mut tag = [0; TAG_BYTES];
        self.cipher.encrypt(&nonce(place), head, &mut buf[from..], &mut tag);
        buf.extend_from_slice(&tag);
    }
}

impl DataKey {
    /// Opens the chunks that `bytes` consists of and that stand at `place` of the file. What they hold is
    /// at the beginning of `bytes` then, and so long. `None`: a tag does not fit; some bytes are zeros now.
    pub(crate) fn open(
        &self,
        salt: &Salt,
        place: u64,
        head: &[u8],
        bytes: &mut [u8],
    ) -> Option<usize> {
        let (key, mut from, mut to) = (self.of_write(salt).cipher, 0, 0);
        loop {
            let end = bytes.len().min(from + CHUNK_BYTES + TAG_BYTES);
            let len = (end - from).checked_sub(TAG_BYTES)?;
            let (chunk, tag) = bytes[from..end].split_at_mut(len);
            key.decrypt(&nonce(place + from as u64), head, chunk, tag).ok()?;
            if from != to {
                bytes.copy_within(from..from + len, to);
            }
            (from, to) = (end, to + len);
            if from == bytes.len() {
                return Some(to);
            }
        }
    }
}

fn nonce(place: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&place.to_le_bytes());
    nonce
}
