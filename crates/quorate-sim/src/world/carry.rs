//! Carrying out what a member wants, in the order that its output demands, as the product's shell
//! does; and showing it to the oracle.

use super::{Mark, Plant, World};
use quorate_consensus::{
    Charter, Config, Entry, EntryKind, HardState, Index, LogPosition, MemberId, Message,
    MessageBody,
};
use quorate_group::{Input, Intake, Link, LogLevel, LogQueue, Notice, Order, Output};
use quorate_wal::{sim::Next, Wal, WalError};
use quorate_wire::Packet;
use std::sync::Arc;

impl World {
    /// Gives `input` to the member at `m`, and carries out what that causes.
    pub(super) fn step(&mut self, m: usize, input: Input) {
        let now_ms = self.now_ms(m);
        let Some(process) = &mut self.nodes[m].process else { return };
        process.member.step(now_ms, input, &mut process.out);
        self.carry_out(m);
    }

    pub(super) fn give_order(&mut self, m: usize, id: u64, what: &'static str, order: Order) {
        let deadline_ms = self.now_ms(m) + self.scenario.election_timeout_ms * 10;
        if let Some(process) = &mut self.nodes[m].process {
            process.orders.insert(id, what);
            if let Order::WantVotes(votes) = order {
                process.wants_votes = votes;
            }
        }
        let mandate = self.mandate(id, &order);
        if let (Some(_), Some(process)) = (&mandate, &mut self.nodes[m].process) {
            process.signed.insert(id);
        }
        self.take_in(m, |intake| match mandate {
            Some(mandate) => intake.order_by(id, order, deadline_ms, mandate),
            None => intake.order(id, order, deadline_ms),
        });
        self.carry_out(m);
    }

    /// What others than the member's own thread hand in; to be carried out.
    pub(super) fn take_in(&mut self, m: usize, fill: impl FnOnce(&mut Intake)) {
        let now_ms = self.now_ms(m);
        let Some(process) = &mut self.nodes[m].process else { return };
        let mut intake = Intake::default();
        fill(&mut intake);
        process.member.take_in(now_ms, &mut intake, &mut process.out);
    }

