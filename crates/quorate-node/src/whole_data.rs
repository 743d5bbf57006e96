//! The data of a write set as a server is given it: unpacked, and that of a large transaction put together again from
//! the log.
//!
//! Invariant: what a write set says of its data is its origin's word. Memory is taken by what is there, not by what was
//! said; and whether it is true is found alike on all nodes that have the entries.

use crate::fate::trx::Fate;
use crate::group::Group;
use crate::link::Link;
use crate::local::Local;
use crate::settings::BYTES_MAX;
use bytes::Bytes;
use quorate_certify::{Header, Packed, PartsOf, UnpackError, WriteSet};

/// More than an origin puts into one part.
const PART_BYTES_MAX: u64 = 4 << 20;

/// Why there is no data to apply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// This node's log does not have it: it was begun from another member's in between, or is damaged.
    Here(String),
    /// It is not what its origin said: no node can apply it, and all find the same.
    Everywhere(String),
}

/// What the server is to apply: the data of a write set, or all of a transaction with parts.
pub fn whole_data(
    local: &Local,
    link: &Link,
    origin: u128,
    fate: &Fate,
) -> Result<Bytes, Unreadable> {
    let Some(parts) = fate.parts else { return unpacked(&fate.payload, fate.packed) };
    let places = local.part_places.of(fate.seqno);
    let places = places.ok_or_else(|| Unreadable::Here("nobody noted where they are".into()))?;
    assemble(|index| read_part(&*link.group, index), origin, fate, &parts, &places)
}

/// In one piece, as servers want it.
fn assemble(
    read: impl Fn(u64) -> Result<WriteSet, Unreadable>,
    origin: u128,
    fate: &Fate,
    parts: &PartsOf,
    places: &[u64],
) -> Result<Bytes, Unreadable> {
    let wrong = |what: String| Err(Unreadable::Everywhere(what));
    if parts.bytes > BYTES_MAX {
        return wrong(format!("no server has {} bytes in one transaction", parts.bytes));
    }
    let mut data = Vec::new();
    // As it is said, so that nothing is moved: no page of it is taken before there is something in it. Should there be
    // no room, it may not be true.
    let said = parts.bytes.min(PART_BYTES_MAX * places.len() as u64) as usize;
    let _unless_no_room = data.try_reserve_exact(said + fate.payload.len());
    for (number, index) in (0..).zip(places) {
        let part = read(*index)?;
        let header = part.header();
        let expected = Header::part(origin, header.serial, parts.stream, number);
        if *header != (Header { packed: header.packed, ..expected }) {
            return wrong(format!("log entry {index} is not part {number} of it"));
        }
        let payload = part.payload();
        let bytes = header.packed.map_or(payload.len() as u64, |packed| packed.bytes);
        if bytes > PART_BYTES_MAX {
            return wrong(format!("part {number} of it has {bytes} bytes"));
        }
        // Before they are unpacked: packed, they may be a thousandth of that.
        if data.len() as u64 + bytes > parts.bytes {
            return wrong(format!("its parts have more than {} bytes", parts.bytes));
        }
        append(&mut data, &unpacked(&payload, header.packed)?)?;
    }
    if data.len() as u64 != parts.bytes {
        return wrong(format!("its parts have {} bytes instead of {}", data.len(), parts.bytes));
    }
    append(&mut data, &unpacked(&fate.payload, fate.packed)?)?;
    Ok(Bytes::from(data))
}

fn read_part(group: &dyn Group, index: u64) -> Result<WriteSet, Unreadable> {
    let read = group.read(index, 1).map_err(|error| Unreadable::Here(error.to_string()))?;
    let entry = read.into_iter().next();
    let entry = entry.ok_or_else(|| Unreadable::Here("there is nothing".into()))?;
    WriteSet::parse(entry).map_err(|error| Unreadable::Here(error.to_string()))
}

fn append(data: &mut Vec<u8>, more: &[u8]) -> Result<(), Unreadable> {
    let no_memory = |_| Unreadable::Here("there is no memory for it".into());
    data.try_reserve(more.len()).map_err(no_memory)?;
    data.extend_from_slice(more);
    Ok(())
}

fn unpacked(payload: &Bytes, packed: Option<Packed>) -> Result<Bytes, Unreadable> {
    let Some(packed) = packed else { return Ok(payload.clone()) };
    packed.unpack(payload).map(Bytes::from).map_err(|error| match error {
        UnpackError::Wrong { .. } => Unreadable::Everywhere(error.to_string()),
        UnpackError::Memory => Unreadable::Here(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_certify::{Codec, Packing, WriteSetBuilder};
    use std::cell::Cell;

    const ORIGIN: u128 = 7;
    const STREAM: u64 = 3;

    /// A part of zeros, packed to next to nothing.
    fn part(index: u64) -> WriteSet {
        let mut builder = WriteSetBuilder::new();
        builder.append_data(&vec![0; PART_BYTES_MAX as usize]);
        let part = builder.take_part(PART_BYTES_MAX as usize);
        let packing = Packing { codec: Codec::Zstd, from: 1 };
        let header = Header::part(ORIGIN, STREAM + index, STREAM, index as u32);
        WriteSet::parse(part.finish(&header, Some(packing))).unwrap()
    }

    fn whole(bytes: u64, places: &[u64], unpacked: &Cell<u64>) -> Result<Bytes, Unreadable> {
        let parts = PartsOf { stream: STREAM, count: places.len() as u32, bytes };
        let read = |index| {
            unpacked.set(unpacked.get() + 1);
            Ok(part(index))
        };
        let (payload, packed) = Default::default();
        let (seqno, depends_on, certified, flags) = (5, 4, true, 0);
        let parts_of = Some(parts);
        let fate = Fate { seqno, depends_on, certified, flags, payload, parts: parts_of, packed };
        assemble(read, ORIGIN, &fate, &parts, places)
    }

    #[test]
    fn what_is_more_than_was_said_is_not_unpacked() {
        assert!(part(0).payload().len() < 10_000);
        let read = Cell::new(0);
        let honest = whole(2 * PART_BYTES_MAX, &[0, 1], &read).unwrap();
        assert_eq!((honest.len() as u64, read.get()), (2 * PART_BYTES_MAX, 2));
        let places: Vec<u64> = (0..10_000).collect();
        read.set(0);
        let error = whole(PART_BYTES_MAX, &places, &read).unwrap_err();
        assert_eq!(read.get(), 2, "it ends with the first part that is too much");
        assert!(matches!(error, Unreadable::Everywhere(what) if what.contains("more than")));
    }
}
