//! A snapshot on its way out: the packets that carry it.

use bytes::Bytes;
use quorate_consensus::{SnapshotMeta, Term};
use quorate_wire::{Packet, SnapshotBegin};

/// One piece of a snapshot.
const PIECE_BYTES: usize = 256 << 10;

/// Packet by packet, so that a sender can let each leave before it takes the next.
#[derive(Debug)]
pub struct Parcel {
    begin: Option<SnapshotBegin>,
    content: Bytes,
    crc: Option<u32>,
}

impl Parcel {
    /// By the leader of `term`.
    pub fn new(term: Term, meta: SnapshotMeta, content: Bytes) -> Self {
        let begin = Some(SnapshotBegin { term, meta, bytes: content.len() as u64 });
        let crc = Some(crc32c::crc32c(&content));
        Self { begin, content, crc }
    }
}

impl Iterator for Parcel {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        if let Some(begin) = self.begin.take() {
            return Some(Packet::SnapshotBegin(begin));
        }
        if !self.content.is_empty() {
            let piece = self.content.split_to(self.content.len().min(PIECE_BYTES));
            return Some(Packet::SnapshotData(piece));
        }
        self.crc.take().map(|crc| Packet::SnapshotEnd { crc })
    }
}
