//! The places in the log of write sets that wait, packed: all that a member that lags keeps of them in memory.
//!
//! Invariant: what was put in comes out as it was, in its order. A place takes two to four bytes where
//! its seqno and index are the next ones, however long its write set is.

use std::collections::VecDeque;

/// Memory is taken, and given back, in blocks of so many bytes.
const BLOCK_BYTES: usize = 16 << 10;
/// The longest that a place can be: its head, flags, and three numbers.
const PLACE_BYTES_MAX: usize = 1 + 4 + 3 * 10;

const CERTIFIED: u8 = 1;
const OTHER_FLAGS: u8 = 2;
const OTHER_SEQNO: u8 = 4;
const OTHER_INDEX: u8 = 8;

/// A write set without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Place {
    pub index: u64,
    pub seqno: i64,
    pub depends_on: i64,
    pub flags: u32,
    pub certified: bool,
}

/// Not empty, but after its last place was taken.
#[derive(Debug)]
pub struct Places {
    first: Option<Place>,
    last: Place,
    /// What comes after `first`.
    packed: VecDeque<Vec<u8>>,
    /// Of the first block: so many bytes are taken already.
    taken: usize,
    len: usize,
}

impl Places {
    pub fn new(first: Place) -> Places {
        Places { first: Some(first), last: first, packed: VecDeque::new(), taken: 0, len: 1 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn first(&self) -> Option<&Place> {
        self.first.as_ref()
    }

    pub fn last_index(&self) -> u64 {
        self.last.index
    }

    pub fn push(&mut self, place: Place) {
        if self.first.is_none() {
            self.first = Some(place);
        } else {
            let room = |block: &Vec<u8>| block.len() + PLACE_BYTES_MAX <= BLOCK_BYTES;
            if !self.packed.back().is_some_and(room) {
                self.packed.push_back(Vec::with_capacity(BLOCK_BYTES));
            }
            if let Some(block) = self.packed.back_mut() {
                pack(&self.last, &place, block);
            }
        }
        self.last = place;
        self.len += 1;
    }

    pub fn pop(&mut self) -> Option<Place> {
        let first = self.first.take()?;
        self.len -= 1;
        if let Some(block) = self.packed.front() {
            let mut rest = &block[self.taken..];
            self.first = Some(unpack(&first, &mut rest).expect("a block has whole places"));
            self.taken = block.len() - rest.len();
            if rest.is_empty() {
                self.packed.pop_front();
                self.taken = 0;
            }
        }
        Some(first)
    }

    /// Drops those up to `seqno`.
    pub fn discard_upto(&mut self, seqno: i64) {
        while self.first.is_some_and(|first| first.seqno <= seqno) {
            self.pop();
        }
    }
}

fn pack(before: &Place, place: &Place, out: &mut Vec<u8>) {
    let (other_flags, other_seqno, other_index) = (
        place.flags != before.flags,
        place.seqno != before.seqno.wrapping_add(1),
        place.index != before.index.wrapping_add(1),
    );
    let choose = |bit: u8, set: bool| if set { bit } else { 0 };
    out.push(
        choose(CERTIFIED, place.certified)
            | choose(OTHER_FLAGS, other_flags)
            | choose(OTHER_SEQNO, other_seqno)
            | choose(OTHER_INDEX, other_index),
    );
    if other_flags {
        out.extend(place.flags.to_le_bytes());
    }
    if other_seqno {
        pack_number(place.seqno.wrapping_sub(before.seqno) as u64, out);
    }
    if other_index {
        pack_number(place.index.wrapping_sub(before.index), out);
    }
    pack_number(place.seqno.wrapping_sub(place.depends_on) as u64, out);
}

/// `None`: these are not whole places.
fn unpack(before: &Place, bytes: &mut &[u8]) -> Option<Place> {
    let (&[head], rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    let mut flags = before.flags;
    if head & OTHER_FLAGS != 0 {
        let (chosen, rest) = bytes.split_first_chunk()?;
        (flags, *bytes) = (u32::from_le_bytes(*chosen), rest);
    }
    let mut step = |bit| if head & bit == 0 { Some(1) } else { unpack_number(bytes) };
    let seqno = before.seqno.wrapping_add(step(OTHER_SEQNO)? as i64);
    let index = before.index.wrapping_add(step(OTHER_INDEX)?);
    let depends_on = seqno.wrapping_sub(unpack_number(bytes)? as i64);
    Some(Place { index, seqno, depends_on, flags, certified: head & CERTIFIED != 0 })
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn pack_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn unpack_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&[byte], rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(mut places: Places) -> Vec<Place> {
        std::iter::from_fn(|| places.pop()).collect()
    }

    fn filled(places: &[Place]) -> Places {
        let mut all = Places::new(places[0]);
        places[1..].iter().for_each(|place| all.push(*place));
        all
    }

    fn any_place() -> impl Strategy<Value = Place> {
        (any::<u64>(), any::<i64>(), any::<i64>(), any::<u32>(), any::<bool>()).prop_map(
            |(index, seqno, depends_on, flags, certified)| Place {
                index,
                seqno,
                depends_on,
                flags,
                certified,
            },
        )
    }

    proptest! {
        #[test]
        fn places_come_out_as_they_went_in(
            places in prop::collection::vec(any_place(), 1..200),
        ) {
            prop_assert_eq!(filled(&places).last_index(), places[places.len() - 1].index);
            prop_assert_eq!(drain(filled(&places)), places);
        }
    }

    fn usual(seqno: i64) -> Place {
        Place { index: seqno as u64 + 7, seqno, depends_on: seqno - 90, flags: 3, certified: true }
    }

    #[test]
    fn a_million_places_take_two_megabytes_which_are_given_back() {
        let places: Vec<Place> = (1..=1_000_000).map(usual).collect();
        let mut all = filled(&places);
        let held = |all: &Places| all.packed.iter().map(Vec::capacity).sum::<usize>();
        assert!(held(&all) <= (2 << 20) + BLOCK_BYTES, "{}", held(&all));
        for place in &places[..places.len() - 1] {
            assert_eq!(all.pop().as_ref(), Some(place));
        }
        assert!(held(&all) <= BLOCK_BYTES, "{}", held(&all));
        all.push(usual(1_000_001));
        assert_eq!(drain(all), [usual(1_000_000), usual(1_000_001)]);
    }
}