    pub(super) fn carry_out(&mut self, m: usize) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let mut out = std::mem::take(&mut process.out);
        self.hear_notices(m, &out);
        if let Some(reason) = out.mark.take() {
            self.mark(Mark::RolledBackRefused);
            self.nodes[m].mark = Some(reason);
        }
        if let Err(error) = self.write_log(m, &out) {
            if self.nodes[m].disk.is_dead() {
                return;
            }
            let now_ms = self.now_ms(m);
            let Some(process) = &mut self.nodes[m].process else { return };
            if process.member.log_refused(now_ms, error.to_string(), &mut out) {
                self.hear_notices(m, &out);
            }
        }
        if self.nodes[m].disk.is_dead() {
            return;
        }
        for message in std::mem::take(&mut out.effects.messages) {
            self.send_message(m, message);
        }
        for (to, packet) in std::mem::take(&mut out.packets) {
            self.push(m, to, packet);
        }
        self.look_for_room(m, out.ask_room.take());
        if let (Some(index), Some(process)) = (out.feed, &mut self.nodes[m].process) {
            process.fed_to = process.fed_to.max(index);
            self.feed_soon(m);
        }
        for fetch in out.effects.fetches.drain(..) {
            let delay = self.rng.range(10, self.scenario.staff.fetch_us);
            self.later_at(m, delay, move |w| w.fetch(m, fetch));
        }
        for order in out.snapshots.drain(..) {
            let delay = self.rng.range(10, 2_000);
            self.later_at(m, delay, move |w| w.send_snapshot(m, order));
        }
        for link in std::mem::take(&mut out.links) {
            match link {
                Link::Connect { peer, addrs } => self.keep_connected(m, peer, addrs),
                Link::Break(peer) => self.break_off(m, peer),
                Link::Cut(peer) => self.cut_peer(m, peer),
                Link::Drop(peer) => self.drop_link(m, peer),
                Link::CutAll => self.cut_all(m),
            }
        }
        if let Some(ask) = out.ask.take() {
            self.ask(m, ask);
        }
        let release = out.release.take();
        let new_leader = out.notices.iter().any(|n| matches!(n, Notice::Leader(_, Some(_))));
        let cut_off = out.notices.iter().any(|n| matches!(n, Notice::Primary(false)));
        if let (Some(needed), Some(process)) = (out.needed, &self.nodes[m].process) {
            process.wal.set_needed(needed);
        }
        for (id, answer) in std::mem::take(&mut out.answers) {
            self.answered(m, id, answer);
        }
        out.clear();
        if let Some(process) = &mut self.nodes[m].process {
            process.out = out;
        }
        self.flush(m);
        self.disk_soon(m);
        if let Some(release) = release {
            self.release(m, release);
        }
        if cut_off {
            self.give_up_without_quorum(m);
        }
        if new_leader && self.plant == Some(Plant::ProposedTwice) {
            self.propose_again(m);
        }
    }

    fn hear_notices(&mut self, m: usize, out: &Output) {
        for notice in &out.notices {
            let Some(process) = &mut self.nodes[m].process else { return };
            match notice {
                Notice::Leader(term, leader) => self.leader_known(m, *term, *leader),
                Notice::Rules(rules) => process.rules = *rules,
                Notice::Standings(_) => {}
                Notice::Awaited(awaited) => process.awaited = *awaited,
                Notice::Primary(primary) => {
                    process.sessions.cut_off = !primary;
                    note!(self, "m{m} is primary: {primary}");
                }
                Notice::Fatal(reason) | Notice::Stuck(reason) => {
                    process.fatal.get_or_insert_with(|| reason.clone());
                    note!(self, "m{m} FATAL {reason}");
                }
                Notice::Log(level, line) => {
                    if line.ends_with("leadership follows them") {
                        self.mark(Mark::Followed);
                    }
                    if *level <= LogLevel::Debug {
                        note!(self, "m{m} {level:?} {line}");
                    }
                }
            }
        }
    }

    fn leader_known(&mut self, m: usize, term: u64, leader: Option<MemberId>) {
        let id = self.nodes[m].id;
        let leads = leader == Some(id);
        if self.plant == Some(Plant::LongLease) && self.scenario.lease_reads {
            let now = self.schedule.now();
            self.nodes[m].clock.drift(now, if leads { -700_000 } else { 0 });
        }
        let Some(process) = &mut self.nodes[m].process else { return };
        (process.term, process.leads) = (term, leads);
        if leads {
            let config = process.config();
            self.leads_by(m, &config);
        }
        let who = leader.and_then(|leader| self.slot(leader));
        note!(self, "m{m} knows the leader of term {term}: {who:?}");
    }

    fn write_log(&mut self, m: usize, out: &Output) -> Result<(), Arc<WalError>> {
        let Some(process) = &self.nodes[m].process else { return Ok(()) };
        let (wal, id) = (process.wal.clone(), self.nodes[m].id);
        let mut queue = Queue { world: self, m, id, wal, notices: &out.notices };
        out.queue_log(&mut queue)?;
        queue.hear_elections();
        Ok(())
    }

    /// `m` made this entry, as the leader.
    fn made(&mut self, m: usize, entry: &Entry) {
        self.check_caretaker(m, entry);
        let config = match entry.kind {
            EntryKind::Config => Config::decode(&entry.data),
            EntryKind::View => return self.view_made(entry.index),
            _ => return,
        };
        if let Ok(config) = config {
            self.leads_by(m, &config);
            self.check_alone(m, entry.index, &config);
            self.configs_made.push((entry.index, config));
        }
    }

    fn send_message(&mut self, m: usize, mut message: Message) {
        self.hear_message(m, &message);
        match (self.plant, &mut message.body) {
            (Some(Plant::InflatedReply), MessageBody::AppendReply { matched }) => *matched += 1,
            (Some(Plant::AllAgreeToForce), MessageBody::ForcedVoteReply { granted, .. }) => {
                *granted = true;
            }
            _ => {}
        }
        self.push(m, message.to, Packet::Consensus(message));
    }

    /// Something for the disk to do.
    pub(super) fn disk_soon(&mut self, m: usize) {
        let slow_until = self.nodes[m].slow_disk_until;
        let Some(process) = &mut self.nodes[m].process else { return };
        let next = process.steps.next();
        if process.disk_at.is_some_and(|at| at != Next::Mark || next == Next::Mark) {
            return;
        }
        let delay = match next {
            Next::Idle | Next::Failed => return,
            Next::Write => 0,
            Next::Sync => self.sync_time(),
            Next::Full | Next::Mark => 100_000,
        };
        let Some(process) = &mut self.nodes[m].process else { return };
        process.disk_at = Some(next);
        process.disk_turn += 1;
        let turn = process.disk_turn;
        let delay = delay.max(slow_until.saturating_sub(self.schedule.now()));
        self.later_at(m, delay, move |w| w.disk_step(m, turn));
    }

    fn sync_time(&mut self) -> u64 {
        let (low, high) = self.scenario.sync_us;
        if self.rng.chance(self.scenario.stall_per_mille) && self.has_faults() {
            return self.rng.below(self.scenario.stall_us);
        }
        self.rng.range(low, high.max(low))
    }
}

