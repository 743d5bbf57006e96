//! Proposals into the core of a leader, or to the leader there is.
//!
//! The core holds proposals back while leadership is on its way to somebody else, or the leader's disk is behind:
//! they stay queued here, in their order, and go to whoever leads next, so that no client sees an error.

use super::deferred::Room;
use super::Driver;
use crate::output::{Link, Output};
use crate::rejected::Cause;
use quorate_consensus::{Event, LogPosition, MemberId, Proposal};
use quorate_wire::Packet;

impl Driver {
    /// Proposes, or forwards to the leader, what waits.
    pub fn send_pending(&mut self, out: &mut Output) {
        while self.pending.take_fresh() {
            match self.leadership.leader {
                Some(_) if self.leadership.is_leader => self.propose_pending(out),
                Some(leader) => self.forward_pending(leader, out),
                None => {}
            }
        }
    }

    /// Proposals of other members. Dropped if this member does not lead: their origin sends them
    /// again to whoever does.
    pub fn propose_for_others(&mut self, from: MemberId, batch: Vec<Proposal>, out: &mut Output) {
        if self.config.members.contains_key(&from) {
            self.writes.note(from, batch.len(), self.now_ms);
        }
        self.propose_or_defer(from, batch, out);
    }

    fn propose_or_defer(&mut self, from: MemberId, batch: Vec<Proposal>, out: &mut Output) {
        if !self.leadership.is_leader {
            return;
        }
        let is_member = self.config.members.contains_key(&from);
        if is_member && !self.deferred.waits(from) {
            let event = Event::ProposeFor(from, batch.clone());
            match self.step(event, out) {
                Err(refusal) if refusal.is_passing() => self.deferred.note(&refusal),
                _ => return,
            }
        }
        let room = if is_member { Room::Member } else { Room::Guest };
        if !self.deferred.add(from, batch, room) {
            // With a new connection it sends everything again that is not decided.
            self.reject(from, Cause::TooMuch, out);
            out.links.push(Link::Cut(from));
        }
    }

    /// More of the log is on disk.
    pub fn persisted(&mut self, position: LogPosition, out: &mut Output) {
        self.ignore_refusal(Event::Persisted(position), out);
        self.due |= self.deferred.disk_moved();
    }

    /// It has connected anew, and sends everything again that is not decided.
    pub fn begins_again(&mut self, from: MemberId) {
        self.deferred.forget(from);
    }

    /// Tries again what a transfer of leadership, an admission or the disk held up.
    pub fn retry_deferred(&mut self, out: &mut Output) {
        let (others, own_first) = self.deferred.take();
        if own_first && self.leadership.is_leader {
            self.pending.retry();
            self.send_pending(out);
        }
        for (from, batch) in others {
            // Who is no member and has gone sends everything again, if it comes back.
            if self.config.members.contains_key(&from) || self.peers.is_connected(from) {
                self.propose_or_defer(from, batch, out);
            }
        }
        if self.leadership.is_leader {
            self.pending.retry();
        }
    }

    fn propose_pending(&mut self, out: &mut Output) {
        loop {
            let batch = self.pending.take();
            if batch.is_empty() {
                return;
            }
            let count = batch.len();
            match self.step(Event::Propose(batch), out) {
                Ok(()) => self.writes.note(self.id, count, self.now_ms),
                Err(refusal) if refusal.is_passing() => {
                    // For the next leader, or for `retry_deferred` if none comes.
                    self.deferred.note(&refusal);
                    self.pending.put_back();
                    return;
                }
                // Leadership has just ended: the next leader gets everything.
                Err(_) => return,
            }
        }
    }

    fn forward_pending(&mut self, leader: MemberId, out: &mut Output) {
        if !self.peers.get(leader).is_some_and(|peer| peer.outgoing) {
            return;
        }
        loop {
            if self.pending.is_full() {
                out.ask_room = Some(leader);
                return;
            }
            let batch = self.pending.take();
            if batch.is_empty() {
                return;
            }
            // What the leader would refuse, again and again.
            if let Some(serial) = self.pending.altered(&batch) {
                return self.altered(&format!("its own proposal {serial}"), out);
            }
            self.pending.note_forwarded(&batch);
            out.send(leader, Packet::Forward(batch));
        }
    }
}
