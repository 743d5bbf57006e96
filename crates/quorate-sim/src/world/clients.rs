//! What clients do at each member, and what they are told; applying, which tells them.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use crate::machine::{Applied, Decision, WriteRequest};
use crate::member::{Client, Pending, Read};
use crate::oracle::Rule;
use quorate_certify::{KeyType, Outcome};
use quorate_consensus::{EntryKind, Event as CoreEvent, Index, Primaries, Proposal, ReadReady};
use std::rc::Rc;

/// Entries a slow member applies at a time.
const SLOW_BATCH: u64 = 3;

impl World {
    /// The client at `m` does its next thing.
    pub(super) fn client(&mut self, m: usize, client: usize) {
        if self.members[m].clients[client] != Client::Idle || self.phase != Phase::Faults {
            return;
        }
        if self.proposals_left == 0 {
            return;
        }
        if self.rng.chance(self.scenario.reads_per_mille) {
            self.members[m].clients[client] = Client::Reading;
            self.read(m, client);
        } else if !self.is_turn_of(m) {
            self.idle_client_again(m, client);
        } else if self.write(m, client) {
            self.proposals_left -= 1;
        }
    }

    /// False if this member takes no writes now.
    pub(super) fn write(&mut self, m: usize, client: usize) -> bool {
        let Some(term) = self.members[m].writing_term else {
            self.mark(Mark::WriteRefused);
            self.idle_client_again(m, client);
            return false;
        };
        let op = self.oracle.new_op(self.members[m].id, term);
        let request = self.draw_request(op);
        let member = &mut self.members[m];
        let serial = member.next_serial;
        member.next_serial += 1;
        member.clients[client] = Client::Writing;
        let data = member.machine.write_set(member.origin, serial, term, &request);
        member.pending.push_back(Pending { serial, client, data });
        if self.tells() {
            let seen = self.members[m].machine.seqno();
            self.note(format!(
                "m{m} client {client} writes op {op}, serial {serial}, seen {seen}, term {term}"
            ));
        }
        self.flush(m);
        true
    }

    /// The state jumped over entries that may have decided what is pending here: those clients
    /// learn that the outcome is unknown.
    pub(super) fn give_up_writes(&mut self, m: usize) {
        let member = &mut self.members[m];
        member.sent = 0;
        for pending in std::mem::take(&mut member.pending) {
            self.idle_client_again(m, pending.client);
        }
    }

    fn draw_request(&mut self, op: u32) -> WriteRequest {
        let rng = &mut self.rng;
        let keys = self.scenario.keys;
        let rows = (0..rng.range(1, 3))
            .map(|_| {
                let kind = rng.weighted(&[
                    (KeyType::Shared, 10),
                    (KeyType::Reference, 15),
                    (KeyType::Update, 45),
                    (KeyType::Exclusive, 30),
                ]);
                (rng.below(keys), kind.unwrap_or(KeyType::Exclusive))
            })
            .collect();
        let isolation = rng.chance(20);
        let padding = if rng.chance(100) { 512 } else { rng.below(48) as usize };
        WriteRequest { op, rows, isolation, padding }
    }

    /// Asks for a linearizable read point.
    pub(super) fn read(&mut self, m: usize, client: usize) {
        let ctx = self.next_number();
        let read = Read {
            ctx,
            client,
            floor: self.oracle.commit(),
            point: None,
            asked: self.schedule.now(),
        };
        self.members[m].reads.push(read);
        self.must_accept(m, CoreEvent::ReadIndex { ctx });
    }

    pub(super) fn read_ready(&mut self, m: usize, ready: ReadReady) {
        let Some(read) = self.members[m].reads.iter_mut().find(|r| r.ctx == ready.ctx) else {
            return;
        };
        let floor = read.floor;
        match ready.index {
            Some(index) if index < floor => self.oracle.fail(Rule::ReadsNeverStale, || {
                format!("m{m} reads at {index}, but {floor} was committed before it asked")
            }),
            Some(index) => {
                read.point = Some(index);
                self.mark(Mark::Read);
                self.finish_reads(m);
            }
            // Nobody could confirm it: ask again soon.
            None => {
                read.asked = 0;
                self.mark(Mark::ReadUnanswered);
            }
        }
    }

    /// Reads that got no answer are asked again.
    pub(super) fn retry_reads(&mut self, m: usize) {
        let now = self.schedule.now();
        let patience = self.scenario.election_us() * 3;
        let open = |r: &&mut Read| r.point.is_none() && now >= r.asked + patience;
        let Some(read) = self.members[m].reads.iter_mut().find(open) else { return };
        let client = read.client;
        let ctx = read.ctx;
        self.members[m].reads.retain(|r| r.ctx != ctx);
        self.read(m, client);
    }

