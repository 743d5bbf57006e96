//! Write sets and other proposals, and the state that follows from them.

use crate::source::Source;
use bytes::Bytes;
use quorate_certify::{
    Certifier, Key, Kind, Limits, Sequenced, StateOutcome, StateRequest, VoteMessage, WriteSet,
};
use twox_hash::XxHash3_64;

/// Length of the header that stands before the payload.
const HEADER: usize = 80;

/// What is unpacked here at most: the fuzzer's memory is limited.
const UNPACKED_MAX: u64 = 1 << 20;

pub const LIMITS: Limits = Limits { window: 4, keys_max: 64 };

/// A proposal: its parts are all there is, and its verdict is of the next seqno.
pub fn write_set(input: &[u8]) {
    let Ok(write_set) = WriteSet::parse(Bytes::copy_from_slice(input)) else { return };
    let header = write_set.header();
    let tail = match (header.parts, header.packed, header.term) {
        (None, None, 0) => 0,
        (None, None, _) => 8,
        _ => 37,
    };
    let keys = Key::ENCODED_LEN * write_set.keys().len();
    assert_eq!(HEADER + write_set.payload().len() + keys + tail, input.len());
    if let Some(packed) = header.packed.filter(|packed| packed.bytes <= UNPACKED_MAX) {
        let data = packed.unpack(&write_set.payload());
        assert!(data.is_err() || data.is_ok_and(|data| data.len() as u64 == packed.bytes));
    }
    if header.kind == Kind::WRITE_SET {
        let verdict = Certifier::starting_at(LIMITS, 7).sequence(&write_set);
        assert!(verdict.seqno == 8 && verdict.depends_on < 8);
    }
}

/// Messages of members: what is read is written so that it is read the same.
pub fn messages(input: &[u8]) {
    let data = Bytes::copy_from_slice(input);
    if let Some(message) = VoteMessage::decode(&data) {
        assert_eq!(VoteMessage::decode(&Bytes::from(message.encode())), Some(message));
    }
    if let Some(request) = StateRequest::decode(&data) {
        assert_eq!(request.encode(), input);
    }
    if let Some(outcome) = StateOutcome::decode(input) {
        assert_eq!(StateOutcome::decode(&outcome.encode()), Some(outcome));
    }
}

/// A certifier's snapshot: the bytes, and the same with a right checksum.
pub fn certifier(input: &[u8]) {
    for bytes in [input.to_vec(), sealed(input)] {
        let Ok(certifier) = Certifier::restore(&bytes) else { continue };
        let again = certifier.snapshot();
        let restored = Certifier::restore(&again).expect("its own snapshot");
        assert!(restored.snapshot() == again && restored.digest() == certifier.digest());
    }
}

/// A snapshot of all that follows from the log: the bytes, and its parts put together properly. What is
/// restored goes on.
pub fn sequenced(input: &[u8]) {
    go_on(input);
    let mut source = Source::new(input);
    let (version, votes, transfers) = (source.byte(), source.long_block(), source.long_block());
    go_on(&assembled(version, votes, transfers, &sealed(source.rest())));
}

/// Open transfers, as a snapshot has them: what is read is written the same.
pub fn transfers(input: &[u8]) {
    let fresh = Sequenced::beginning(LIMITS, 0);
    let bytes = assembled(2, &fresh.votes.encode(), input, &fresh.certifier.snapshot());
    let Ok(mut state) = Sequenced::restore(&bytes) else { return };
    assert!(state.snapshot() == bytes);
    for members in [&[1][..], &[], &[1, 2]] {
        state.view(members);
        assert!(state.transfers.orphans(members).count() <= 64, "what nobody ends is bounded");
    }
}

fn go_on(bytes: &[u8]) {
    let Ok(mut state) = Sequenced::restore(bytes) else { return };
    let again = state.snapshot();
    let restored = Sequenced::restore(&again).expect("its own snapshot");
    assert!(restored.snapshot() == again);
    let before = state.certifier.seqno();
    assert_eq!(state.view(&[1, 2]).0, before + 1);
}

/// With the checksum that belongs to it.
fn sealed(content: &[u8]) -> Vec<u8> {
    [content, &XxHash3_64::oneshot(content).to_le_bytes()].concat()
}

fn assembled(version: u8, votes: &[u8], transfers: &[u8], certifier: &[u8]) -> Vec<u8> {
    let length = |part: &[u8]| (part.len() as u32).to_le_bytes();
    let mut bytes = [b"qseq", &[version][..], &length(votes), votes].concat();
    if version != 1 {
        bytes.extend_from_slice(&length(transfers));
        bytes.extend_from_slice(transfers);
    }
    bytes.extend_from_slice(certifier);
    bytes
}
