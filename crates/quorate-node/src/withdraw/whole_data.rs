//! The data of a large transaction, put together again from the log.

use super::Withdrawal;
use crate::fate::trx::Fate;
use crate::group::Group;
use crate::link::Link;
use bytes::Bytes;
use quorate_certify::{Header, Packed, PartsOf, WriteSet};

impl Withdrawal {
    /// What the server is to apply: the data of a write set, or all of a transaction with parts. `None`: the log
    /// here does not reach back to these, as it was begun from another member's in between; the node fetches
    /// another state then.
    pub fn whole_data(&self, link: &Link, origin: u128, fate: &Fate) -> Option<Bytes> {
        let whole = match fate.parts {
            Some(parts) => self.assemble(&*link.group, origin, fate, &parts),
            None => unpacked(&fate.payload, fate.packed),
        };
        let failed = |error| {
            self.start_over(&format!(
                "The data of the transaction of seqno {} cannot be read to apply it: {error}.",
                fate.seqno
            ));
        };
        whole.map_err(failed).ok()
    }

    /// In one piece, as servers want it.
    fn assemble(
        &self,
        group: &dyn Group,
        origin: u128,
        fate: &Fate,
        parts: &PartsOf,
    ) -> Result<Bytes, String> {
        let places = self.local.part_places.of(fate.seqno).ok_or("nobody noted where they are")?;
        let last = unpacked(&fate.payload, fate.packed)?;
        let bytes =
            usize::try_from(parts.bytes).ok().and_then(|bytes| bytes.checked_add(last.len()));
        let mut data = Vec::new();
        let room = bytes.map(|bytes| data.try_reserve_exact(bytes));
        room.and_then(Result::ok).ok_or("there is no memory for it")?;
        for (number, index) in (0..).zip(places.iter()) {
            let read = group.read(*index, 1).map_err(|error| error.to_string())?;
            let entry = read.into_iter().next().ok_or("there is nothing")?;
            let part = WriteSet::parse(entry).map_err(|error| error.to_string())?;
            let header = part.header();
            let expected = Header::part(origin, header.serial, parts.stream, number);
            if *header != (Header { packed: header.packed, ..expected }) {
                return Err(format!("log entry {index} is not part {number} of it"));
            }
            data.extend_from_slice(&unpacked(&part.payload(), header.packed)?);
        }
        if data.len() as u64 != parts.bytes {
            return Err(format!("{} bytes instead of {}", data.len(), parts.bytes));
        }
        data.extend_from_slice(&last);
        Ok(Bytes::from(data))
    }
}

fn unpacked(payload: &Bytes, packed: Option<Packed>) -> Result<Bytes, String> {
    match packed {
        None => Ok(payload.clone()),
        Some(packed) => packed.unpack(payload).map(Bytes::from).map_err(|error| error.to_string()),
    }
}
