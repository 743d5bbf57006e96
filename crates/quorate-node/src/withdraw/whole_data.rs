//! The data of a large transaction, put together again from the log.

use super::Withdrawal;
use crate::fate::trx::Fate;
use crate::group::Group;
use crate::link::Link;
use bytes::Bytes;
use quorate_certify::{Packed, PartsOf, WriteSet};

impl Withdrawal {
    /// What the server is to apply: the data of a write set, or all of a transaction with parts. `None`: the log
    /// here does not reach back to these, as it was begun from another member's in between; the node fetches
    /// another state then.
    pub fn whole_data(&self, link: &Link, fate: &Fate) -> Option<Bytes> {
        let whole = match fate.parts {
            Some(parts) => self.assemble(&*link.group, fate, &parts),
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
    fn assemble(&self, group: &dyn Group, fate: &Fate, parts: &PartsOf) -> Result<Bytes, String> {
        let places = self.local.part_places.of(fate.seqno).ok_or("nobody noted where they are")?;
        let last = unpacked(&fate.payload, fate.packed)?;
        let mut data = Vec::new();
        for (number, index) in places.iter().enumerate() {
            let read = group.read(*index, 1).map_err(|error| error.to_string())?;
            let entry = read.into_iter().next().ok_or("there is nothing")?;
            let part = WriteSet::parse(entry).map_err(|error| error.to_string())?;
            let part = unpacked(&part.payload(), part.header().packed)?;
            if number == 0 {
                // All but the last are as long as the first.
                data.reserve_exact(part.len() * places.len() + last.len());
            }
            data.extend_from_slice(&part);
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
