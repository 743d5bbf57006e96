//! What the group has, and who is in it: the log, the view, proposals on their way.

use super::id_of;
use super::leader::Mode;
use crate::baton::installed;
use bytes::Bytes;
use quorate_consensus::{MemberId, Term};
use quorate_live::{Standing, View, ViewMember};
use simulated_node::blocking::now;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a member is silent before the view goes on without it.
const SUSPECT_TIMEOUT: Duration = Duration::from_millis(400);

#[derive(Clone)]
pub(super) enum Entry {
    Data(Bytes),
    View(View),
}

pub(super) struct Logged {
    pub(super) entry: Entry,
    /// With a single primary: the term of whose leader it is.
    pub(super) primary_term: Option<Term>,
    pub(super) at: Instant,
}

/// A proposal on its way, or in the log of a member that may lead next.
pub(super) struct Flight {
    pub(super) data: Bytes,
}

#[derive(Default)]
pub(super) struct Place {
    /// The process that runs, if one does.
    pub(super) incarnation: Option<u32>,
    /// Cut off from the others.
    pub(super) cut: bool,
    /// Since when it is as it is with this.
    pub(super) since: Option<Instant>,
    pub(super) told_lost: bool,
    /// It was, in the life of this process.
    pub(super) has_lost: bool,
    /// It was, and has not heard of one since.
    pub(super) knows_of_loss: bool,
    pub(super) leaving: bool,
    pub(super) lag: Duration,
    /// The disk of its log has no more room than is in reserve.
    pub(super) full: bool,
    /// Sent again until decided.
    pub(super) pending: BTreeMap<u64, (Bytes, Instant)>,
    pub(super) own: OwnLog,
    /// How its server stands, as it last said.
    pub(super) standing: Option<Standing>,
    /// The log was replaced while this process ran, or before it, and lacks what is needed.
    pub(super) left_behind: bool,
}

/// What a member has on its own disk: the log after `base`, up to `end`, and snapshots.
#[derive(Default)]
pub(super) struct OwnLog {
    pub(super) base: usize,
    pub(super) end: usize,
    /// What is before it was never here, for all that is known.
    pub(super) replaced: usize,
    pub(super) snapshots: BTreeMap<usize, (i64, Bytes)>,
}

impl OwnLog {
    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    pub(super) fn has(&self, index: usize) -> bool {
        (self.base..=self.end).contains(&index)
    }

    /// A snapshot of the leader's takes the place of the log.
    pub(super) fn replace(&mut self, index: usize, snapshot: (i64, Bytes)) {
        (self.base, self.end, self.replaced) = (index, index, index);
        self.snapshots.insert(index, snapshot);
    }

    /// Lets go of what lies before the newest snapshot that needs nothing from before `needed`, nor of
    /// what a crash may take from the database (the log is kept for longer than that).
    pub(super) fn purge(&mut self, needed: usize, durable: i64) -> bool {
        let fits = |(_, (seqno, _)): &(&usize, &(i64, Bytes))| *seqno <= durable;
        let upto = self.snapshots.range(..needed).rev().find(fits).map_or(0, |(index, _)| *index);
        let purges = upto > self.base;
        self.base = self.base.max(upto);
        purges
    }
}

pub(super) struct State {
    pub(super) log: Vec<Logged>,
    /// What the leader's log does not have any more: who lacks it is sent a snapshot.
    pub(super) floor: usize,
    pub(super) places: Vec<Place>,
    pub(super) view: View,
    pub(super) fresh_view: bool,
    pub(super) flights: BTreeMap<(Instant, u64), Flight>,
    pub(super) flown: u64,
    /// States of the certifier after so many entries, and the seqno there.
    pub(super) snapshots: BTreeMap<usize, (i64, Bytes)>,
    /// How many of a thousand proposals get lost.
    pub(super) loss: u32,
    pub(super) mode: Mode,
    pub(super) ended: bool,
}

impl State {
    pub(super) fn reaches(&self, node: usize) -> bool {
        let place = &self.places[node];
        place.incarnation.is_some() && !place.cut
    }

    pub(super) fn has_quorum(&self) -> bool {
        let up = (0..self.places.len()).filter(|node| self.reaches(*node)).count();
        up * 2 > self.places.len()
    }

    pub(super) fn in_contact(&self, node: usize) -> bool {
        self.reaches(node) && self.has_quorum()
    }

    pub(super) fn fly(&mut self, data: Bytes) {
        let (lost, delay) = installed().random(|rng| {
            let delay = if rng.chance(50) { rng.millis(20, 900) } else { rng.millis(0, 6) };
            (rng.chance(self.loss), delay)
        });
        if !lost {
            self.flown += 1;
            self.flights.insert((now() + delay, self.flown), Flight { data });
        }
    }

    /// The newest snapshot that a leader can send.
    pub(super) fn newest_snapshot(&self) -> Option<(usize, (i64, Bytes))> {
        self.snapshots.last_key_value().map(|(index, snapshot)| (*index, snapshot.clone()))
    }

    /// Who leads: any that hears the group.
    pub(super) fn leader(&self) -> Option<MemberId> {
        self.mode.lead.filter(|node| self.in_contact(*node)).map(id_of)
    }

    pub(super) fn append(&mut self, entry: Entry) {
        let primary_term = self.mode.primary_term();
        self.log.push(Logged { entry, primary_term, at: now() });
    }

    /// Who belongs to the next view.
    pub(super) fn present(&self) -> Vec<ViewMember> {
        let present = |node: &usize| {
            let place = &self.places[*node];
            let silent =
                place.cut && place.since.is_some_and(|since| now() - since > SUSPECT_TIMEOUT);
            let joins = place.cut && !self.view.members.iter().any(|m| m.id == id_of(*node));
            place.incarnation.is_some() && !silent && !joins && !place.leaving
        };
        let member = |node: usize| ViewMember {
            id: id_of(node),
            incarnation: self.places[node].incarnation.unwrap_or(0),
            name: format!("n{node}"),
            incoming: format!("n{node}:3306"),
            addr: format!("n{node}:4567"),
        };
        (0..self.places.len()).filter(present).map(member).collect()
    }

    pub(super) fn settle_view(&mut self) {
        if !self.has_quorum() {
            return;
        }
        let members = self.present();
        let primary = self.mode.primary();
        let is_new = members != self.view.members || primary != self.view.primary;
        if is_new || std::mem::take(&mut self.fresh_view) {
            self.view = View { number: self.view.number + 1, members, primary };
            self.append(Entry::View(self.view.clone()));
        }
    }
}
