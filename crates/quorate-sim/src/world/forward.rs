//! Proposals on their way to the leader, as a live member sends them.
//!
//! Each member sends its undecided proposals, oldest first, over one stream to whoever leads. A
//! new leader, or a break, means a new stream that starts again at the oldest, so a proposal may
//! appear in the log more than once. In some scenarios the leader takes a stream only without
//! gaps; in others it takes whatever comes.

use super::{Event, Packet, World};
use crate::coverage::Mark;
use crate::member::Stream;
use crate::net::SLOTS_MAX;
use crate::plant::Plant;
use bytes::{Bytes, BytesMut};
use quorate_consensus::{EntryKind, Event as CoreEvent, MemberId, Proposal, RoleState, Term};

/// Where the serial stands in a write set; for the planted bug that changes it.
const SERIAL_AT: std::ops::Range<usize> = 24..32;

/// Layout version of a write set that ends in a term; for the other one.
const VERSION_WITH_TERM: u8 = 2;

impl World {
    /// The role, term or leader of `m` changed.
    pub(super) fn leader_changed(&mut self, m: usize) {
        let member = &mut self.members[m];
        let (leader, term) = leader_and_term(member.id, member.role);
        member.streams = [Stream::default(); SLOTS_MAX];
        if (leader, term) != (member.session.leader, member.session.term) {
            self.members[m].writes = self.no_writes();
            self.reconnect(m);
        }
    }

    /// Starts a new stream, from the oldest undecided proposal on.
    pub(super) fn reconnect(&mut self, m: usize) {
        let number = self.next_number();
        let now = self.schedule.now();
        let member = &mut self.members[m];
        let (leader, term) = leader_and_term(member.id, member.role);
        member.reconnect(number, leader, term, now);
        if self.plant == Some(Plant::ResendNewSerial) {
            for pending in &mut member.pending {
                pending.serial = member.next_serial;
                member.next_serial += 1;
                pending.data = with_serial(&pending.data, pending.serial);
            }
        }
        if self.plant == Some(Plant::RestampTerm) {
            for pending in &mut member.pending {
                pending.data = with_term(&pending.data, term);
            }
        }
        if leader.is_some() && !member.pending.is_empty() {
            let run = member.run;
            self.schedule.after(10, Event::Flush { m, run });
        }
    }

    /// Sends what was not yet sent in this stream.
    pub(super) fn flush(&mut self, m: usize) {
        let member = &mut self.members[m];
        let Some(leader) = member.session.leader else { return };
        if member.sent >= member.pending.len() {
            return;
        }
        let items: Vec<Bytes> =
            member.pending.iter().skip(member.sent).map(|p| p.data.clone()).collect();
        if leader == member.id {
            if self.propose(m, m, items) {
                let member = &mut self.members[m];
                member.sent = member.pending.len();
            }
            return;
        }
        member.sent = member.pending.len();
        let (session, part) = (member.session.number, member.session.next);
        member.session.next += 1;
        self.send(m, leader, Packet::Forward { session, part, items });
    }

    /// The next part of a stream arrives at a member that hopefully leads.
    pub(super) fn forwarded(
        &mut self,
        from: usize,
        m: usize,
        session: u64,
        part: u64,
        items: Vec<Bytes>,
    ) {
        if self.scenario.loose_forwarding {
            self.propose(from, m, items);
            return;
        }
        let stream = &mut self.members[m].streams[from];
        if session > stream.session {
            *stream = Stream { session, next: 0, broken: false };
        }
        if session < stream.session || stream.broken {
            return;
        }
        let in_order = part == stream.next;
        stream.next += 1;
        if !in_order || !self.propose(from, m, items) {
            self.members[m].streams[from].broken = true;
            self.mark(Mark::StreamBroken);
        }
    }

    /// True if the core took what comes from `from`.
    fn propose(&mut self, from: usize, m: usize, items: Vec<Bytes>) -> bool {
        let from = self.members[from].id;
        let member = &mut self.members[m];
        // Whoever is no member any more hears of no verdict, and sends the same again and again.
        if member.config.members.contains_key(&from) {
            let now_ms = member.clock.millis(self.schedule.now());
            member.writes.note(from, items.len(), now_ms);
        }
        let items = items.into_iter().map(|data| Proposal::new(EntryKind::Data, data)).collect();
        let taken = self.step(m, CoreEvent::Propose(items)).is_ok();
        if !taken {
            self.mark(Mark::ProposalRefused);
        }
        taken
    }

    /// Streams get stuck when a part is lost or refused: start over after a while.
    pub(super) fn unstick(&mut self, m: usize) {
        let patience = self.scenario.election_us() * 2;
        let member = &self.members[m];
        if member.pending.is_empty() || self.schedule.now() < member.session.since + patience {
            return;
        }
        if member.session.leader == Some(member.id) {
            // Its own log holds what was accepted; only what was refused is proposed again.
            self.flush(m);
        } else {
            self.reconnect(m);
        }
    }
}

fn leader_and_term(own: MemberId, role: RoleState) -> (Option<MemberId>, Term) {
    match role {
        RoleState::Follower { term, leader } => (leader, term),
        RoleState::PreCandidate { term } | RoleState::Candidate { term } => (None, term),
        RoleState::Leader { term } => (Some(own), term),
    }
}

/// With another term at the end, if it carries one.
fn with_term(data: &Bytes, term: Term) -> Bytes {
    let mut data = BytesMut::from(&data[..]);
    if data[0] == VERSION_WITH_TERM {
        let at = data.len() - size_of::<Term>();
        data[at..].copy_from_slice(&term.to_le_bytes());
    }
    data.freeze()
}

fn with_serial(data: &Bytes, serial: u64) -> Bytes {
    let mut data = BytesMut::from(&data[..]);
    data[SERIAL_AT].copy_from_slice(&serial.to_le_bytes());
    data.freeze()
}
