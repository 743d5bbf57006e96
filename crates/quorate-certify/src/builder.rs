//! Collects the keys and the data of a transaction at its origin.
//!
//! Invariant: a write set has at most `keys_max` keys. One that touches more rows claims whole tables instead: it
//! conflicts with whoever touched these tables and did not see it, or was not seen by it, and with nobody else.
//! With its rows it would fill the window of certification, and whatever was concurrent with it would fail.

use crate::key::PathHash;
use crate::key_table::KeyTable;
use crate::write_set::{HEADER_LEN, TAIL_LEN};
use crate::{flags, Header, Key, KeyType, Kind, Packing, KEYS_MAX_DEFAULT};
use bytes::Bytes;

/// One write set in the making; then, as a streaming transaction goes on, the next fragment.
///
/// The data is appended behind room for the header and the keys are appended last, so
/// [`finish`](Self::finish) copies the keys and 80 bytes, not the data.
pub struct WriteSetBuilder {
    /// Room for the header, then the data. Empty until there is data.
    buffer: Vec<u8>,
    keys: Vec<Key>,
    /// What each of them is.
    places: Vec<Place>,
    /// Path → position in `keys`.
    seen: KeyTable<u32>,
    keys_max: usize,
    /// It claims whole tables.
    wide: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Other,
    /// A table of which there are rows.
    Table,
    Row,
}

impl Default for WriteSetBuilder {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            keys: Vec::new(),
            places: Vec::new(),
            seen: KeyTable::default(),
            keys_max: KEYS_MAX,
            wide: false,
        }
    }
}

impl WriteSetBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// With fewer keys than others, at most.
    pub fn with_keys_max(keys_max: usize) -> Self {
        Self { keys_max, ..Self::default() }
    }

    /// Adds what the transaction touched: the leaf as `key_type`, every prefix of it, the whole
    /// server included, as [`KeyType::PREFIX`]. No parts at all: the server itself is the leaf.
    /// A path that was added before keeps the stronger type.
    pub fn append_key(&mut self, parts: &[&[u8]], key_type: KeyType) {
        let mut path = PathHash::SERVER;
        for (depth, part) in parts.iter().enumerate() {
            let place = match depth {
                TABLE_PARTS if self.wide => {
                    return self.add(path, KeyType::Exclusive, Place::Table)
                }
                TABLE_PARTS => Place::Table,
                0..TABLE_PARTS => Place::Other,
                _ => Place::Row,
            };
            self.add(path, KeyType::PREFIX, place);
            path = path.child(part);
        }
        let place = if parts.len() > TABLE_PARTS { Place::Row } else { Place::Other };
        self.add(path, key_type, place);
        if self.keys.len() > self.keys_max && !self.wide {
            self.widen();
        }
    }

    pub fn append_data(&mut self, data: &[u8]) {
        if self.buffer.is_empty() {
            let keys = (self.keys.len() + 1).min(KEYS_KEPT) * Key::ENCODED_LEN + TAIL_LEN;
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
        self.finish_packed(header, None)
    }

    /// As [`Self::finish`], with the data packed where that wins. Nobody but members of a level that knows it can
    /// read that.
    pub fn finish_packed(&mut self, header: &Header, packing: Option<Packing>) -> Bytes {
        if header.kind == Kind::WRITE_SET && !header.has(flags::ROLLBACK) {
            self.add(PathHash::SERVER, KeyType::PREFIX, Place::Other);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(buffer.len().max(HEADER_LEN), 0);
        let bytes = encode(buffer, *header, packing, &self.keys);
        self.clear();
        bytes
    }

    /// The first bytes of the data, at most so many: a part. The rest stays, and so do the keys.
    pub fn take_part(&mut self, bytes_max: usize) -> Part {
        let end = HEADER_LEN + bytes_max.min(self.data_len());
        let mut part = match end < self.buffer.len() {
            true => {
                let part = self.buffer[..end].to_vec();
                self.buffer.drain(HEADER_LEN..end);
                part
            }
            false => std::mem::take(&mut self.buffer),
        };
        part.resize(end, 0);
        Part(part)
    }

    /// Forgets the data appended since the last `finish`, and keeps the keys.
    pub fn drop_data(&mut self) {
        self.buffer = Vec::new();
    }

    /// Forgets everything appended since the last `finish`.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.keys.clear();
        self.keys.shrink_to(KEYS_KEPT);
        self.places.clear();
        self.places.shrink_to(KEYS_KEPT);
        self.seen.clear();
        self.wide = false;
    }

    /// Gives up the rows, and claims their tables. What is neither keeps its type.
    fn widen(&mut self) {
        self.wide = true;
        let places = std::mem::take(&mut self.places);
        let keys = std::mem::take(&mut self.keys);
        self.seen = KeyTable::default();
        for (key, place) in keys.into_iter().zip(places) {
            match place {
                Place::Row => {}
                Place::Table => self.add_key(key.with_type(KeyType::Exclusive), place),
                Place::Other => self.add_key(key, place),
            }
        }
    }

    fn add(&mut self, path: PathHash, key_type: KeyType, place: Place) {
        self.add_key(Key::new(path, key_type), place);
    }

    fn add_key(&mut self, key: Key, place: Place) {
        let at = self.keys.len() as u32;
        let (at, inserted) = self.seen.get_or_insert(Key::from_raw(key.path()), at);
        let at = *at as usize;
        if inserted {
            self.keys.push(key);
            self.places.push(place);
            return;
        }
        let known = &mut self.keys[at];
        *known = known.with_type(known.key_type().max(key.key_type()));
        if place == Place::Table {
            self.places[at] = place;
        }
    }
}

