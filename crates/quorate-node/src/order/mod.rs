//! The two orders that every write set passes: apply order and commit order.
//!
//! Invariants:
//! - commit order is strict: at most one seqno is inside, and it is `last_left + 1`;
//! - apply order's `last_left` is the largest seqno such that it and everything below is released;
//!   this is what `last_committed` means, and what a reader may rely on;
//! - both are entered at most once for a seqno, and left for every seqno that was ordered;
//! - above the gate for isolated actions, none is inside, nor executed before its turn;
//! - an order that is violated, or halted, lets nobody pass any more: who waits in it, or comes to it,
//!   is told so. The node is withdrawn then; what it would commit from there on is not the group's.
//!
//! Waiters sleep on one of a fixed ring of condition variables chosen by seqno, so that leaving
//! wakes the one thread whose turn it is and nothing is allocated while waiting.

use crate::blocking::Condvar;
use std::sync::Arc;

mod apply;
mod commit;
mod event;
mod part_places;
mod places;
pub mod queue;
mod read_back;
mod still;

pub use apply::ApplyOrder;
pub use commit::{CommitOrder, Entered, GateHolder};
pub use event::{Event, WriteSetEvent, DUMMY};
pub use part_places::PartPlaces;
pub use places::Place;
pub use still::Still;

/// The order was violated, which is a bug, or the node is withdrawn for another reason.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Halted(Arc<str>);

impl Halted {
    fn at(why: String) -> Halted {
        Halted(why.into())
    }
}

/// Whether an order may be passed.
#[derive(Default)]
struct Brake(Option<Halted>);

impl Brake {
    fn check(&self) -> Result<(), Halted> {
        self.0.clone().map_or(Ok(()), Err)
    }

    /// The first reason stays.
    fn pull(&mut self, why: Halted) -> Halted {
        self.0.get_or_insert(why).clone()
    }
}

struct Slots(Box<[Condvar]>);

impl Slots {
    fn new() -> Self {
        Self((0..SLOTS).map(|_| Condvar::new()).collect())
    }

    fn of(&self, seqno: i64) -> &Condvar {
        &self.0[seqno.rem_euclid(SLOTS as i64) as usize]
    }

    fn wake_all(&self) {
        self.0.iter().for_each(|c| {
            c.notify_all();
        });
    }

    fn wake_range(&self, from: i64, to: i64) {
        if to - from >= SLOTS as i64 {
            self.wake_all();
        } else {
            (from..=to).for_each(|s| {
                self.of(s).notify_all();
            });
        }
    }
}

const SLOTS: usize = 1024;
