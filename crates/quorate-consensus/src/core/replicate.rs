//! A leader: takes proposals, sends the log ahead of acknowledgements, repairs what got lost.
//!
//! Entries leave for the followers in the same step in which they are handed to the own disk.
//! Bodies come from memory; what is no longer there is fetched by the driver, one fetch a follower.

use super::{Consensus, Leadership, Role, Rounds};
use crate::config::Config;
use crate::effects::{Effects, Fault, Fetch};
use crate::event::{Options, StepError};
use crate::log::{self, Log};
use crate::message::{follow_each_other, Message, MessageBody};
use crate::progress::{Progress, State};
use crate::types::{Entry, EntryKind, Index, LogPosition, MemberId, Proposal, Term};
use bytes::Bytes;

/// What the leader's own disk does not have yet is in memory, however many others have it: so many times of it what is
/// sent to a follower ahead of its acknowledgements. From a disk that stands still leadership goes elsewhere, if it can;
/// not from one that is only slow.
const BEHIND_WINDOWS: usize = 4;

impl Consensus {
    /// With its first entry, which is a membership if that was installed by force.
    pub(super) fn become_leader(&mut self, forced: Option<Config>, fx: &mut Effects) {
        let own = self.options.id;
        let next = self.log.last().index + 1;
        let first = match forced {
            Some(config) => {
                let data = config.encode();
                self.configs.push(next, config.clone());
                fx.config = Some(config);
                Proposal::new(EntryKind::Config, data)
            }
            None => Proposal::new(EntryKind::Noop, Bytes::new()),
        };
        let peers = self.config().everybody().filter(|id| *id != own);
        let leadership = Leadership {
            peers: peers.map(|id| (id, self.configs.progress(id, next))).collect(),
            started_ms: self.now_ms,
            noop: next,
            rounds: Rounds::default(),
            reads: Default::default(),
            transfer: None,
            ahead: None,
            lease_given_up: false,
        };
        self.role = Role::Leader(Box::new(leadership));
        self.set_leader(Some(own), fx);
        self.hurry_until_ms = 0;
        if let Some(to) = self.open_offer() {
            self.offer_failed(to);
        }
        self.append_own([first], fx);
        self.start_round(fx);
    }

    pub(super) fn propose(
        &mut self,
        from: MemberId,
        batch: Vec<Proposal>,
        fx: &mut Effects,
    ) -> Result<(), StepError> {
        self.check_accepts_proposals()?;
        if batch.iter().any(|proposal| proposal.kind == EntryKind::Config) {
            let hint = "a membership entry is proposed by a ChangeMembership event, not as data";
            return Err(StepError::BadChange(hint.into()));
        }
        // Views and notes are few, and others wait for them.
        let is_data = |proposal: &Proposal| proposal.kind == EntryKind::Data;
        let bytes = self.log.unsynced_bytes();
        if bytes >= BEHIND_WINDOWS * self.options.inflight_bytes_max && batch.iter().any(is_data) {
            return Err(StepError::DiskBehind { bytes });
        }
        self.append_own(batch, fx);
        self.awaits(from, self.log.last().index);
        Ok(())
    }

    pub(super) fn check_accepts_proposals(&self) -> Result<(), StepError> {
        self.check_leads_on()?;
        if self.is_caretaker() {
            return Err(StepError::Transferring { to: None });
        }
        Ok(())
    }

    /// Leads, and is not just handing over.
    pub(super) fn check_leads_on(&self) -> Result<(), StepError> {
        match &self.role {
            Role::Leader(leadership) => match &leadership.transfer {
                Some(transfer) => Err(StepError::Transferring { to: Some(transfer.to) }),
                None => Ok(()),
            },
            _ => Err(StepError::NotLeader { leader: self.leader }),
        }
    }

    /// Appends to the own log and sends to everybody at the same moment.
    pub(super) fn append_own(
        &mut self,
        batch: impl IntoIterator<Item = Proposal>,
        fx: &mut Effects,
    ) {
        let term = self.hard.term;
        for proposal in batch {
            let entry = proposal.into_entry(self.log.last().index + 1, term);
            if entry.kind != EntryKind::Data {
                self.all_await(entry.index);
            }
            fx.append.push(entry.clone());
            self.log.append(entry);
        }
        self.send_to_all(fx);
    }

    fn send_to_all(&mut self, fx: &mut Effects) {
        if let Some((sender, leadership)) = self.sender() {
            leadership.peers.values_mut().for_each(|peer| sender.send(peer, fx));
        }
    }

