//! The certifier's state as bytes: for a member's own restart, and for members too far behind.
//!
//! ```text
//! magic "qcrt", version u8 = 3, window u32, keys_max u64, floor i64, barrier i64,
//! origin count u32, item count u32, key count u64, member count u32,
//! origins  u128 each, in order of first appearance
//! items    class u8, origin's place in the list u32, serial u64, key count u32, kin epoch u16;
//!          oldest first
//! keys     u64 each, oldest first
//! members  u128 and since i64 each, by id
//! checksum XXH3-64 of all before
//! ```
//!
//! All little-endian. Version 2, whose items have no epoch (it was 0), is read, too. Only the window is written: the index follows from it. Equal states give
//! equal bytes.

use crate::chunks::Chunks;
use crate::members::Members;
use crate::window::{Class, Item};
use crate::{Certifier, Key, Limits, Seqno};
use bytes::Bytes;
use std::collections::HashMap;
use twox_hash::XxHash3_64;

const MAGIC: [u8; 4] = *b"qcrt";
const VERSION: u8 = 3;
const VERSION_WITHOUT_EPOCHS: u8 = 2;
const HEAD_LEN: usize = 53;
const ORIGIN_LEN: usize = 16;
const ITEM_LEN: usize = 19;
const ITEM_WITHOUT_EPOCH_LEN: usize = 17;
const MEMBER_LEN: usize = 24;
const CHECKSUM_LEN: usize = 8;
/// More than any group would configure; both bound what a snapshot can make a member allocate.
pub(crate) const WINDOW_MAX: u32 = 1 << 20;
const KEYS_LIMIT_MAX: u64 = 1 << 22;
/// Far beyond any history, and far from overflow.
pub(crate) const SEQNO_MAX: Seqno = 1 << 60;

/// The snapshot cannot be used. The group's log is unharmed: the member must start from another
/// snapshot, its own older one or a peer's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("certification snapshot of {bytes} bytes is truncated or damaged; start from another")]
    Damaged { bytes: usize },
    #[error("certification snapshot has version {0}, this member reads {VERSION}: a newer member wrote it; upgrade this one")]
    Version(u8),
    #[error("certification snapshot contradicts itself ({0}) though its checksum is right: its writer has a bug; start from another member's")]
    Inconsistent(&'static str),
}

/// A certifier's state at one place of the log. Taking it costs little, for it shares what it has with the certifier,
/// which goes on; making bytes of it takes long, and can be done by whoever has the time.
pub struct Frozen {
    limits: Limits,
    floor: Seqno,
    barrier: Seqno,
    items: Chunks<Item>,
    keys: Chunks<Key>,
    members: Members,
}

impl Frozen {
    /// The whole state. [`restore`](Certifier::restore)d, it gives the same verdicts from there on.
    pub(crate) fn encode_to(&self, out: &mut Vec<u8>) {
        let (start, item_count) = (out.len(), self.items.len());
        let mut origins = Vec::new();
        let mut places = HashMap::new();
        let mut items = Vec::with_capacity(item_count * ITEM_LEN);
        for item in self.items.iter() {
            let place = *places.entry(item.origin).or_insert_with(|| {
                origins.push(item.origin);
                origins.len() as u32 - 1
            });
            items.push(item.class as u8);
            items.extend_from_slice(&place.to_le_bytes());
            items.extend_from_slice(&item.serial.to_le_bytes());
            items.extend_from_slice(&item.keys.to_le_bytes());
            items.extend_from_slice(&item.kin_epoch.to_le_bytes());
        }
        let members = self.members.entries();
        let body_len = origins.len() * ORIGIN_LEN
            + items.len()
            + self.keys.len() * Key::ENCODED_LEN
            + members.len() * MEMBER_LEN;
        out.reserve_exact(HEAD_LEN + body_len + CHECKSUM_LEN);
        out.extend_from_slice(&MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&self.limits.window.to_le_bytes());
        out.extend_from_slice(&self.limits.keys_max.to_le_bytes());
        out.extend_from_slice(&self.floor.to_le_bytes());
        out.extend_from_slice(&self.barrier.to_le_bytes());
        out.extend_from_slice(&(origins.len() as u32).to_le_bytes());
        out.extend_from_slice(&(item_count as u32).to_le_bytes());
        out.extend_from_slice(&(self.keys.len() as u64).to_le_bytes());
        out.extend_from_slice(&(members.len() as u32).to_le_bytes());
        for origin in &origins {
            out.extend_from_slice(&origin.to_le_bytes());
        }
        out.extend_from_slice(&items);
        for key in self.keys.iter() {
            out.extend_from_slice(&key.raw().to_le_bytes());
        }
        for (id, since) in members {
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&since.to_le_bytes());
        }
        let checksum = XxHash3_64::oneshot(&out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }
}

