//! Collects the keys and the data of a transaction at its origin.

use crate::key::PathHash;
use crate::key_table::KeyTable;
use crate::write_set::{HEADER_LEN, TERM_LEN};
use crate::{flags, Header, Key, KeyType, Kind};
use bytes::Bytes;

/// One write set in the making; then, as a streaming transaction goes on, the next fragment.
///
/// The data is appended behind room for the header and the keys are appended last, so
/// [`finish`](Self::finish) copies the keys and 80 bytes, not the data.
#[derive(Default)]
pub struct WriteSetBuilder {
    /// Room for the header, then the data. Empty until there is data.
    buffer: Vec<u8>,
    keys: Vec<Key>,
    /// Path → position in `keys`.
    seen: KeyTable<u32>,
}

impl WriteSetBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what the transaction touched: the leaf as `key_type`, every prefix of it, the whole
    /// server included, as [`KeyType::PREFIX`]. No parts at all: the server itself is the leaf.
    /// A path that was added before keeps the stronger type.
    pub fn append_key(&mut self, parts: &[&[u8]], key_type: KeyType) {
        let mut path = PathHash::SERVER;
        for part in parts {
            self.add(path, KeyType::PREFIX);
            path = path.child(part);
        }
        self.add(path, key_type);
    }

    pub fn append_data(&mut self, data: &[u8]) {
        if self.buffer.is_empty() {
            let keys = (self.keys.len() + 1) * Key::ENCODED_LEN + TERM_LEN;
            self.buffer.reserve((HEADER_LEN + data.len() + keys).max(BUFFER_MIN));
            self.buffer.resize(HEADER_LEN, 0);
        }
        self.buffer.extend_from_slice(data);
    }

    pub fn data_len(&self) -> usize {
        self.buffer.len().saturating_sub(HEADER_LEN)
    }

    /// Distinct keys so far, prefixes included.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of the finished write set (without a term), to hold against the limit on its size.
    pub fn encoded_len(&self) -> usize {
        HEADER_LEN + self.data_len() + self.keys.len() * Key::ENCODED_LEN
    }

    /// Nothing was appended since the start or the last `finish`.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.keys.is_empty()
    }

    /// The bytes to propose. The builder is empty again afterwards, ready for the next fragment.
    ///
    /// Every write set but a rollback carries the key of the whole server, at least as
    /// [`KeyType::PREFIX`], so that it meets whoever claims the server.
    pub fn finish(&mut self, header: &Header) -> Bytes {
        if header.kind == Kind::WRITE_SET && !header.has(flags::ROLLBACK) {
            self.add(PathHash::SERVER, KeyType::PREFIX);
        }
        let data_len = self.data_len();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(HEADER_LEN + data_len, 0);
        buffer.reserve(self.keys.len() * Key::ENCODED_LEN + TERM_LEN);
        for key in &self.keys {
            buffer.extend_from_slice(&key.raw().to_le_bytes());
        }
        if header.term != 0 {
            buffer.extend_from_slice(&header.term.to_le_bytes());
        }
        buffer[..HEADER_LEN]
            .copy_from_slice(&header.encode(data_len as u64, self.keys.len() as u32));
        self.clear();
        // The log's caches count lengths, not capacities.
        if buffer.capacity() - buffer.len() > buffer.len() / 4 {
            buffer.shrink_to_fit();
        }
        Bytes::from(buffer)
    }

    /// Forgets everything appended since the last `finish`.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.keys.clear();
        self.keys.shrink_to(KEYS_KEPT);
        self.seen.clear();
    }

    fn add(&mut self, path: PathHash, key_type: KeyType) {
        let key = Key::new(path, key_type);
        let at = self.keys.len() as u32;
        let (at, inserted) = self.seen.get_or_insert(Key::from_raw(key.path()), at);
        if inserted {
            self.keys.push(key);
        } else {
            let known = &mut self.keys[*at as usize];
            *known = known.with_type(known.key_type().max(key_type));
        }
    }
}

/// Bytes; the smallest buffer worth allocating for a transaction's data.
const BUFFER_MIN: usize = 1024;

/// Keys; the capacity kept for the next fragment.
const KEYS_KEPT: usize = 1024;
