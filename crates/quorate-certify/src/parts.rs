//! The data of a large transaction, ahead of its write set: parts, each an entry of its own between the others
//! of the log, and none with a verdict. The write set at their end says how many there are, has the keys, and
//! the only verdict.
//!
//! What is kept of a part is its place in the log: who applies the transaction reads it from there. So the log
//! is not released from the first part of an open transaction on ([`OpenParts::first_index`]).
//!
//! Invariants:
//! - parts are told apart by (origin, stream, number), where a stream is the serial of its first proposal; a
//!   copy of one changes nothing;
//! - a stream ends with its write set, whatever the verdict; with an entry that gives it up; with a view
//!   without its origin; or when [`IDLE_BYTES_MAX`] of entries have followed its last part, or [`BYTES_MAX`] its
//!   first, so that an origin that hangs, or is slow, does not keep the others' logs. All of that is in the log,
//!   so all members agree;
//! - there are [`PLACES_MAX`] places at most. A part for which there is none is not kept, and the write set of
//!   its stream fails.

use bytes::{Buf, BufMut};
use std::collections::BTreeMap;

/// What the write set at the end of a stream says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartsOf {
    pub stream: u64,
    /// Numbers 0 to `count - 1`.
    pub count: u32,
    /// Of their data, in sum. The data of the write set itself follows it.
    pub bytes: u64,
}

/// Indexes in the log of all parts of a transaction, by number.
pub type Places = Box<[u64]>;

