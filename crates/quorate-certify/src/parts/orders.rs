//! The open streams in the orders that the rules of [`OpenParts`](super::OpenParts) go by, so that a rule only
//! looks at the first of them.
//!
//! Invariants:
//! - each open stream is once in each order, with what it has at present: it leaves them before that changes;
//! - what is found does not depend on which of several equals comes first: all that are given up at an entry go.

use super::{Id, Stream, BYTES_MAX, IDLE_BYTES_MAX};
use std::collections::BTreeSet;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Orders {
    by_last_part: Order,
    by_first_part: Order,
    by_first_index: Order,
}

impl Orders {
    pub(super) fn enter(&mut self, id: Id, stream: &Stream) {
        self.by_last_part.enter(stream.at, id);
        self.by_first_part.enter(stream.begun, id);
        self.by_first_index.enter(stream.first, id);
    }

    pub(super) fn leave(&mut self, id: Id, stream: &Stream) {
        self.by_last_part.leave(stream.at, id);
        self.by_first_part.leave(stream.begun, id);
        self.by_first_index.leave(stream.first, id);
    }

    /// One that is over after so many bytes.
    pub(super) fn given_up(&self, bytes: u64) -> Option<Id> {
        let over = |order: &Order, max| order.first().filter(|(at, _)| bytes - at > max);
        let idle = over(&self.by_last_part, IDLE_BYTES_MAX);
        idle.or_else(|| over(&self.by_first_part, BYTES_MAX)).map(|(_, id)| id)
    }

    pub(super) fn first_index(&self) -> Option<u64> {
        self.by_first_index.first().map(|(index, _)| index)
    }
}

/// By a number of each. The parts of an id are apart, which takes a third less memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Order(BTreeSet<(u64, u128, u64)>);

impl Order {
    fn enter(&mut self, number: u64, (origin, stream): Id) {
        self.0.insert((number, origin, stream));
    }

    fn leave(&mut self, number: u64, (origin, stream): Id) {
        self.0.remove(&(number, origin, stream));
    }

    fn first(&self) -> Option<(u64, Id)> {
        self.0.first().map(|(number, origin, stream)| (*number, (*origin, *stream)))
    }
}
