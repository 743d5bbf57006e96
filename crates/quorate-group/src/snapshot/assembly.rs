//! A snapshot that comes in, piece by piece, on one connection.

use bytes::{Bytes, BytesMut};
use quorate_consensus::{MemberId, SnapshotMeta, Term};
use quorate_wire::{Packet, SnapshotBegin, WireError};

/// Longest snapshot accepted from a leader. It is put together in memory; with the widest window it has some 30 MB.
const SNAPSHOT_BYTES_MAX: u64 = 1 << 30;

/// The packets of snapshots on one connection: made anew with each.
#[derive(Debug)]
pub struct Assembly {
    from: MemberId,
    begun: Option<(SnapshotBegin, BytesMut)>,
}

/// A snapshot that came from the leader `from` of `term`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub from: MemberId,
    pub term: Term,
    pub meta: SnapshotMeta,
}

impl Assembly {
    pub fn new(from: MemberId) -> Self {
        Self { from, begun: None }
    }

    /// Whether this packet is for [`Assembly::take`], not for the machine.
    pub fn takes(packet: &Packet) -> bool {
        matches!(
            packet,
            Packet::SnapshotBegin(_) | Packet::SnapshotData(_) | Packet::SnapshotEnd { .. }
        )
    }

    /// Adds a packet; gives back the snapshot with its content when it is whole. An error ends the
    /// connection.
    pub fn take(&mut self, packet: Packet) -> Result<Option<(Received, Bytes)>, WireError> {
        match packet {
            Packet::SnapshotBegin(begin) => {
                if begin.bytes > SNAPSHOT_BYTES_MAX {
                    let value = begin.bytes;
                    return Err(WireError::BadValue { what: "the length of a snapshot", value });
                }
                self.begun = Some((begin, BytesMut::new()));
                Ok(None)
            }
            Packet::SnapshotData(data) => {
                let Some((begin, content)) = &mut self.begun else { return Ok(None) };
                let value = (content.len() + data.len()) as u64;
                if value > begin.bytes {
                    return Err(WireError::BadValue { what: "the size of a snapshot", value });
                }
                content.extend_from_slice(&data);
                Ok(None)
            }
            Packet::SnapshotEnd { crc } => self.end(crc),
            _ => Ok(None),
        }
    }

    fn end(&mut self, crc: u32) -> Result<Option<(Received, Bytes)>, WireError> {
        let Some((begin, content)) = self.begun.take() else { return Ok(None) };
        if content.len() as u64 != begin.bytes {
            let missing = (begin.bytes - content.len() as u64) as usize;
            return Err(WireError::Truncated { what: "snapshot", missing });
        }
        let found = crc32c::crc32c(&content);
        if found != crc {
            return Err(WireError::Checksum { expected: crc, found });
        }
        let SnapshotBegin { term, meta, .. } = begin;
        Ok(Some((Received { from: self.from, term, meta }, content.freeze())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Parcel;
    use super::*;

    fn packets(content: &Bytes) -> Vec<Packet> {
        Parcel::new(3, SnapshotMeta::default(), content.clone()).collect()
    }

    #[test]
    fn what_is_sent_in_pieces_comes_in_whole() {
        let content = Bytes::from(vec![7; (512 << 10) + 1]);
        let packets = packets(&content);
        assert_eq!(packets.len(), 5);
        let mut assembly = Assembly::new(MemberId(2));
        let whole: Vec<_> =
            packets.into_iter().filter_map(|packet| assembly.take(packet).unwrap()).collect();
        let received = Received { from: MemberId(2), term: 3, meta: SnapshotMeta::default() };
        assert_eq!(whole, [(received, content)]);
    }

    #[test]
    fn a_snapshot_that_is_not_what_was_announced_ends_the_connection() {
        let content = Bytes::from_static(b"content");
        let mut assembly = Assembly::new(MemberId(2));
        let mut short = packets(&content);
        short.remove(1);
        let outcomes: Vec<_> = short.into_iter().map(|packet| assembly.take(packet)).collect();
        assert!(matches!(outcomes[..], [Ok(None), Err(WireError::Truncated { .. })]));
        let mut other = packets(&content);
        other[1] = Packet::SnapshotData(Bytes::from_static(b"contant"));
        let last = other.into_iter().map(|packet| assembly.take(packet)).last();
        assert!(matches!(last, Some(Err(WireError::Checksum { .. }))));
        let long = Packet::SnapshotData(Bytes::from_static(b"contents"));
        assert!(assembly.take(packets(&content).remove(0)).is_ok());
        assert!(assembly.take(long).is_err());
    }
}
