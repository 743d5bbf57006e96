//! What clients do at each member, and what they are told.

use super::retry::{changed, task_row};
use super::{Mark, Pending, Phase, Plant, Read, Rule, World};
use crate::database::{row_path, Part, WriteRequest};
use crate::oracle::rows::Attempt;
use quorate_certify::KeyType;
use quorate_consensus::{EntryKind, Proposal};
use quorate_group::{Answer, Done, Order};

impl World {
    /// The client at `m` does its next thing.
    pub(super) fn client(&mut self, m: usize, client: usize) {
        let Some(process) = &self.nodes[m].process else { return };
        if !process.is_idle(client) || self.phase != Phase::Faults {
            return;
        }
        if self.guest_goes_on(m, client) {
            return;
        }
        if self.proposals_left == 0 {
            return;
        }
        if self.rng.chance(self.scenario.reads_per_mille) {
            self.read(m, client);
        } else if !self.is_turn_of(m) {
            self.client_later(m, client);
        } else if self.write(m, client) {
            self.proposals_left -= 1;
        }
    }

    pub(super) fn client_later(&mut self, m: usize, client: usize) {
        let think = self.scenario.think_us;
        let delay = self.rng.range(think / 2, think * 2);
        self.later_at(m, delay, move |w| w.client(m, client));
    }

    /// False if this member takes no writes now.
    pub(super) fn write(&mut self, m: usize, client: usize) -> bool {
        let Some(process) = &self.nodes[m].process else { return false };
        let mut request = self.draw_request(process.clients[client].stream);
        let task = self.make_task(&mut request);
        self.submit(m, client, request, task)
    }

    pub(super) fn submit(
        &mut self,
        m: usize,
        client: usize,
        mut request: WriteRequest,
        task: Option<u32>,
    ) -> bool {
        let id = self.nodes[m].id;
        let term = self.writing_term(m);
        let Some(process) = &self.nodes[m].process else { return false };
        let stopped = process.member.has_failed() || process.fatal.is_some();
        let waits = stopped || self.must_wait(m, &request);
        let Some(term) = term.filter(|_| !waits) else {
            self.mark(Mark::WriteRefused);
            self.client_later(m, client);
            return false;
        };
        request.op = self.oracle.new_op(id, term);
        let WriteRequest { op, part, .. } = request;
        let Some(process) = &mut self.nodes[m].process else { return false };
        let serial = process.next_serial;
        process.next_serial += 1;
        let stamp = (term, process.sessions.epoch());
        let (header, data) = process.database.write_set((process.origin, serial), stamp, &request);
        let changes: Vec<u64> = changed(&request.rows).collect();
        if self.retries.on {
            let seen = |row: &u64| {
                let path = row_path(*row);
                (path, process.database.last_change(path))
            };
            let seen = changes.iter().map(seen).collect();
            self.oracle.rows.attempts.insert(op, Attempt { seen, task: task.map(task_row) });
        }
        let pending = Pending { client: Some(client), op, part, header, changes, task };
        process.pending.insert(serial, pending);
        let (bytes, epoch) = (data.len(), header.kin_epoch);
        note!(self, "m{m} client {client} writes op {op}, {part:?}, serial {serial}, {bytes} bytes, term {term}, epoch {epoch}, task {task:?}");
        if task.is_some() {
            self.may_leave(m, serial);
        }
        self.propose(m, serial, data);
        true
    }

    fn propose(&mut self, m: usize, serial: u64, data: bytes::Bytes) {
        self.take_in(m, |intake| intake.push(serial, Proposal::new(EntryKind::Data, data)));
        self.carry_out(m);
    }

    /// The planted bug: what is not decided goes to the new leader under another serial.
    pub(super) fn propose_again(&mut self, m: usize) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some((_, pending)) = process.pending.pop_last() else { return };
        let serial = process.next_serial;
        process.next_serial += 1;
        let rows = vec![(1_000_000 + u64::from(pending.op), KeyType::Exclusive)];
        let request = WriteRequest { op: pending.op, rows, ..WriteRequest::default() };
        let (_, data) = process.database.write_set((process.origin, serial), (0, 0), &request);
        process.pending.insert(serial, pending);
        self.propose(m, serial, data);
    }

    fn draw_request(&mut self, stream: Option<i64>) -> WriteRequest {
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
        let part = match stream {
            Some(seqno) if rng.chance(400) => Part::Last(seqno),
            Some(seqno) => Part::Next(seqno),
            None if rng.chance(self.scenario.fragments_per_mille) => Part::First,
            None => Part::Whole,
        };
        let isolation = part == Part::Whole && rng.chance(20);
        let padding = match rng.chance(self.scenario.large_per_mille) {
            true => rng.range(4 << 10, 70 << 10) as usize,
            false if rng.chance(100) => 512,
            false => rng.below(48) as usize,
        };
        let padding =
            if self.scenario.large_per_mille > 0 && rng.chance(1) { 300 << 10 } else { padding };
        WriteRequest { op: 0, rows, isolation, padding, part }
    }

    /// Asks for a linearizable read point.
    pub(super) fn read(&mut self, m: usize, client: usize) {
        let (id, floor) = (self.next_number(), self.oracle.commit());
        let Some(process) = &mut self.nodes[m].process else { return };
        process.reads.push(Read { id, client, floor, point: None });
        self.give_order(m, id, "read", Order::ReadPoint);
        if self.plant == Some(Plant::LocalReads) {
            let Some(process) = &self.nodes[m].process else { return };
            let index = process.applied();
            self.answered(m, id, Ok(Done::ReadPoint(index)));
        }
    }

    /// The answer to an order.
    pub(super) fn answered(&mut self, m: usize, id: u64, answer: Answer) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let what = process.orders.remove(&id).unwrap_or("?");
        if self.others_awaited(m, id, &answer) {
            return;
        }
        let Some(process) = &mut self.nodes[m].process else { return };
        if process.signed.remove(&id) {
            self.oracle.told_order(id.to_string(), answer.is_ok());
        }
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some(at) = process.reads.iter().position(|read| read.id == id) else {
            return self.order_answered(m, what, answer);
        };
        let (floor, client) = (process.reads[at].floor, process.reads[at].client);
        match answer {
            Ok(Done::ReadPoint(index)) if index < floor => {
                self.oracle.fail(Rule::ReadsNeverStale, || {
                    format!("m{m} reads at {index}, but {floor} was fed before it asked")
                });
            }
            Ok(Done::ReadPoint(index)) => {
                process.reads[at].point = Some(index);
                self.mark(if self.scenario.lease_reads { Mark::LeaseRead } else { Mark::Read });
                self.feed_soon(m);
            }
            _ => {
                process.reads.swap_remove(at);
                self.mark(Mark::ReadUnanswered);
                match self.phase {
                    Phase::Faults | Phase::Founding => self.client_later(m, client),
                    _ => self.later_at(m, self.scenario.tick_us(), move |w| w.read(m, client)),
                }
            }
        }
    }

    pub(super) fn finish_reads(&mut self, m: usize) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let applied = process.applied();
        let done = |read: &Read| read.point.is_some_and(|point| point <= applied);
        let Some(at) = process.reads.iter().position(done) else { return };
        let client = process.reads.swap_remove(at).client;
        if !self.guest_looks(m, client) {
            self.client_later(m, client);
        }
        self.finish_reads(m);
    }
}
