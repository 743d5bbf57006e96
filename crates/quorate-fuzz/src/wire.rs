//! What comes in on a connection, before anybody acts on it.

use bytes::Bytes;
use quorate_consensus::MemberId;
use quorate_wire::{Fragmenter, FrameReader, FrameType, Packet, WireError};

const FROM: MemberId = MemberId(1);
const TO: MemberId = MemberId(2);

/// A byte stream: no packet beyond the limit. The first byte chooses the limit, and whether the rest is
/// put into frames with right checksums, to get beyond them.
pub fn frame(input: &[u8]) {
    let Some((choice, stream)) = input.split_first() else { return };
    let limit = 64 << (choice & 15);
    let stream = if choice & 16 == 0 { stream.to_vec() } else { framed(stream) };
    let mut reader = FrameReader::new(&stream[..], limit);
    while let Ok((frame_type, body)) = reader.next_packet() {
        assert!(body.len() <= limit);
        let _refused = Packet::decode(frame_type, body, FROM, TO);
    }
}

/// The body of a packet, after a byte for its type: what is understood is said again the same way.
pub fn packet(input: &[u8]) {
    let Some((code, body)) = input.split_first() else { return };
    let frame_type = FrameType::ALL[usize::from(*code) % FrameType::ALL.len()];
    if let Ok(packet) = decode(frame_type, Bytes::copy_from_slice(body)) {
        assert_eq!(packet.frame_type(), frame_type);
        assert_eq!(decode(frame_type, packet.encode().to_bytes()).as_ref(), Ok(&packet));
    }
}

fn decode(frame_type: FrameType, body: Bytes) -> Result<Packet, WireError> {
    Packet::decode(frame_type, body, FROM, TO)
}

/// Splits the input into packets, each after its type and its length, and frames them.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    while let [code, length, tail @ ..] = rest {
        let (body, tail) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = tail;
        let frame_type = FrameType::ALL[usize::from(*code) % FrameType::ALL.len()];
        let packet = Packet::SnapshotData(Bytes::copy_from_slice(body));
        let mut fragmenter = Fragmenter::new(frame_type, packet.encode());
        while fragmenter.next_frame(&mut stream) {}
    }
    stream
}
