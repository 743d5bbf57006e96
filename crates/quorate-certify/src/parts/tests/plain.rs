//! The rules of [`OpenParts`](super::OpenParts) at their plainest: each looks at all streams.

use super::super::{Id, BYTES_MAX, IDLE_BYTES_MAX};
use bytes::BufMut;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Plain {
    streams: BTreeMap<Id, Stream>,
    bytes: u64,
}

struct Stream {
    begun: u64,
    at: u64,
    places: BTreeMap<u32, u64>,
}

impl Plain {
    pub fn add(&mut self, origin: u128, stream: u64, number: u32, index: u64) {
        let at = self.bytes;
        let new = Stream { begun: at, at, places: BTreeMap::new() };
        let open = self.streams.entry((origin, stream)).or_insert(new);
        open.at = at;
        open.places.entry(number).or_insert(index);
    }

    pub fn end(&mut self, origin: u128, stream: u64) -> BTreeMap<u32, u64> {
        let ended = self.streams.remove(&(origin, stream));
        self.retain(|_, _| true);
        ended.map(|stream| stream.places).unwrap_or_default()
    }

    pub fn passed(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        let now = self.bytes;
        self.retain(|_, stream| {
            now - stream.at <= IDLE_BYTES_MAX && now - stream.begun <= BYTES_MAX
        });
    }

    pub fn view(&mut self, members: &[u128]) {
        self.retain(|origin, _| members.contains(&origin));
    }

    fn retain(&mut self, stays: impl Fn(u128, &Stream) -> bool) {
        self.streams.retain(|(origin, _), stream| stays(*origin, stream));
        if self.streams.is_empty() {
            self.bytes = 0;
        }
    }

    pub fn first_index(&self) -> Option<u64> {
        self.streams.values().flat_map(|stream| stream.places.values()).min().copied()
    }

    pub fn places(&self) -> usize {
        self.streams.values().map(|stream| stream.places.len()).sum()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from(self.bytes.to_le_bytes());
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
}