impl Certifier {
    pub(crate) fn freeze(&self) -> Frozen {
        let window = self.window();
        Frozen {
            limits: self.limits(),
            floor: window.floor(),
            barrier: self.barrier(),
            items: window.items().clone(),
            keys: self.index().keys(window),
            members: self.members().clone(),
        }
    }

    /// The whole state, as it is now. [`restore`](Self::restore)d, it gives the same verdicts from here on.
    pub fn snapshot(&self) -> Bytes {
        let mut out = Vec::new();
        self.freeze().encode_to(&mut out);
        Bytes::from(out)
    }

    /// The state that [`snapshot`](Self::snapshot) wrote. The caller compares
    /// [`limits`](Self::limits) with the group's.
    pub fn restore(bytes: &[u8]) -> Result<Certifier, RestoreError> {
        let damaged = RestoreError::Damaged { bytes: bytes.len() };
        let Some((content, checksum)) = bytes.split_last_chunk::<CHECKSUM_LEN>() else {
            return Err(damaged);
        };
        if XxHash3_64::oneshot(content) != u64::from_le_bytes(*checksum) {
            return Err(damaged);
        }
        let mut reader = Reader(content);
        if reader.take()? != MAGIC {
            return Err(damaged);
        }
        let [version] = reader.take()?;
        match version {
            VERSION => restore_content(reader, ITEM_LEN),
            VERSION_WITHOUT_EPOCHS => restore_content(reader, ITEM_WITHOUT_EPOCH_LEN),
            newer => Err(RestoreError::Version(newer)),
        }
    }
}

fn restore_content(mut reader: Reader<'_>, item_len: usize) -> Result<Certifier, RestoreError> {
    use RestoreError::Inconsistent;
    let window = u32::from_le_bytes(reader.take()?);
    let keys_max = u64::from_le_bytes(reader.take()?);
    let floor = Seqno::from_le_bytes(reader.take()?);
    let barrier = Seqno::from_le_bytes(reader.take()?);
    let origin_count = u32::from_le_bytes(reader.take()?);
    let item_count = u32::from_le_bytes(reader.take()?);
    let key_count = u64::from_le_bytes(reader.take()?);
    let member_count = u32::from_le_bytes(reader.take()?);
    if window == 0 || window > WINDOW_MAX {
        return Err(Inconsistent("window out of bounds"));
    }
    if keys_max > KEYS_LIMIT_MAX {
        return Err(Inconsistent("limit of keys out of bounds"));
    }
    if item_count > window || key_count > keys_max {
        return Err(Inconsistent("more than its own limits allow"));
    }
    if !(0..SEQNO_MAX).contains(&floor) {
        return Err(Inconsistent("seqno out of bounds"));
    }
    if !(floor..=floor + Seqno::from(item_count)).contains(&barrier) {
        return Err(Inconsistent("barrier outside the window"));
    }
    let origins = reader.records(ORIGIN_LEN, u64::from(origin_count))?;
    let items = reader.records(item_len, u64::from(item_count))?;
    let mut keys = reader.records(Key::ENCODED_LEN, key_count)?;
    let members = reader.records(MEMBER_LEN, u64::from(member_count))?;
    if !reader.0.is_empty() {
        return Err(Inconsistent("bytes left over"));
    }

    let mut certifier = Certifier::starting_at(Limits { window, keys_max }, floor);
    certifier.reserve(keys.len());
    let mut origins_used = 0;
    for record in items {
        let mut record = Reader(record);
        let [class] = record.take()?;
        let place = u32::from_le_bytes(record.take()?) as usize;
        let serial = u64::from_le_bytes(record.take()?);
        let own_keys = u32::from_le_bytes(record.take()?);
        let kin_epoch = match item_len {
            ITEM_LEN => u16::from_le_bytes(record.take()?),
            _ => 0,
        };
        let class = *Class::ALL.get(usize::from(class)).ok_or(Inconsistent("unknown class"))?;
        if place > origins_used || place >= origins.len() {
            return Err(Inconsistent("unknown origin"));
        }
        origins_used = origins_used.max(place + 1);
        let origin = Reader(origins.clone().nth(place).unwrap_or_default()).take()?;
        if own_keys as usize > keys.len() {
            return Err(Inconsistent("too few keys"));
        }
        if own_keys > 0 && matches!(class, Class::View | Class::Failed) {
            return Err(Inconsistent("keys of an item that has none"));
        }
        let origin = u128::from_le_bytes(origin);
        let item = Item { origin, serial, kin_epoch, class, keys: own_keys, digest: 0 };
        certifier.admit(item, keys.clone().map(read_key));
        if own_keys > 0 {
            keys.nth(own_keys as usize - 1);
        }
    }
    if keys.len() > 0 || origins_used < origins.len() {
        return Err(Inconsistent("unused keys or origins"));
    }
    certifier.set_barrier(barrier);
    let members = members.map(|record| {
        let mut record = Reader(record);
        Ok((u128::from_le_bytes(record.take()?), Seqno::from_le_bytes(record.take()?)))
    });
    let members = members.collect::<Result<Vec<_>, RestoreError>>()?;
    let members = Members::restore(members, certifier.seqno());
    certifier.set_members(members.ok_or(Inconsistent("members out of order"))?);
    Ok(certifier)
}

