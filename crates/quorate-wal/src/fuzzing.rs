//! Every decoder of this crate, for fuzzers: whatever the bytes are, nothing panics and what is
//! accepted makes sense. Not part of the interface.

use crate::codec::Codec;
use crate::error::WalError;
use crate::meta::{check_seal, decode_slot, encode_slot, with_checksum};
use crate::record::{Head, RecordKind};
use crate::replay::Replay;
use crate::scan::{behind, walk, Behind, Chain, Walk};
use crate::seal::{DataKey, DiskKeys, Envelope};
use crate::segment::{SegmentHeader, HEADER_BYTES};
use crate::snapshot_file::{self, Unreadable};
use crate::window::Window;
use quorate_consensus::{checksum, EntryKind, LogPosition, MemberId};
use std::path::PathBuf;

const NONCE: u64 = 7;
const KEY: [u8; 32] = [7; 32];
/// Some records.
const WINDOW_BYTES: usize = 256;

/// The bytes as a segment; and as the fields of records that are genuine by their checksums, with
/// some bytes changed after that.
pub fn segment(input: &[u8]) {
    records(input, &Codec::new(NONCE, None));
}

/// The same in a sealed segment: what passes for a record was sealed there.
pub fn sealed_segment(input: &[u8]) {
    records(input, &Codec::new(NONCE, Some(DataKey::of_fuzzing(KEY))));
    if let Some(envelope) = input.get(..Envelope::BYTES) {
        let envelope = Envelope::of(envelope.try_into().expect("its length"));
        assert!(envelope.open(&DiskKeys::new(&[KEY], true), input).is_err());
    }
}

fn records(input: &[u8], codec: &Codec) {
    if let Ok(header) = SegmentHeader::decode(input) {
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
    }
    read(input, codec);
    let mut bytes = vec![0; HEADER_BYTES as usize];
    let mut chunks = input.chunks_exact(12);
    let mut prev = 0;
    for fields in &mut chunks {
        prev = put(&mut bytes, codec, fields, prev);
    }
    read(&bytes, codec);
    for change in chunks.remainder() {
        let at = HEADER_BYTES as usize + usize::from(*change) * 3;
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << (change % 8);
        }
    }
    read(&bytes, codec);
}

/// The head of a sealed segment, for the corpus.
pub fn sealed_head() -> Vec<u8> {
    let member = MemberId(3);
    let envelope = Some(Envelope::of([7; Envelope::BYTES]));
    SegmentHeader { sequence: 1, size: 16 << 10, nonce: NONCE, member, envelope }.encode()
}

/// The bytes as a slot of the meta file; and as the fields of one with a right checksum. Whoever does not have the
/// key seals none.
pub fn meta(input: &[u8]) {
    let keys = DiskKeys::new(&[KEY], true).refusing_plain();
    for bytes in [input.to_vec(), with_checksum(input)] {
        if let Ok(slot) = decode_slot(&bytes) {
            assert_eq!(decode_slot(&encode_slot(&slot, None)), Ok(slot));
            assert!(check_seal(&bytes, &keys).is_err());
            let sealed = encode_slot(&slot, keys.own());
            assert_eq!((decode_slot(&sealed), check_seal(&sealed, &keys)), (Ok(slot), Ok(())));
        }
    }
}

/// The bytes as a snapshot file; and the same as one that is sealed, with a right checksum.
pub fn snapshot(input: &[u8]) {
    let keys = DiskKeys::new(&[KEY], true);
    if let Ok(snapshot) = snapshot_file::decode(input.to_vec(), &keys) {
        assert!(snapshot.meta.len() + snapshot.payload.len() < input.len());
    }
    let genuine = snapshot_file::sealed_with_checksum(input);
    let decoded = snapshot_file::decode(genuine, &keys);
    assert!(matches!(decoded, Err(Unreadable::Damaged(_) | Unreadable::NoKey(_))));
}

/// What recovery does with a segment, however much of it it reads at once.
fn read(bytes: &[u8], codec: &Codec) {
    let bytes = bytes.to_vec();
    let whole = read_through(&mut Window::new(&bytes, bytes.len()), codec);
    assert_eq!(read_through(&mut Window::new(&bytes, WINDOW_BYTES), codec), whole);
}

