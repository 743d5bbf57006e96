//! The data of a write set as a server is given it: unpacked, and that of a large transaction put together again from
//! the log.
//!
//! Invariant: what a write set says of its data is its origin's word. Memory is claimed by what is there, not by what
//! was said; and whether it is true is found alike on all nodes that have the entries.

use crate::fate::trx::Fate;
use crate::group::Group;
use crate::link::Link;
use crate::local::Local;
use bytes::Bytes;
use quorate_certify::{Header, Packed, PartsOf, WriteSet};

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
    assemble(&*link.group, origin, fate, &parts, &places)
}

/// In one piece, as servers want it.
fn assemble(
    group: &dyn Group,
    origin: u128,
    fate: &Fate,
    parts: &PartsOf,
    places: &[u64],
) -> Result<Bytes, Unreadable> {
    let last = unpacked(&fate.payload, fate.packed)?;
    let room = parts.bytes.min(PART_BYTES_MAX * places.len() as u64);
    let room = usize::try_from(room).ok().and_then(|room| room.checked_add(last.len()));
    let mut data = Vec::new();
    let reserved = room.map(|room| data.try_reserve_exact(room));
    let no_memory = || Unreadable::Here("there is no memory for it".into());
    reserved.and_then(Result::ok).ok_or_else(no_memory)?;
    for (number, index) in (0..).zip(places) {
        let read = group.read(*index, 1).map_err(|error| Unreadable::Here(error.to_string()))?;
        let entry = read.into_iter().next();
        let entry = entry.ok_or_else(|| Unreadable::Here("there is nothing".into()))?;
        let part = WriteSet::parse(entry).map_err(|error| Unreadable::Here(error.to_string()))?;
        let header = part.header();
        let expected = Header::part(origin, header.serial, parts.stream, number);
        if *header != (Header { packed: header.packed, ..expected }) {
            let why = format!("log entry {index} is not part {number} of it");
            return Err(Unreadable::Everywhere(why));
        }
        data.extend_from_slice(&unpacked(&part.payload(), header.packed)?);
        if data.len() as u64 > parts.bytes {
            break;
        }
    }
    if data.len() as u64 != parts.bytes {
        let why =
            format!("there are other than the {} bytes that its parts should have", parts.bytes);
        return Err(Unreadable::Everywhere(why));
    }
    data.extend_from_slice(&last);
    Ok(Bytes::from(data))
}

fn unpacked(payload: &Bytes, packed: Option<Packed>) -> Result<Bytes, Unreadable> {
    let Some(packed) = packed else { return Ok(payload.clone()) };
    let data = packed.unpack(payload).map(Bytes::from);
    data.map_err(|error| Unreadable::Everywhere(error.to_string()))
}
