//! What waits to be written on one connection, and how it becomes frames.
//!
//! Invariants:
//! - packets of one lane leave in the order in which they were pushed;
//! - an urgent packet waits for the write that is being gathered at most, which ends with the first frame that fills it,
//!   and bulk packets go one after the other: a reader puts one together at a time.

use crate::frame::Fragmenter;
use crate::packet::Packet;
use std::collections::VecDeque;

/// Bytes gathered for one write; the last frame may go beyond.
const WRITE_BYTES: usize = 128 << 10;

/// Packets that wait.
#[derive(Debug, Default)]
pub struct Lanes {
    urgent: VecDeque<Packet>,
    bulk: VecDeque<Packet>,
    bytes: usize,
}

impl Lanes {
    pub fn push(&mut self, packet: Packet) {
        self.bytes += packet.size_hint();
        match packet.is_urgent() {
            true => self.urgent.push_back(packet),
            false => self.bulk.push_back(packet),
        }
    }

    /// How long the packets that wait are in all, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets that wait and are urgent: small ones, which take more memory than they are long.
    pub fn urgent(&self) -> usize {
        self.urgent.len()
    }

    pub fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.bulk.is_empty()
    }

    fn pop_urgent(&mut self) -> Option<Packet> {
        let packet = self.urgent.pop_front()?;
        self.bytes -= packet.size_hint();
        Some(packet)
    }

    fn pop_bulk(&mut self) -> Option<Packet> {
        let packet = self.bulk.pop_front()?;
        self.bytes -= packet.size_hint();
        Some(packet)
    }
}

/// Makes frames of what waits, for one write after the other.
#[derive(Debug, Default)]
pub struct Gatherer {
    /// Taken for the next write.
    urgent: Vec<Packet>,
    /// Taken, and not begun yet.
    bulk: VecDeque<Packet>,
    /// The rest of the bulk packet that is under way.
    under_way: Option<Fragmenter>,
}

impl Gatherer {
    /// Nothing is left of what was taken.
    pub fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.bulk.is_empty() && self.under_way.is_none()
    }

    /// Takes what fills one write. Lanes that have a lock need it for this only, once a write: frames are made without
    /// it.
    pub fn take(&mut self, lanes: &mut Lanes) {
        let mut bytes = 0;
        while bytes < WRITE_BYTES {
            let Some(packet) = lanes.pop_urgent() else { break };
            bytes += packet.size_hint();
            self.urgent.push(packet);
        }
        bytes += self.under_way.as_ref().map_or(0, Fragmenter::bytes_left);
        bytes += self.bulk.iter().map(Packet::size_hint).sum::<usize>();
        while bytes < WRITE_BYTES {
            let Some(packet) = lanes.pop_bulk() else { break };
            bytes += packet.size_hint();
            self.bulk.push_back(packet);
        }
    }

    /// Adds frames of what was taken to `frames`, until they fill one write.
    pub fn gather(&mut self, frames: &mut Vec<u8>) {
        for packet in self.urgent.drain(..) {
            Fragmenter::of(&packet).all_frames(frames);
        }
        while frames.len() < WRITE_BYTES {
            if self.under_way.is_none() {
                self.under_way = self.bulk.pop_front().as_ref().map(Fragmenter::of);
            }
            let Some(packet) = &mut self.under_way else { return };
            if !packet.next_frame(frames) {
                self.under_way = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FRAME_BODY_MAX;
    use crate::reader::FrameReader;
    use quorate_consensus::{EntryKind, Proposal};

    fn bulk(bytes: usize) -> Packet {
        Packet::Forward(vec![Proposal::new(EntryKind::Data, vec![7; bytes].into())])
    }

    fn written(gatherer: &mut Gatherer, lanes: &mut Lanes) -> Vec<u8> {
        let mut frames = Vec::new();
        gatherer.take(lanes);
        gatherer.gather(&mut frames);
        frames
    }

    #[test]
    fn an_urgent_packet_waits_for_one_frame_of_a_bulk_one() {
        let (mut lanes, mut gatherer) = (Lanes::default(), Gatherer::default());
        lanes.push(bulk(3 * FRAME_BODY_MAX));
        lanes.push(bulk(10));
        let mut frames = written(&mut gatherer, &mut lanes);
        assert!(frames.len() < FRAME_BODY_MAX + WRITE_BYTES && !gatherer.is_empty());
        lanes.push(Packet::Ping);
        while !lanes.is_empty() || !gatherer.is_empty() {
            frames.extend(written(&mut gatherer, &mut lanes));
        }
        assert_eq!(lanes.bytes(), 0);
        let mut reader = FrameReader::new(frames.as_slice(), 4 * FRAME_BODY_MAX);
        let order: Vec<_> = std::iter::from_fn(|| reader.next_packet().ok())
            .map(|(kind, body)| (kind, body.len() > FRAME_BODY_MAX))
            .collect();
        let (ping, forward) = (Packet::Ping.frame_type(), bulk(0).frame_type());
        assert_eq!(order, [(ping, false), (forward, true), (forward, false)]);
    }

    #[test]
    fn a_write_ends_when_it_is_long_enough() {
        let (mut lanes, mut gatherer) = (Lanes::default(), Gatherer::default());
        (0..40).for_each(|_| lanes.push(bulk(10_000)));
        let lengths: Vec<_> =
            std::iter::repeat_with(|| written(&mut gatherer, &mut lanes).len()).take(4).collect();
        assert!(lengths[..2].iter().all(|l| (WRITE_BYTES..WRITE_BYTES + 11_000).contains(l)));
        assert_eq!((lengths[3], lanes.is_empty(), gatherer.is_empty()), (0, true, true));
    }
}
