//! The snapshot that is coming in. There is one at most, whoever sends: it is put together in memory, and as long as
//! no leader is known, everybody who was let in may begin one.
//!
//! The newest that the machine awaits takes the place of the one before. Of that, the rest is passed over: an old
//! leader may still be sending when the new one begins.

use bytes::Bytes;
use parking_lot::Mutex;
use quorate_consensus::MemberId;
use quorate_group::{Assembly, Received};
use quorate_wire::{Packet, WireError};

#[derive(Default)]
pub(crate) struct Arriving {
    /// With the number of the connection that it comes on.
    slot: Mutex<Option<(u64, Assembly)>>,
}

impl Arriving {
    /// Adds a packet that `from` sent on `connection`. An error ends that connection.
    pub fn take(
        &self,
        (connection, from): (u64, MemberId),
        packet: Packet,
    ) -> Result<Option<(Received, Bytes)>, WireError> {
        let mut slot = self.slot.lock();
        if matches!(packet, Packet::SnapshotBegin(_)) {
            *slot = Some((connection, Assembly::new(from)));
        }
        let taken = match slot.as_mut() {
            Some((owner, assembly)) if *owner == connection => assembly.take(packet),
            _ => return Ok(None),
        };
        if !matches!(taken, Ok(None)) {
            *slot = None;
        }
        taken
    }

    /// Whether it comes on this connection.
    pub fn is_on(&self, connection: u64) -> bool {
        self.slot.lock().as_ref().is_some_and(|(owner, _)| *owner == connection)
    }

    /// Nothing more of it comes on this connection.
    pub fn end(&self, connection: u64) {
        self.slot.lock().take_if(|(owner, _)| *owner == connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::SnapshotMeta;
    use quorate_group::Parcel;

    #[test]
    fn a_newer_snapshot_takes_the_place_of_one_on_its_way() {
        let arriving = Arriving::default();
        let content = Bytes::from(vec![7; 300 << 10]);
        let packets = || Parcel::new(3, SnapshotMeta::default(), content.clone());
        let (old, new) = ((1, MemberId(1)), (2, MemberId(2)));
        let mut rest = packets();
        for packet in rest.by_ref().take(2) {
            assert!(arriving.take(old, packet).unwrap().is_none());
        }
        let mut whole = Vec::new();
        for packet in packets() {
            whole.extend(arriving.take(new, packet).unwrap());
            assert!(!arriving.is_on(1), "two are kept");
        }
        assert!(matches!(&whole[..], [(received, _)] if received.from == MemberId(2)));
        for packet in rest {
            assert!(arriving.take(old, packet).unwrap().is_none());
        }
        assert!(!arriving.is_on(1) && !arriving.is_on(2));
    }

    #[test]
    fn nothing_is_kept_of_a_connection_that_ended() {
        let arriving = Arriving::default();
        let begin = Parcel::new(3, SnapshotMeta::default(), Bytes::new()).next().unwrap();
        assert!(arriving.take((1, MemberId(1)), begin).unwrap().is_none());
        arriving.end(2);
        assert!(arriving.is_on(1));
        arriving.end(1);
        assert!(!arriving.is_on(1));
    }
}
