use super::*;
use crate::window::Source;
use quorate_consensus::{checksum, EntryKind, LogPosition};
use std::cell::Cell;

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

    fn walk(&self) -> (Walk, Chain, usize) {
        let (mut chain, mut records) = (Chain::default(), 0);
        let mut window = Window::new(&self.bytes, WINDOW);
        let walked = walk(&mut window, &codec(), &mut chain, |_| {
            records += 1;
            Ok(())
        });
        (walked.unwrap(), chain, records)
    }

    fn behind(&self, bad: u64) -> Behind {
        behind(&mut Window::new(&self.bytes, WINDOW), &codec(), bad, 1).unwrap()
    }
}

/// Less than a head, and more than the alignment.
const WINDOW: usize = 20;

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
    let mut window = Window::new(&log.bytes, WINDOW);
    let rest = behind(&mut window, &codec(), walked.end, chain.incarnation).unwrap();
    assert_eq!(rest, Behind::Nothing);
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

/// Notes the most that is read at once, and how far.
struct Noting<'a> {
    bytes: &'a Vec<u8>,
    longest: Cell<usize>,
    end: Cell<u64>,
}

impl Source for Noting<'_> {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read(&self, buf: &mut [u8], offset: u64) -> Result<(), WalError> {
        assert!(offset <= self.end.get(), "what is before {offset} is passed over");
        self.longest.set(self.longest.get().max(buf.len()));
        self.end.set(self.end.get().max(offset + buf.len() as u64));
        self.bytes.read(buf, offset)
    }
}

/// The same records, the same end and the same verdict, whether a segment is read at once or through a window; and
/// through that never more at a time than it is wide, or a record long.
#[test]
fn a_window_shows_what_the_whole_segment_does() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut log = Written::new();
        let (mut synced, mut longest) = (HEADER_BYTES, 0);
        for index in 1..rng.u64(2..20) {
            if rng.bool() {
                synced = log.bytes.len() as u64;
            }
            let data = vec![rng.u8(..); rng.usize(..3000)];
            let at = log.entry(index, synced, &data);
            longest = longest.max(log.bytes.len() - at as usize);
        }
        log.bytes.extend(vec![0; rng.usize(..3000)]);
        if rng.u32(..4) > 0 {
            let at = rng.usize(HEADER_BYTES as usize..log.bytes.len());
            log.bytes[at] ^= 1 << rng.u32(..8);
        }
        if rng.u32(..4) == 0 {
            log.bytes.truncate(rng.usize(HEADER_BYTES as usize..log.bytes.len()));
        }
        let look = |step: usize| {
            let (longest, end) = Default::default();
            let source = Noting { bytes: &log.bytes, longest, end };
            let mut window = Window::new(&source, step);
            let (mut chain, mut found) = (Chain::default(), Vec::new());
            let walked = walk(&mut window, &codec(), &mut chain, |record| {
                found.push((record.offset, *record.head, record.data.to_vec()));
                Ok(())
            });
            let walked = walked.unwrap();
            let verdict = behind(&mut window, &codec(), walked.end, chain.incarnation).unwrap();
            let all_read = source.end.get() == source.size();
            assert!(all_read || matches!(verdict, Behind::Synced { .. }), "seed {seed}");
            ((walked, chain, found, verdict), source.longest.get())
        };
        let (whole, _) = look(log.bytes.len());
        for step in [1, WINDOW, 100, 4096] {
            let (seen, most) = look(step);
            assert!(seen == whole, "seed {seed}: through a window of {step} bytes");
            assert!(most <= step.max(longest), "seed {seed}: {most} bytes at once");
        }
    }
}