fn read_key(raw: &[u8]) -> Key {
    Key::from_raw(u64::from_le_bytes(raw.try_into().expect("records have the length of a key")))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], RestoreError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(RestoreError::Inconsistent("short"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn records(
        &mut self,
        record_len: usize,
        count: u64,
    ) -> Result<std::slice::ChunksExact<'a, u8>, RestoreError> {
        let len = count.checked_mul(record_len as u64).filter(|len| *len <= self.0.len() as u64);
        let len = len.ok_or(RestoreError::Inconsistent("short"))?;
        let (head, rest) = self.0.split_at(len as usize);
        self.0 = rest;
        Ok(head.chunks_exact(record_len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, KeyType, WriteSet, WriteSetBuilder};

    fn grown() -> Certifier {
        let mut certifier = Certifier::new(8);
        certifier.sequence_view([1, 2].into_iter());
        (1..=4).for_each(|serial| write(&mut certifier, serial, 1));
        certifier
    }

    fn write(certifier: &mut Certifier, serial: u64, last_seen: Seqno) {
        let mut builder = WriteSetBuilder::new();
        builder.append_key(&[b"db", b"t", &serial.to_le_bytes()], KeyType::Update);
        let header = Header::transaction(u128::from(serial % 2 + 1), serial, last_seen);
        let bytes = builder.finish(&header);
        certifier.sequence(&WriteSet::parse(bytes).expect("own bytes"));
    }

    #[test]
    fn what_was_taken_stays_as_it_was_while_the_certifier_goes_on() {
        let mut certifier = Certifier::new(2000);
        let mut taken = Vec::new();
        for serial in 1..=9000 {
            let seen = certifier.seqno();
            write(&mut certifier, serial, seen);
            if serial % 1500 == 0 {
                taken.push((certifier.freeze(), certifier.snapshot(), certifier.digest()));
            }
        }
        for (frozen, snapshot, digest) in taken {
            let mut encoded = Vec::new();
            frozen.encode_to(&mut encoded);
            assert!(encoded == snapshot);
            assert_eq!(Certifier::restore(&encoded).map(|again| again.digest()), Ok(digest));
        }
    }

    #[test]
    fn its_version_is_that_of_the_newest_level() {
        assert_eq!(VERSION, quorate_consensus::level::NEWEST.certifier);
    }

    #[test]
    fn a_snapshot_without_epochs_is_read() {
        let now = grown().snapshot();
        let members = 2 * MEMBER_LEN + CHECKSUM_LEN;
        let (content, end) = now.split_at(now.len() - members);
        let items_at = HEAD_LEN + 3 * ORIGIN_LEN;
        let keys_at = items_at + 5 * ITEM_LEN;
        let mut before = content[..items_at].to_vec();
        before[4] = VERSION_WITHOUT_EPOCHS;
        for item in content[items_at..keys_at].chunks(ITEM_LEN) {
            before.extend_from_slice(&item[..ITEM_WITHOUT_EPOCH_LEN]);
        }
        before.extend_from_slice(&content[keys_at..]);
        before.extend_from_slice(&end[..2 * MEMBER_LEN]);
        before.extend_from_slice(&XxHash3_64::oneshot(&before).to_le_bytes());
        let restored = Certifier::restore(&before).expect("the version before");
        assert_eq!(restored.snapshot(), now);
    }
}
