//! A byte stream on the group port: never a panic, never a packet beyond the limit. The first
//! byte chooses the limit and whether damaged checksums are repaired, to get beyond them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quorate_consensus::MemberId;
use quorate_wire::{Fragmenter, FrameReader, FrameType, Packet};

fuzz_target!(|data: &[u8]| {
    let Some((choice, stream)) = data.split_first() else { return };
    let limit = 64 << (choice & 15);
    let stream = if choice & 16 == 0 { stream.to_vec() } else { framed(stream) };
    let mut reader = FrameReader::new(&stream[..], limit);
    while let Ok((frame_type, body)) = reader.next_packet() {
        assert!(body.len() <= limit);
        let _refused = Packet::decode(frame_type, body, MemberId(1), MemberId(2));
    }
});

/// Splits the input into packets and frames them properly.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    while let [code, length, tail @ ..] = rest {
        let (body, tail) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = tail;
        let frame_type = FrameType::ALL[usize::from(*code) % FrameType::ALL.len()];
        let packet = Packet::SnapshotData(bytes::Bytes::copy_from_slice(body));
        let mut fragmenter = Fragmenter::new(frame_type, packet.encode());
        while fragmenter.next_frame(&mut stream) {}
    }
    stream
}