/// The end of the log, how far the segment is good, and what is behind.
fn read_through(
    window: &mut Window<'_>,
    codec: &Codec,
) -> (LogPosition, Result<(Walk, Behind), String>) {
    let mut chain = Chain::default();
    let mut replay = Replay::default();
    let walked = walk(window, codec, &mut chain, |record| {
        let (file, offset) = (PathBuf::new(), record.offset);
        let applied = replay.apply(record).map(|_| ());
        applied.map_err(|what| WalError::Damaged { file, offset, what })
    });
    assert!(replay.base.index <= replay.last.index);
    if replay.last.index > replay.base.index {
        assert_eq!(replay.runs.term_at(replay.last.index), Some(replay.last.term));
    }
    let walked = match walked {
        Ok(walked) => walked,
        Err(error) => return (replay.last, Err(error.to_string())),
    };
    assert!(walked.end == HEADER_BYTES || walked.end <= window.size());
    assert!(walked.synced <= walked.end);
    let found = behind(window, codec, walked.end, chain.incarnation);
    let found = found.expect("memory can be read");
    match found {
        Behind::Nothing => {}
        Behind::Torn { end } => assert!(end > walked.end && end <= window.size()),
        Behind::Synced { offset } => assert!(offset > walked.end),
    }
    (replay.last, Ok((walked, found)))
}

/// Appends the record that twelve bytes describe.
fn put(bytes: &mut Vec<u8>, codec: &Codec, fields: &[u8], prev: u32) -> u32 {
    const KINDS: [RecordKind; 8] = [
        RecordKind::Start,
        RecordKind::Entry,
        RecordKind::Entry,
        RecordKind::Entry,
        RecordKind::Truncate,
        RecordKind::Reset,
        RecordKind::Mark,
        RecordKind::End,
    ];
    let offset = bytes.len() as u64;
    let wide = |byte: u8| if byte == 255 { u64::MAX } else { u64::from(byte) };
    let first = offset == HEADER_BYTES && fields[1] < 200;
    let head = Head {
        kind: if first { RecordKind::Start } else { KINDS[usize::from(fields[0] % 8)] },
        entry_kind: EntryKind::from_code(fields[2] % 5),
        incarnation: u32::from(fields[3] / 64),
        prev: if fields[4] == 255 { 0 } else { prev },
        synced: (u64::from(fields[5]) * 64) & !7,
        position: LogPosition { term: wide(fields[6]), index: wide(fields[7]) },
    };
    let data = &fields[8..8 + usize::from(fields[8] % 5)];
    let (sum, key) = (checksum(head.entry_kind, data), codec.of_write(&[fields[9]; 16]));
    codec.encode(bytes, offset, &head, data, sum, key.as_ref())
}

/// So many bytes let [`segment`] reach every kind of record.
pub const SEGMENT_INPUT_BYTES: usize = 384;

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes with runs of small numbers, as sequences that make sense have them.
    fn random(rng: &mut fastrand::Rng, len: usize) -> Vec<u8> {
        let small = rng.bool();
        (0..len).map(|_| if small { rng.u8(..6) } else { rng.u8(..) }).collect()
    }

    #[test]
    fn decoders_take_anything() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..30_000 {
            let len = rng.usize(..SEGMENT_INPUT_BYTES);
            let input = random(&mut rng, len);
            segment(&input);
            sealed_segment(&input);
            meta(&input);
            snapshot(&input);
        }
    }

    /// A log as it should be: a start, then entries one after the other, changed here and there.
    #[test]
    fn the_segment_decoder_takes_almost_genuine_logs() {
        let mut rng = fastrand::Rng::with_seed(2);
        for _ in 0..30_000 {
            let mut input = vec![0; 12];
            for index in 1..rng.u8(2..20) {
                input.extend([1, 0, 2, 0, 0, 64, 0, index, 4, 1, 2, 3]);
            }
            for _ in 0..rng.usize(..4) {
                let at = rng.usize(..input.len());
                input[at] = if rng.bool() { rng.u8(..8) } else { rng.u8(..) };
            }
            input.extend((0..rng.usize(..11)).map(|_| rng.u8(..)));
            segment(&input);
            sealed_segment(&input);
        }
    }
}