    fn send_to(&mut self, to: MemberId, fx: &mut Effects) {
        self.with_peer(to, fx, |sender, peer, fx| sender.send(peer, fx));
    }

    pub(super) fn on_acknowledged(&mut self, from: MemberId, matched: Index, fx: &mut Effects) {
        let (now_ms, last, base) = (self.now_ms, self.log.last().index, self.log.base().index);
        let Some(peer) = self.peer_mut(from).filter(|_| matched <= last) else {
            return;
        };
        peer.heard_ms = Some(now_ms);
        if peer.acknowledge(matched, base) {
            peer.advanced_ms = Some(now_ms);
            self.advance_commit(fx);
        }
        self.send_to(from, fx);
        self.tell_commit(fx);
        if self.is_caretaker() {
            self.choose_transfer_target(fx);
        }
        self.hand_over_if_ready(from, fx);
    }

    pub(super) fn on_append_reject(
        &mut self,
        from: MemberId,
        rejected: Index,
        hint: LogPosition,
        fx: &mut Effects,
    ) {
        let now_ms = self.now_ms;
        let agree = if hint.index < self.log.base().index {
            hint.index
        } else {
            self.log.last_at_or_below(hint).index
        };
        let Some(peer) = self.peer_mut(from) else {
            return;
        };
        peer.heard_ms = Some(now_ms);
        if peer.rests() || !peer.reject(rejected, agree) {
            return;
        }
        let blank = hint == LogPosition::default();
        let snapshot = blank && std::mem::take(&mut peer.snapshot_welcome);
        self.with_peer(from, fx, |sender, peer, fx| match snapshot {
            true => sender.request_snapshot(peer, fx),
            false => sender.send(peer, fx),
        });
    }

    pub(super) fn welcome_snapshot(&mut self, to: MemberId) {
        if let Some(peer) = self.peer_mut(to) {
            peer.snapshot_welcome = true;
        }
    }

    /// Starts over with this peer, at once.
    pub(super) fn send_again(&mut self, to: MemberId, fx: &mut Effects) {
        self.with_peer(to, fx, |sender, peer, fx| {
            peer.connection_lost();
            if peer.state == (State::Probe { sent: true }) {
                peer.state = State::Probe { sent: false };
            }
            sender.send(peer, fx);
        });
    }

    /// A heartbeat reply came: the peer lives, so what is unanswered is asked for again.
    pub(super) fn resume(&mut self, to: MemberId, stalled: bool, fx: &mut Effects) {
        self.with_peer(to, fx, |sender, peer, fx| {
            if peer.state == (State::Probe { sent: true }) && !peer.rests() {
                peer.state = State::Probe { sent: false };
            } else if peer.state == State::Replicate && stalled {
                sender.ask_where(peer, fx);
            }
            sender.send(peer, fx);
        });
    }

    pub(super) fn on_fetched(
        &mut self,
        to: MemberId,
        from: Index,
        entries: Vec<Entry>,
        fx: &mut Effects,
    ) {
        self.with_peer(to, fx, |sender, peer, fx| {
            if peer.fetching != Some(from) {
                return;
            }
            peer.fetching = None;
            if peer.state == State::Replicate && peer.next == from {
                sender.send_fetched(peer, entries, fx);
            }
            sender.send(peer, fx);
        });
    }

    pub(super) fn on_fetch_unavailable(&mut self, to: MemberId, fx: &mut Effects) {
        self.with_peer(to, fx, |sender, peer, fx| {
            if peer.fetching.take().is_some() && peer.state == State::Replicate {
                sender.request_snapshot(peer, fx);
            }
        });
    }

    pub(super) fn on_snapshot_sent(&mut self, to: MemberId, last: Index, ok: bool) {
        let end = self.log.last().index;
        let Some(peer) = self.peer_mut(to).filter(|peer| peer.state == State::Snapshot) else {
            return;
        };
        peer.probe_from(if ok && last <= end { last + 1 } else { peer.next });
        // Not before the peer was heard again: a snapshot that cannot be delivered would otherwise
        // be asked for without a pause.
        peer.state = State::Probe { sent: true };
        peer.snapshot_left();
    }

    pub(super) fn peer_mut(&mut self, id: MemberId) -> Option<&mut Progress> {
        self.leadership()?.peers.get_mut(&id)
    }