/// The log of `m`, beside an oracle that hears of everything before the log has it.
struct Queue<'a> {
    world: &'a mut World,
    m: usize,
    id: MemberId,
    wal: Wal,
    /// Not heard yet.
    notices: &'a [Notice],
}

impl Queue<'_> {
    /// Before its term is on disk nobody can know of a leader; before its first entry, the oracle has to.
    fn hear_elections(&mut self) {
        for notice in std::mem::take(&mut self.notices) {
            if let Notice::Leader(term, Some(leader)) = notice {
                if *leader == self.id {
                    let (wal, last) = (&self.wal, self.wal.last().index);
                    self.world.mark(Mark::Election);
                    self.world.oracle.elected(self.id, *term, last, |index| wal.term_at(index));
                }
            }
        }
    }
}

impl LogQueue for Queue<'_> {
    type Error = Arc<WalError>;

    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), Arc<WalError>> {
        self.wal.save_group(group, charter)?;
        self.world.mark(Mark::Joined);
        Ok(())
    }

    fn save_hard_state(&mut self, state: HardState) -> Result<(), Arc<WalError>> {
        self.world.oracle.hard_state(self.id, state);
        if self.world.plant != Some(Plant::TermNotSynced) {
            self.wal.save_hard_state(state)?;
        }
        self.world.oracle.hard_state_saved(self.id);
        Ok(())
    }

    fn install(&mut self, index: Index) {
        if let Some(process) = &mut self.world.nodes[self.m].process {
            process.install = Some(index);
            self.world.feed_soon(self.m);
        }
    }

    fn reset(&mut self, base: LogPosition) {
        self.wal.reset(base);
        self.world.mark(Mark::SnapshotInstalled);
    }

    fn truncate(&mut self, from: Index) {
        let Queue { world, m, id, wal, .. } = self;
        world.mark(Mark::Truncation);
        if world.plant == Some(Plant::ResurrectTruncated) {
            world.nodes[*m].image = Some(world.nodes[*m].disk.image());
        }
        for index in from..=wal.last().index {
            if let Some(term) = wal.term_at(index) {
                world.oracle.truncated(*id, LogPosition { term, index });
            }
        }
        wal.truncate(from);
    }

    fn append(&mut self, entries: &[Entry]) {
        // Whoever leads by force does so without those that are given up.
        self.world.look_for_force(self.m, entries);
        self.hear_elections();
        let Queue { world, m, id, wal, .. } = self;
        for entry in entries {
            let leads = world.oracle.leader_of(entry.term) == Some(*id);
            let prev_term = wal.term_at(entry.index - 1).unwrap_or_default();
            world.oracle.appended(*id, entry, prev_term, leads);
            if leads && world.nodes[*m].process.as_ref().is_some_and(|p| p.term == entry.term) {
                world.made(*m, entry);
            }
            wal.append(std::slice::from_ref(entry));
        }
    }
}