/// A part of a large transaction's data, behind room for a header.
pub struct Part(Vec<u8>);

impl Part {
    pub fn data_len(&self) -> usize {
        self.0.len() - HEADER_LEN
    }

    /// The bytes to propose.
    pub fn finish(self, header: &Header, packing: Option<Packing>) -> Bytes {
        encode(self.0, *header, packing, &[])
    }
}

/// What is proposed with the data of `buffer`, which stands behind room for the header.
fn encode(
    mut buffer: Vec<u8>,
    mut header: Header,
    packing: Option<Packing>,
    keys: &[Key],
) -> Bytes {
    if let Some((packed, how)) = packing.and_then(|packing| packing.pack(&buffer)) {
        buffer = packed;
        header.packed = Some(how);
    }
    let data_len = buffer.len() - HEADER_LEN;
    buffer.reserve(keys.len() * Key::ENCODED_LEN + TAIL_LEN);
    for key in keys {
        buffer.extend_from_slice(&key.raw().to_le_bytes());
    }
    header.encode_tail(&mut buffer);
    buffer[..HEADER_LEN].copy_from_slice(&header.encode(data_len as u64, keys.len() as u32));
    // The log's caches count lengths, not capacities.
    if buffer.capacity() - buffer.len() > buffer.len() / 4 {
        buffer.shrink_to_fit();
    }
    Bytes::from(buffer)
}

/// Schema and table; what is below is a row.
const TABLE_PARTS: usize = 2;

/// What is above it is hard on the tables that it claims: writes to them at another member fail until that has
/// applied it, and it fails itself if such a write is on its way meanwhile, however often it is tried. So a batch of
/// some hundred thousand rows beside other writers of its table keeps its rows.
///
/// What is below it costs everybody: nobody hears a verdict while it is sequenced (0.1 s with the most keys), its
/// origin needs 16 MiB to know them again, and all that a member proposes fails once the window has no room any more
/// for what is sequenced behind the one that it still applies. With a sixth of the window, those are five more.
const KEYS_MAX: usize = (KEYS_MAX_DEFAULT / 6) as usize;

/// Bytes; the smallest buffer worth allocating for a transaction's data.
const BUFFER_MIN: usize = 1024;

