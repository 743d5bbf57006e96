//! What other threads hand in for the machine. A shell keeps it behind a small lock of its own, so
//! that nobody has to wait for the machine to propose; whoever holds the machine takes it in.

use crate::author::Mandate;
use crate::note::EventKind;
use crate::order::Order;
use quorate_consensus::{MemberId, Proposal};
use quorate_wire::Standing;

#[derive(Debug, Default)]
pub struct Intake {
    pub(crate) proposals: Vec<(u64, Proposal)>,
    pub(crate) decided: Vec<u64>,
    pub(crate) orders: Vec<HandedIn>,
    pub(crate) events: Vec<(EventKind, String)>,
    pub(crate) room: Option<MemberId>,
    pub(crate) standing: Option<Standing>,
}

#[derive(Debug)]
pub(crate) struct HandedIn {
    pub id: u64,
    pub order: Order,
    pub deadline_ms: u64,
    /// Of an operator's.
    pub mandate: Option<Mandate>,
}

impl Intake {
    /// Serials are unique and ascending.
    pub fn push(&mut self, serial: u64, proposal: Proposal) {
        self.proposals.push((serial, proposal));
    }

    /// This proposal was seen committed, or is given up.
    pub fn decided(&mut self, serial: u64) {
        self.decided.push(serial);
    }

    /// `id` is unique; `deadline_ms` a time of the machine's clock.
    pub fn order(&mut self, id: u64, order: Order, deadline_ms: u64) {
        self.orders.push(HandedIn { id, order, deadline_ms, mandate: None });
    }

    /// As [`Intake::order`], by an operator: who gave it, and what came of it, is noted.
    pub fn order_by(&mut self, id: u64, order: Order, deadline_ms: u64, mandate: Mandate) {
        self.orders.push(HandedIn { id, order, deadline_ms, mandate: Some(mandate) });
    }

    /// Something happened to this member that the group is to know: see [`crate::EventNote`].
    pub fn event(&mut self, kind: EventKind, what: String) {
        self.events.push((kind, what));
    }

    /// As [`crate::Input::Room`].
    pub fn room(&mut self, peer: MemberId) {
        self.room = Some(peer);
    }

    /// How the host's server stands now. Of several the one counts that has applied most.
    pub fn standing(&mut self, standing: Standing) {
        if self.standing.is_none_or(|other| other.applied <= standing.applied) {
            self.standing = Some(standing);
        }
    }

    /// Empties it into `batch`, which is empty, for [`crate::Member::take_in`].
    pub fn hand_over(&mut self, batch: &mut Intake) {
        std::mem::swap(self, batch);
    }
}
