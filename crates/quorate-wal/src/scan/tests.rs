use super::*;
use quorate_consensus::{checksum, EntryKind, LogPosition};

fn codec() -> Codec {
    Codec::new(5, None)
}

/// A segment being written, without its file.
struct Written {
    bytes: Vec<u8>,
    crc: u32,
}

impl Written {
    fn new() -> Self {
        let mut written = Written { bytes: vec![0; HEADER_BYTES as usize], crc: 0 };
        written.put(RecordKind::Start, 1, 0, HEADER_BYTES, &[]);
        written
    }

    /// Returns where the record stands.
    fn put(
        &mut self,
        kind: RecordKind,
        incarnation: u32,
        index: u64,
        synced: u64,
        data: &[u8],
    ) -> u64 {
        let at = self.bytes.len() as u64;
        let position = LogPosition { term: u64::from(index > 0), index };
        let prev = self.crc;
        let head = Head { kind, entry_kind: EntryKind::Data, incarnation, prev, synced, position };
        let sum = checksum(head.entry_kind, data);
        self.crc = codec().encode(&mut self.bytes, at, &head, data, sum, None);
        at
    }

    fn entry(&mut self, index: u64, synced: u64, data: &[u8]) -> u64 {
        self.put(RecordKind::Entry, 1, index, synced, data)
    }

    fn walk(&mut self) -> (Walk, Chain, usize) {
        let (mut chain, mut records) = (Chain::default(), 0);
        let walked = walk(&mut self.bytes, &codec(), &mut chain, |_| {
            records += 1;
            Ok::<_, ()>(())
        });
        (walked.unwrap(), chain, records)
    }

    fn behind(&self, bad: u64) -> Behind {
        behind(&self.bytes, &codec(), bad, 1)
    }
}

#[test]
fn a_bad_record_within_the_last_write_is_torn() {
    let mut log = Written::new();
    let first = log.entry(1, HEADER_BYTES, b"one");
    log.entry(2, HEADER_BYTES, b"two");
    let end = log.bytes.len() as u64;
    log.bytes.extend([0; 4096]);
    log.bytes[first as usize + 50] ^= 1;
    let (walked, _, records) = log.walk();
    assert_eq!((walked.end, records), (first, 1));
    assert_eq!(log.behind(first), Behind::Torn { end });
}

#[test]
fn a_bad_record_that_a_later_one_saw_synced_is_damage() {
    let mut log = Written::new();
    let first = log.entry(1, HEADER_BYTES, b"one");
    let synced = log.bytes.len() as u64;
    let second = log.entry(2, synced, b"two");
    log.bytes[first as usize + 50] ^= 1;
    assert_eq!(log.walk().0.end, first);
    assert_eq!(log.behind(first), Behind::Synced { offset: second });
}

/// The entry that was torn is replaced by the mark of the next start, which is just as long; what
/// stood behind it is intact, and in the right place.
#[test]
fn the_rest_of_a_torn_write_never_joins_what_is_written_later() {
    let mut log = Written::new();
    let crc = log.crc;
    let torn = log.entry(1, HEADER_BYTES, &[]);
    log.entry(2, HEADER_BYTES, b"two");
    let rest = log.bytes.split_off(torn as usize);
    log.crc = crc;
    log.put(RecordKind::Mark, 2, 0, torn, &[]);
    let end = log.bytes.len();
    log.bytes.extend(&rest[end - torn as usize..]);
    let (walked, chain, records) = log.walk();
    assert_eq!((walked.end, records, chain.incarnation), (end as u64, 2, 2));
    assert_eq!(behind(&log.bytes, &codec(), walked.end, chain.incarnation), Behind::Nothing);
}

#[test]
fn a_copy_of_a_record_in_an_entry_is_not_a_record() {
    let mut log = Written::new();
    let first = log.entry(1, HEADER_BYTES, b"a record to be copied");
    let copy = log.bytes[first as usize..].to_vec();
    let second = log.entry(2, HEADER_BYTES, &copy);
    log.bytes[second as usize] ^= 1;
    assert_eq!(log.behind(second), Behind::Nothing);
}
