//! What clients do at each member, and what they are told.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use crate::database::{Part, WriteRequest};
use crate::node::{Client, Pending, Read};
use crate::oracle::Rule;
use crate::plant::Plant;
use quorate_certify::KeyType;
use quorate_consensus::{EntryKind, Proposal};
use quorate_group::{Answer, Done, Intake, Order};

impl World {
    /// The client at `m` does its next thing.
    pub(super) fn client(&mut self, m: usize, client: usize) {
        let Some(process) = &self.nodes[m].process else { return };
        if process.clients[client] != Client::Idle || self.phase != Phase::Faults {
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
        let run = self.nodes[m].run;
        self.schedule.after(delay, Event::Client { m, run, client });
    }

    /// False if this member takes no writes now.
    pub(super) fn write(&mut self, m: usize, client: usize) -> bool {
        let id = self.nodes[m].id;
        let term = self.writing_term(m);
        let Some(process) = &self.nodes[m].process else { return false };
        let stopped = process.member.has_failed() || process.fatal.is_some();
        let Some(term) = term.filter(|_| !stopped) else {
            self.mark(Mark::WriteRefused);
            self.client_later(m, client);
            return false;
        };
        let stream = process.streams[client];
        let op = self.oracle.new_op(id, term);
        let request = self.draw_request(op, stream);
        let Some(process) = &mut self.nodes[m].process else { return false };
        let serial = process.next_serial;
        process.next_serial += 1;
        process.clients[client] = Client::Writing;
        let data = process.database.write_set(process.origin, serial, term, &request);
        let part = request.part;
        process.pending.insert(serial, Pending { client, op, part });
        if self.tells() {
            let bytes = data.len();
            self.note(format!("m{m} client {client} writes op {op}, {part:?}, serial {serial}, {bytes} bytes, term {term}"));
        }
        self.propose(m, serial, data);
        true
    }

    fn propose(&mut self, m: usize, serial: u64, data: bytes::Bytes) {
        let now_ms = self.now_ms(m);
        let Some(process) = &mut self.nodes[m].process else { return };
        let mut intake = Intake::default();
        intake.push(serial, Proposal::new(EntryKind::Data, data));
        process.member.take_in(now_ms, &mut intake, &mut process.out);
        self.carry_out(m);
    }

    /// The planted bug: what is not decided goes to the new leader under another serial.
    pub(super) fn propose_again(&mut self, m: usize) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let Some((_, pending)) = process.pending.pop_last() else { return };
        let serial = process.next_serial;
        process.next_serial += 1;
        let (op, part) = (pending.op, Part::Whole);
        let request = WriteRequest {
            op,
            rows: vec![(1_000_000 + u64::from(op), KeyType::Exclusive)],
            isolation: false,
            padding: 0,
            part,
        };
        let data = process.database.write_set(process.origin, serial, 0, &request);
        process.pending.insert(serial, pending);
        self.propose(m, serial, data);
    }

    /// The state jumped over entries that may have decided what is pending here, or the process
    /// ended: the outcome is unknown, and the clients go to another node.
    pub(super) fn give_up_writes(&mut self, m: usize) {
        let now_ms = self.now_ms(m);
        let Some(process) = &mut self.nodes[m].process else { return };
        let mut intake = Intake::default();
        let pending = std::mem::take(&mut process.pending);
        pending.keys().for_each(|serial| intake.decided(*serial));
        process.member.take_in(now_ms, &mut intake, &mut process.out);
        for pending in pending.into_values() {
            if let Some(process) = &mut self.nodes[m].process {
                process.clients[pending.client] = Client::Idle;
                process.streams[pending.client] = None;
            }
            self.mark(Mark::UnknownOutcome);
            self.client_later(m, pending.client);
        }
    }

    fn draw_request(&mut self, op: u32, stream: Option<i64>) -> WriteRequest {
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
        WriteRequest { op, rows, isolation, padding, part }
    }

    /// Asks for a linearizable read point.
    pub(super) fn read(&mut self, m: usize, client: usize) {
        let floor = self.oracle.commit();
        let Some(process) = &mut self.nodes[m].process else { return };
        process.clients[client] = Client::Reading;
        let id = self.counter + 1;
        process.reads.push(Read { id, client, floor, point: None });
        let given = self.give_order(m, "read", Order::ReadPoint);
        debug_assert_eq!(given, id);
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
                process.clients[client] = Client::Idle;
                self.mark(Mark::ReadUnanswered);
                match self.phase {
                    Phase::Faults | Phase::Founding => self.client_later(m, client),
                    _ => {
                        let (run, pause) = (self.nodes[m].run, self.scenario.tick_us());
                        self.schedule.after(pause, Event::ReadAgain { m, run, client });
                    }
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
        process.clients[client] = Client::Idle;
        self.client_later(m, client);
        self.finish_reads(m);
    }
}
