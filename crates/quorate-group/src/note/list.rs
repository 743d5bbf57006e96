//! The newest notes of a log.

use super::{EventNote, Note, OrderNote, EVENTS_MAX, NOTES_MAX};
use bytes::Bytes;
use quorate_consensus::Index;
use quorate_wire::{BodyReader, BodyWriter, WireError};
use std::collections::VecDeque;

/// In the log's order, each with its index. Events take no order's place, however many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    orders: VecDeque<(Index, Note)>,
    events: VecDeque<(Index, Note)>,
}

impl Notes {
    /// The next of the log. False if it counts for nothing: it is here already.
    pub fn take(&mut self, index: Index, note: Note) -> bool {
        let (list, most) = match note {
            Note::Order(_) => (&mut self.orders, NOTES_MAX),
            Note::Event(_) => (&mut self.events, EVENTS_MAX),
        };
        let id = note.id();
        if list.iter().any(|(_, known)| known.id() == id) {
            return false;
        }
        if list.len() >= most {
            list.pop_front();
        }
        list.push_back((index, note));
        true
    }

    /// The oldest first.
    pub fn orders(&self) -> impl DoubleEndedIterator<Item = &OrderNote> {
        self.orders.iter().filter_map(|(_, note)| match note {
            Note::Order(note) => Some(note),
            Note::Event(_) => None,
        })
    }

    /// The oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &EventNote> {
        self.events.iter().filter_map(|(_, note)| match note {
            Note::Event(note) => Some(note),
            Note::Order(_) => None,
        })
    }

    /// All, each with its index in the log, the oldest first.
    pub fn all(&self) -> Vec<&(Index, Note)> {
        let mut all: Vec<_> = self.orders.iter().chain(&self.events).collect();
        all.sort_by_key(|(index, _)| *index);
        all
    }

    pub fn encode(&self) -> Bytes {
        let all = self.all();
        let mut out = BodyWriter::default();
        out.u32(all.len() as u32);
        for (index, note) in all {
            out.u64(*index);
            out.data(&note.encode());
        }
        out.finish().to_bytes()
    }

    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut body = BodyReader::new(bytes, "notes");
        let count = body.count(8 + 4)?;
        if count > NOTES_MAX + EVENTS_MAX {
            return Err(WireError::BadValue { what: "count of notes", value: count as u64 });
        }
        let (mut notes, mut last) = (Self::default(), 0);
        for _ in 0..count {
            let index = body.u64()?;
            let note = Note::decode(body.data()?)?;
            if index <= last || !notes.take(index, note) {
                return Err(WireError::BadValue { what: "place of a note", value: index });
            }
            last = index;
        }
        body.end()?;
        Ok(notes)
    }
}
