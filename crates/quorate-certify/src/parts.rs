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
//! - there are [`PLACES_MAX`] places at most, and half of them for one origin. A part for which there is none is not
//!   kept, and the write set of its stream fails;
//! - an entry of the log costs no more for the streams that stay open: one origin may hold a million of them, and
//!   the verdicts of all wait for the thread that is here. What is looked at has just come, or goes
//!   ([`Orders`]); only a snapshot is of all.

mod orders;
#[cfg(test)]
mod tests;

use self::orders::Orders;
use bytes::{Buf, BufMut};
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Bound;

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
/// Of one origin: half a terabyte, if its parts are whole ones.
const SHARE_MAX: usize = PLACES_MAX / 2;

/// Of a stream: its origin, and its number there.
type Id = (u128, u64);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenParts {
    streams: BTreeMap<Id, Stream>,
    /// Of the same streams.
    orders: Orders,
    /// Of all entries since there was no stream.
    bytes: u64,
    places: usize,
    /// Of them, those of each origin that has any.
    shares: BTreeMap<u128, usize>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Stream {
    /// What [`OpenParts::bytes`] was at its first part, and at its last.
    begun: u64,
    at: u64,
    places: BTreeMap<u32, u64>,
    /// The lowest of the places.
    first: u64,
}

impl OpenParts {
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The first entry of the log that may be read again for a transaction that is open.
    pub fn first_index(&self) -> Option<u64> {
        self.orders.first_index()
    }

    /// A part of a member of the view.
    pub(crate) fn add(&mut self, origin: u128, stream: u64, number: u32, index: u64) {
        if self.places >= PLACES_MAX || self.shares.get(&origin) >= Some(&SHARE_MAX) {
            return;
        }
        let id = (origin, stream);
        let at = self.bytes;
        let new = Stream { begun: at, first: index, ..Stream::default() };
        let mut open = self.close(id).unwrap_or(new);
        open.at = at;
        let place = *open.places.entry(number).or_insert(index);
        open.first = open.first.min(place);
        self.open(id, open);
    }

    /// Ends a stream: with its write set, or given up.
    pub(crate) fn end(&mut self, origin: u128, stream: u64) -> BTreeMap<u32, u64> {
        let ended = self.close((origin, stream)).unwrap_or_default();
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
        while let Some(id) = self.orders.given_up(self.bytes) {
            self.close(id);
        }
        self.settle();
    }

    /// The next view.
    pub(crate) fn view(&mut self, members: &[u128]) {
        let mut from = Bound::Unbounded;
        while let Some((&id, _)) = self.streams.range((from, Bound::Unbounded)).next() {
            let (origin, _) = id;
            if members.contains(&origin) {
                from = Bound::Excluded((origin, u64::MAX));
            } else {
                self.close(id);
            }
        }
        self.settle();
    }

    fn open(&mut self, id: Id, stream: Stream) {
        self.orders.enter(id, &stream);
        self.places += stream.places.len();
        *self.shares.entry(id.0).or_default() += stream.places.len();
        self.streams.insert(id, stream);
    }

    /// Until [`Self::settle`], which follows unless it is opened again.
    fn close(&mut self, id: Id) -> Option<Stream> {
        let stream = self.streams.remove(&id)?;
        self.orders.leave(id, &stream);
        self.places -= stream.places.len();
        if let Entry::Occupied(mut share) = self.shares.entry(id.0) {
            *share.get_mut() -= stream.places.len();
            if *share.get() == 0 {
                share.remove();
            }
        }
        Some(stream)
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
            let first = places.values().min().copied()?;
            parts.open(id, Stream { begun, at, places, first });
        }
        let sound = parts.places <= PLACES_MAX && (!parts.is_empty() || parts.bytes == 0);
        sound.then_some(parts)
    }
}
