//! The body of one packet of any type: never a panic, and what is understood is said again the
//! same way.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use quorate_consensus::MemberId;
use quorate_wire::{FrameType, Packet};

fuzz_target!(|data: &[u8]| {
    let Some((code, body)) = data.split_first() else { return };
    let frame_type = FrameType::ALL[usize::from(*code) % FrameType::ALL.len()];
    let decode = |body| Packet::decode(frame_type, body, MemberId(1), MemberId(2));
    if let Ok(packet) = decode(Bytes::copy_from_slice(body)) {
        assert_eq!(decode(packet.encode().to_bytes()).as_ref(), Ok(&packet));
    }
});