    fn finish_reads(&mut self, m: usize) {
        let member = &mut self.members[m];
        let applied = member.machine.applied;
        let done = |r: &Read| r.point.is_some_and(|point| point <= applied);
        let Some(at) = member.reads.iter().position(done) else { return };
        let client = member.reads.swap_remove(at).client;
        self.idle_client_again(m, client);
        self.finish_reads(m);
    }

    // ---- applying ----

    /// Something committed: apply it now, or when this member gets round to it.
    pub(super) fn apply_soon(&mut self, m: usize) {
        let member = &self.members[m];
        match member.apply_lag_us {
            0 => self.apply(m, u64::MAX),
            lag => {
                let run = member.run;
                self.schedule.after(lag, Event::Apply { m, run });
            }
        }
    }

    pub(super) fn apply_some(&mut self, m: usize) {
        self.apply(m, SLOW_BATCH);
        let member = &self.members[m];
        if member.machine.applied < self.may_apply(m) {
            let (run, lag) = (member.run, member.apply_lag_us);
            self.schedule.after(lag, Event::Apply { m, run });
        }
    }

    fn may_apply(&self, m: usize) -> Index {
        let member = &self.members[m];
        let own = if self.scenario.applies_own_persisted { member.persisted } else { Index::MAX };
        member.commit.min(own)
    }

    pub(super) fn apply(&mut self, m: usize, entries_max: u64) {
        let mut left = entries_max;
        while self.members[m].machine.applied < self.may_apply(m) && left > 0 {
            left -= 1;
            let next = self.members[m].machine.applied + 1;
            let member = &mut self.members[m];
            let Some(entry) = member.disk.live.get(next).cloned() else {
                return self
                    .oracle
                    .fail(Rule::Contract, || format!("m{m} lacks the committed entry {next}"));
            };
            let news = self.oracle.is_news(next);
            if news && entry.kind == EntryKind::Config {
                self.committed_config = (next, Rc::clone(member.disk.live.config_at(next)));
            }
            let applied = member.machine.apply(&entry);
            self.oracle.state(member.id, next, member.machine.digest());
            if news {
                self.coverage.mark_applied(&applied);
            }
            if matches!(applied, Applied::View { accepted: true }) {
                member.view_at = entry.position();
            }
            match applied {
                Applied::Write(decision) => self.decided(m, next, news, decision),
                Applied::View { accepted } if self.tells() => {
                    self.note(format!("m{m} applies view at {next}, accepted: {accepted}"))
                }
                Applied::View { .. } | Applied::Nothing => {}
            }
        }
        self.finish_reads(m);
        self.snapshot_if_due(m);
    }

    fn decided(&mut self, m: usize, index: Index, news: bool, decision: Decision) {
        let Decision { op, write_set, seqno, outcome } = decision;
        if self.tells() {
            self.note(format!("m{m} applies op {op} at {index}: seqno {seqno}, {outcome:?}"));
        }
        if news {
            let single = self.committed_config.1.rules.primaries == Primaries::Single;
            self.oracle.verdict(op, index, seqno, outcome, &write_set);
            if self.oracle.primacy(op, index, outcome, single) {
                self.mark(Mark::PrimaryWrite);
            }
        }
        let header = write_set.header();
        let member = &mut self.members[m];
        if header.origin != member.origin || outcome == Outcome::Duplicate {
            return;
        }
        if let Some(pending) = member.decide(header.serial) {
            self.oracle.acknowledged(op, index);
            self.idle_client_again(m, pending.client);
        }
    }

    /// As leader, tells the group who is here when that changed.
    pub(super) fn propose_view(&mut self, m: usize) {
        let member = &self.members[m];
        if !member.is_leader() || member.machine.applied < member.commit {
            return;
        }
        let now_ms = member.clock.millis(self.schedule.now());
        let Some(status) = member.core.as_ref().map(|core| core.status(now_ms)) else { return };
        let suspect_ms = self.scenario.election_timeout_ms * 2;
        let mut present: Vec<_> =
            status.peers.iter().filter(|p| p.silent_ms < suspect_ms).map(|p| p.id).collect();
        present.push(member.id);
        present.sort_unstable();
        let number = member.machine.view.number + 1;
        if present == member.machine.view.members || member.view_proposed == (status.term, number) {
            return;
        }
        let data = member.machine.next_view(&present);
        self.members[m].view_proposed = (status.term, number);
        // Refused while leadership moves: the next leader proposes its own.
        if self.step(m, CoreEvent::Propose(vec![Proposal::new(EntryKind::View, data)])).is_err()
            && self.tells()
        {
            self.note(format!("m{m} may not propose a view now"));
        }
    }
}