/// Of other entries' data, after which a stream that has not gone on is over.
const IDLE_BYTES_MAX: u64 = 1 << 30;
/// Of all entries' data, its own included, after which a stream that goes on is over: eight times as much as the
/// longest transaction of a server.
const BYTES_MAX: u64 = 16 << 30;
const PLACES_MAX: usize = 1 << 20;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenParts {
    streams: BTreeMap<(u128, u64), Stream>,
    /// Of all entries since there was no stream.
    bytes: u64,
    places: usize,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Stream {
    /// What [`OpenParts::bytes`] was at its first part, and at its last.
    begun: u64,
    at: u64,
    places: BTreeMap<u32, u64>,
}

impl OpenParts {
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The first entry of the log that may be read again for a transaction that is open.
    pub fn first_index(&self) -> Option<u64> {
        let firsts = |stream: &Stream| stream.places.values().min().copied();
        self.streams.values().filter_map(firsts).min()
    }

    /// A part of a member of the view.
    pub(crate) fn add(&mut self, origin: u128, stream: u64, number: u32, index: u64) {
        if self.places >= PLACES_MAX {
            return;
        }
        let new = Stream { begun: self.bytes, ..Stream::default() };
        let open = self.streams.entry((origin, stream)).or_insert(new);
        open.at = self.bytes;
        if let std::collections::btree_map::Entry::Vacant(place) = open.places.entry(number) {
            place.insert(index);
            self.places += 1;
        }
    }

    /// Ends a stream: with its write set, or given up.
    pub(crate) fn end(&mut self, origin: u128, stream: u64) -> BTreeMap<u32, u64> {
        let ended = self.streams.remove(&(origin, stream)).unwrap_or_default();
        self.places -= ended.places.len();
        self.settle();
        ended.places
    }

    /// As [`Self::end`], with the write set that has these parts. `None`: not all of them are there.
    pub(crate) fn take(&mut self, origin: u128, parts: &PartsOf) -> Option<Places> {
        let places = self.end(origin, parts.stream);
        let all = places.len() == parts.count as usize
            && places.last_key_value().is_none_or(|(last, _)| *last < parts.count);
        all.then(|| places.into_values().collect())
    }

    /// Any entry has come by, with so many bytes.
    pub(crate) fn passed(&mut self, bytes: usize) {
        if self.streams.is_empty() {
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let now = self.bytes;
        self.retain(|_, stream| {
            now - stream.at <= IDLE_BYTES_MAX && now - stream.begun <= BYTES_MAX
        });
    }

    /// The next view.
    pub(crate) fn view(&mut self, members: &[u128]) {
        self.retain(|origin, _| members.contains(&origin));
    }

    fn retain(&mut self, stays: impl Fn(u128, &Stream) -> bool) {
        let mut places = 0;
        self.streams.retain(|(origin, _), stream| {
            let stays = stays(*origin, stream);
            places += if stays { stream.places.len() } else { 0 };
            stays
        });
        self.places = places;
        self.settle();
    }

    fn settle(&mut self) {
        if self.streams.is_empty() {
            self.bytes = 0;
        }
    }

    /// `bytes u64`, then for each stream: `origin u128, stream u64, begun u64, at u64, count u32`, and for each place
    /// `number u32, index u64`. All little-endian, in ascending order.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.streams.len() * 44 + self.places * 12);
        out.put_u64_le(self.bytes);
        for ((origin, number), stream) in &self.streams {
            out.put_u128_le(*origin);
            out.put_u64_le(*number);
            out.put_u64_le(stream.begun);
            out.put_u64_le(stream.at);
            out.put_u32_le(stream.places.len() as u32);
            for (number, index) in &stream.places {
                out.put_u32_le(*number);
                out.put_u64_le(*index);
            }
        }
        out
    }

    /// `None`: damaged, or not what [`Self::encode`] writes.
    pub(crate) fn decode(mut input: &[u8]) -> Option<OpenParts> {
        let mut parts = OpenParts { bytes: input.try_get_u64_le().ok()?, ..OpenParts::default() };
        while !input.is_empty() {
            let origin = input.try_get_u128_le().ok()?;
            let number = input.try_get_u64_le().ok()?;
            let begun = input.try_get_u64_le().ok()?;
            let at = input.try_get_u64_le().ok();
            let at = at.filter(|at| (begun..=parts.bytes).contains(at))?;
            let count = input.try_get_u32_le().ok().filter(|count| *count > 0)?;
            let mut places = BTreeMap::new();
            for _ in 0..count {
                let part = input.try_get_u32_le().ok()?;
                let ordered = places.last_key_value().is_none_or(|(last, _)| *last < part);
                places.insert(part, input.try_get_u64_le().ok().filter(|_| ordered)?);
            }
            let id = (origin, number);
            parts.streams.last_key_value().is_none_or(|(last, _)| *last < id).then_some(())?;
            parts.places += places.len();
            parts.streams.insert(id, Stream { begun, at, places });
        }
        let sound = parts.places <= PLACES_MAX && (!parts.is_empty() || parts.bytes == 0);
        sound.then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stream: u64, count: u32) -> PartsOf {
        PartsOf { stream, count, bytes: 0 }
    }

    #[test]
    fn a_stream_is_whole_however_its_parts_came() {
        let mut parts = OpenParts::default();
        for (number, index) in [(2, 9), (0, 7), (1, 8), (0, 11)] {
            parts.add(1, 5, number, index);
        }
        parts.add(1, 6, 0, 10);
        parts.add(2, 5, 0, 6);
        assert_eq!(parts.first_index(), Some(6));
        assert_eq!(parts.take(1, &of(5, 3)).as_deref(), Some(&[7, 8, 9][..]));
        assert_eq!(parts.take(1, &of(5, 3)), None, "it has ended");
        assert_eq!(parts.take(1, &of(6, 2)), None, "one is missing");
        assert_eq!(parts.first_index(), Some(6));
        parts.add(2, 5, 3, 12);
        assert_eq!(parts.take(2, &of(5, 2)), None, "one is missing, and there is another");
        assert_eq!(parts, OpenParts::default());
    }

    #[test]
    fn a_stream_ends_without_its_origin_given_up_or_idle() {
        let mut parts = OpenParts::default();
        (1..=3).for_each(|origin| parts.add(origin, 5, 0, origin as u64));
        parts.view(&[2, 3]);
        assert_eq!(parts.first_index(), Some(2));
        parts.end(2, 5);
        assert_eq!(parts.first_index(), Some(3));
        parts.passed(IDLE_BYTES_MAX as usize);
        parts.add(3, 6, 0, 20);
        parts.passed(1);
        assert_eq!(parts.first_index(), Some(20), "the first has not gone on");
        let half = IDLE_BYTES_MAX / 2;
        for number in 1..BYTES_MAX / half {
            parts.passed(half as usize);
            parts.add(3, 6, number as u32, 21);
        }
        assert_eq!(parts.first_index(), Some(20), "it goes on");
        parts.passed(half as usize);
        assert_eq!(parts, OpenParts::default());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut parts = OpenParts::default();
        (0..=PLACES_MAX as u32).for_each(|number| parts.add(1, 5, number, 7));
        assert_eq!(parts.places, PLACES_MAX);
        assert_eq!(parts.take(1, &of(5, PLACES_MAX as u32 + 1)), None);
        assert_eq!(parts.places, 0);
    }

    #[test]
    fn they_are_written_and_read_and_damage_is_refused() {
        let mut parts = OpenParts::default();
        for (origin, stream, number, index) in [(1, 5, 0, 7), (1, 5, 2, 9), (3, 1, 0, 8)] {
            parts.add(origin, stream, number, index);
            parts.passed(100);
        }
        let bytes = parts.encode();
        assert_eq!(OpenParts::decode(&bytes).as_ref(), Some(&parts));
        // Where a stream ends, fewer of them are as good as more.
        let whole = [8, 8 + 44 + 2 * 12];
        for cut in (0..bytes.len()).filter(|cut| !whole.contains(cut)) {
            assert_eq!(OpenParts::decode(&bytes[..cut]), None, "{cut}");
        }
        let swapped = [&bytes[..8], &bytes[76..], &bytes[8..76]].concat();
        assert_eq!(OpenParts::decode(&swapped), None);
    }
}