/// Keys; the capacity kept for the next fragment, and taken for them behind the data before they are all known.
const KEYS_KEPT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Certifier, Outcome, WriteSet};

    fn row<'a>(table: &'a [u8], number: &'a [u8]) -> [&'a [u8]; 3] {
        [b"shop", table, number]
    }

    fn write_set(origin: u128, serial: u64, builder: &mut WriteSetBuilder) -> WriteSet {
        let header = Header::transaction(origin, serial, 0);
        WriteSet::parse(builder.finish(&header)).unwrap()
    }

    #[test]
    fn who_touches_too_many_rows_claims_their_tables_and_fails_nobody_else() {
        let mut wide = WriteSetBuilder::with_keys_max(9);
        for number in 0..20_u8 {
            wide.append_key(&row(b"big", &[number]), KeyType::Exclusive);
        }
        wide.append_key(&row(b"other", b"1"), KeyType::Update);
        assert!(wide.key_count() <= 9, "{}", wide.key_count());
        let mut certifier = Certifier::new(16);
        assert_eq!(certifier.sequence(&write_set(1, 1, &mut wide)).outcome, Outcome::Ok);
        let mut serial = 0;
        let mut concurrent = |path: &[&[u8]]| {
            serial += 1;
            let mut small = WriteSetBuilder::new();
            small.append_key(path, KeyType::Exclusive);
            certifier.sequence(&write_set(2, serial, &mut small)).outcome
        };
        assert_eq!(concurrent(&row(b"small", b"7")), Outcome::Ok);
        assert_eq!(concurrent(&row(b"big", b"77")), Outcome::Conflict { with: 1 });
        assert_eq!(concurrent(&row(b"other", b"2")), Outcome::Conflict { with: 1 });
        assert_eq!(concurrent(&[b"shop", b"big"]), Outcome::Conflict { with: 1 });
        assert_eq!(concurrent(&[b"store", b"big"]), Outcome::Ok);
    }

    #[test]
    fn two_large_ones_fail_nobody_who_has_seen_neither_but_for_what_they_touched() {
        let update = |origin, serial, table: &[u8], rows: std::ops::RangeInclusive<u64>| {
            let mut builder = WriteSetBuilder::new();
            for number in rows {
                builder.append_key(&row(table, &number.to_be_bytes()), KeyType::Update);
            }
            assert!(builder.key_count() <= KEYS_MAX);
            write_set(origin, serial, &mut builder)
        };
        let conflict = Outcome::Conflict { with: 2 };
        let with_server_schema_and_table = 3;
        let most = KEYS_MAX as u64 - with_server_schema_and_table;
        for (rows, beside_them) in [(most, Outcome::Ok), (most + 1, conflict)] {
            let mut certifier = Certifier::new(16);
            for (serial, table) in [(1, b"one"), (2, b"two")] {
                let large = certifier.sequence(&update(1, serial, table, 1..=rows));
                assert_eq!(large.outcome, Outcome::Ok);
            }
            let mut small = |serial, table, number| {
                certifier.sequence(&update(2, serial, table, number..=number)).outcome
            };
            assert_eq!(small(1, b"small", 7), Outcome::Ok, "{rows}");
            assert_eq!(small(2, b"two", 7), conflict, "{rows}");
            assert_eq!(small(3, b"two", rows + 1), beside_them, "{rows}");
        }
    }

    #[test]
    fn the_next_write_set_has_its_rows_again() {
        let mut builder = WriteSetBuilder::with_keys_max(6);
        let keys = |builder: &mut WriteSetBuilder, rows: u8| {
            for number in 0..rows {
                builder.append_key(&row(b"big", &[number]), KeyType::Exclusive);
            }
            write_set(1, 1, builder).keys().collect::<Vec<Key>>()
        };
        let wide = keys(&mut builder, 4);
        assert_eq!(wide.len(), 3, "server, schema, table");
        assert_eq!(wide.iter().filter(|key| key.key_type() == KeyType::Exclusive).count(), 1);
        let narrow = keys(&mut builder, 3);
        assert_eq!(narrow.len(), 6);
        assert_eq!(narrow, keys(&mut WriteSetBuilder::new(), 3));
    }
}