    fn with_peer(
        &mut self,
        id: MemberId,
        fx: &mut Effects,
        act: impl FnOnce(&Sender<'_>, &mut Progress, &mut Effects),
    ) {
        if let Some((sender, leadership)) = self.sender() {
            if let Some(peer) = leadership.peers.get_mut(&id) {
                act(&sender, peer, fx);
            }
        }
    }

    fn sender(&mut self) -> Option<(Sender<'_>, &mut Leadership)> {
        let Role::Leader(leadership) = &mut self.role else {
            return None;
        };
        let sender = Sender {
            id: self.options.id,
            term: self.hard.term,
            commit: self.commit,
            log: &self.log,
            options: &self.options,
        };
        Some((sender, leadership))
    }
}

/// What a leader needs at hand to send to any peer.
struct Sender<'a> {
    id: MemberId,
    term: Term,
    commit: Index,
    log: &'a Log,
    options: &'a Options,
}

impl Sender<'_> {
    /// Sends whatever the peer's state and window allow.
    fn send(&self, peer: &mut Progress, fx: &mut Effects) {
        match peer.state {
            State::Probe { sent: true } | State::Snapshot => {}
            State::Probe { sent: false } => self.probe(peer, fx),
            State::Replicate => {
                while peer.next <= self.log.last().index && self.send_next(peer, fx) {}
            }
        }
    }

    fn probe(&self, peer: &mut Progress, fx: &mut Effects) {
        let Some(prev) = self.log.position(peer.next - 1) else {
            return self.request_snapshot(peer, fx);
        };
        let (mut entries, bytes) = self.log.recent_from(peer.next, self.options.append_bytes_max);
        if bytes > self.options.append_bytes_max {
            // A probe is repeated until it is answered: a long entry waits for that.
            entries.clear();
        }
        // Perhaps sent before, and refused: then the fault may be in this member's memory.
        if let Some(altered) = entries.iter().find(|entry| !entry.is_intact()) {
            fx.fault = Some(Fault::Altered { index: altered.index });
            return;
        }
        self.append_message(peer, prev, entries, fx);
        peer.state = State::Probe { sent: true };
    }

    /// One message of the pipeline; false if it has to wait.
    fn send_next(&self, peer: &mut Progress, fx: &mut Effects) -> bool {
        let Some(bytes_max) = peer.window_bytes(self.options) else {
            return false;
        };
        let Some(prev) = self.log.position(peer.next - 1) else {
            self.request_snapshot(peer, fx);
            return false;
        };
        if peer.next < self.log.recent_first() {
            if peer.fetching.is_none() {
                peer.fetching = Some(peer.next);
                fx.fetches.push(Fetch { to: peer.id, from: peer.next, bytes_max });
            }
            return false;
        }
        let (entries, bytes) = self.log.recent_from(peer.next, bytes_max);
        self.pipeline(peer, prev, entries, bytes, fx);
        true
    }

    /// Entries read back from the disk. They may be of a log that was truncated since.
    fn send_fetched(&self, peer: &mut Progress, entries: Vec<Entry>, fx: &mut Effects) {
        let Some(prev) = self.log.position(peer.next - 1) else {
            return;
        };
        let ours = |entry: &Entry| self.log.contains(entry.position());
        if entries.is_empty()
            || !follow_each_other(prev, &entries, self.term)
            || !entries.iter().all(ours)
        {
            return;
        }
        let bytes = entries.iter().map(log::cost).sum();
        self.pipeline(peer, prev, entries, bytes, fx);
    }

    fn pipeline(
        &self,
        peer: &mut Progress,
        prev: LogPosition,
        entries: Vec<Entry>,
        bytes: usize,
        fx: &mut Effects,
    ) {
        peer.sent(prev.index + entries.len() as Index, bytes);
        self.append_message(peer, prev, entries, fx);
    }

    /// An empty Append at the end of what was sent: the answer tells what arrived.
    fn ask_where(&self, peer: &mut Progress, fx: &mut Effects) {
        match self.log.position(peer.next - 1) {
            Some(prev) => self.append_message(peer, prev, Vec::new(), fx),
            None => self.request_snapshot(peer, fx),
        }
    }

    fn request_snapshot(&self, peer: &mut Progress, fx: &mut Effects) {
        if peer.departing_since_ms.is_none() {
            peer.await_snapshot();
            fx.snapshots.push(peer.id);
        }
    }

    fn append_message(
        &self,
        peer: &mut Progress,
        prev: LogPosition,
        entries: Vec<Entry>,
        fx: &mut Effects,
    ) {
        let end = prev.index + entries.len() as Index;
        peer.commit_sent = peer.commit_sent.max(self.commit.min(end));
        let body = MessageBody::Append { prev, entries, commit: self.commit };
        fx.messages.push(Message { from: self.id, to: peer.id, term: self.term, body });
    }
}

#[cfg(test)]
mod tests;
