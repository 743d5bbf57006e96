//! A member among hostile peers: they are who they say, keep to the codec, and say what they like, in any
//! order and at any time. What the member wants done is done: its log is written and synced, its entries
//! are applied, its snapshots stored, and it is restarted from what is left.
//!
//! It never panics; what it hands to its log fits (`disk`); what the state machine sees is committed, in its
//! log, and never changes; what it says, its peers can read; no order is answered twice.

mod begin;
mod carry;
mod connections;
mod disk;
mod machine;
mod snapshots;
mod words;

use crate::source::Source;
use begin::{of_three, options, started};
use bytes::Bytes;
use carry::read_by;
use disk::Disk;
use machine::Machine;
use quorate_consensus::{EntryKind, Fetch, Index, MemberId, Message, Proposal, Rules};
use quorate_group::{
    Alteration, Ask, Assembly, Input, Intake, LogFigures, LogRoom, Mandate, Member, Options, Order,
    Output, Received,
};
use quorate_wire::Packet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use words::{Known, VICTIM};

/// Longer stories are cut: they take more time, and find little more.
const EVENTS_MAX: usize = 200;
/// As many messages are remembered.
const SAID_MAX: usize = 8;
/// What one event may lead to by itself.
const CONSEQUENCES_MAX: usize = 200;

pub fn run(input: &[u8]) {
    let mut source = Source::new(input);
    let Some(mut world) = World::begin(&mut source) else { return };
    for _ in 0..EVENTS_MAX {
        if source.is_empty() || !world.happens(&mut source) {
            return;
        }
        world.check();
    }
}

struct World {
    now_ms: u64,
    options: Options,
    disk: Disk,
    victim: Member,
    machine: Option<Machine>,
    intake: Intake,
    serial: u64,
    order: u64,
    answered: BTreeSet<u64>,
    /// Connections that peers dialled, and those that the victim did.
    incoming: BTreeMap<MemberId, (u64, Assembly)>,
    outgoing: BTreeSet<MemberId>,
    asked: Option<Ask>,
    fetches: VecDeque<Fetch>,
    /// What the victim has said last to its peers.
    said: Vec<Message>,
    /// A snapshot on its way to the disk.
    arrived: Option<(Received, Bytes)>,
    /// What follows by itself.
    queue: VecDeque<Input>,
    /// What the state machine may see.
    limit: Index,
}

impl World {
    /// A founder, a stranger, or one of three.
    fn begin(source: &mut Source<'_>) -> Option<World> {
        let mut options = options(source);
        let mut disk = Disk { member: VICTIM, incarnation: 1, ..Disk::default() };
        match source.below(3) {
            0 => options.bootstrap = true,
            1 => {}
            _ => of_three(&mut disk, &options),
        }
        let (victim, out) = started(&options, &mut disk, 0)?;
        let machine = Machine::begin(&disk, options.segment_bytes);
        let mut world = World {
            now_ms: 0,
            options,
            disk,
            victim,
            machine,
            intake: Intake::default(),
            serial: 0,
            order: 0,
            answered: BTreeSet::new(),
            incoming: BTreeMap::new(),
            outgoing: BTreeSet::new(),
            asked: None,
            fetches: VecDeque::new(),
            said: Vec::new(),
            arrived: None,
            queue: VecDeque::new(),
            limit: 0,
        };
        world.tell_started();
        world.carry_out(out);
        Some(world)
    }

    /// One thing more; false where the story ends.
    fn happens(&mut self, source: &mut Source<'_>) -> bool {
        self.now_ms += match source.byte() {
            255 => 5_000,
            ms => u64::from(ms / 4),
        };
        match source.below(32) {
            0 => self.greet(source),
            1 => self.join(source),
            2 => self.dialled(source),
            3 => self.hang_up(source),
            4 => self.answer(source),
            5 => self.snapshot(source),
            6 => self.store(source.below(8) != 0),
            7 => self.propose(source),
            8 => self.order(source),
            9 if source.below(4) == 0 => self.trouble(source),
            10 if source.below(4) == 0 => return self.restart(source.flag()),
            11 | 12 => self.sync(source.byte()),
            13 => self.fetched(),
            14 | 15 => self.tick(),
            16..=18 => self.honest_answers(),
            19..=21 => {
                let (from, packet) = words::honest_append(source, &self.known());
                self.receive(from, packet);
            }
            _ => self.packet(source),
        }
        true
    }

    /// Whether members show keys.
    fn keyed(&self) -> bool {
        self.options.key.is_known()
    }

    fn step(&mut self, input: Input) {
        let mut out = Output::default();
        self.victim.step(self.now_ms, input, &mut out);
        self.carry_out(out);
    }

    fn packet(&mut self, source: &mut Source<'_>) {
        let from = words::member(source);
        let known = self.known();
        let Some(packet) = words::packet(source, from, &known) else { return };
        self.receive(from, packet);
    }

    /// The peers answer what they were sent last.
    fn honest_answers(&mut self) {
        for said in std::mem::take(&mut self.said) {
            if let Some(packet) = words::honest_answer(&said) {
                self.receive(said.to, packet);
            }
        }
    }

    /// As the receiver of its connection takes it.
    fn receive(&mut self, from: MemberId, packet: Packet) {
        let honest = words::identity(&mut Source::new(&[1]), self.keyed(), from);
        if !self.incoming.contains_key(&from) && !self.open(&words::proper_hello(honest)) {
            return;
        }
        let Some(packet) = read_by(&packet, from, VICTIM) else { return };
        if !Assembly::takes(&packet) {
            return self.step(Input::Packet { from, packet });
        }
        if let Packet::SnapshotBegin(begin) = &packet {
            let mut out = Output::default();
            let wanted = self.victim.awaits((from, begin.term), begin.bytes, None, &mut out);
            self.carry_out(out);
            if !wanted {
                let unwanted = self.incoming.get_mut(&from);
                return unwanted.into_iter().for_each(|(_, of)| *of = Assembly::new(from));
            }
        }
        let Some((_, assembly)) = self.incoming.get_mut(&from) else { return };
        match assembly.take(packet) {
            Ok(Some((received, content))) => self.arrive(received, content),
            Ok(None) => self.step(Input::Heard(from)),
            Err(_) => {
                self.end_incoming(from);
                self.follow();
            }
        }
    }

    fn propose(&mut self, source: &mut Source<'_>) {
        self.serial += 1;
        let proposal = Proposal::new(EntryKind::Data, source.block());
        self.intake.push(self.serial, proposal);
        if source.flag() {
            self.intake.decided(self.serial.saturating_sub(source.below(3).into()));
        }
        self.take_in();
    }

    fn take_in(&mut self) {
        let mut out = Output::default();
        self.victim.take_in(self.now_ms, &mut self.intake, &mut out);
        self.carry_out(out);
    }

    fn order(&mut self, source: &mut Source<'_>) {
        self.order += 1;
        let name = format!("n{}", source.below(6));
        let order = match source.below(15) {
            0 => Order::AwaitJoined,
            1 | 2 => Order::ReadPoint,
            3 => Order::Switchover { to: source.flag().then_some(name) },
            4 => {
                let alteration = Alteration { priority: Some(source.byte()), ..<_>::default() };
                Order::Alter { name, alteration }
            }
            5 => Order::Remove { name },
            6 => Order::SetRules(Rules { zones_min: source.below(3), ..self.options.rules }),
            7 => Order::ForceQuorum { keep: vec!["n1".into(), name], reason: "lost".into() },
            8 => Order::Leave,
            9 => Order::WantVotes(source.byte()),
            10 => Order::GoOnAlone,
            11 => Order::Isolate(source.flag()),
            12 => Order::AllowAlone(source.flag()),
            13 => {
                let at_least = source.flag().then_some(source.below(4));
                Order::AwaitApplied { seqno: 7, at_least }
            }
            _ => Order::RefreshView,
        };
        let deadline_ms = self.now_ms + 10 * u64::from(source.byte());
        match source.flag() {
            true => self.intake.order_by(self.order, order, deadline_ms, Mandate::default()),
            false => self.intake.order(self.order, order, deadline_ms),
        }
        self.take_in();
    }

    fn trouble(&mut self, source: &mut Source<'_>) {
        let input = match source.below(16) {
            0 => Input::LogFailed("no".into()),
            1 => Input::Close,
            2..=5 => Input::HostCommit(source.flag().then_some(7)),
            6..=9 => {
                let rooms = [LogRoom::Enough, LogRoom::Reserve { segments: 1 }, LogRoom::Blocked];
                Input::LogRoom {
                    room: source.one_of(&rooms),
                    warning: None,
                    percent: source.below(101),
                }
            }
            10 | 11 => Input::Standing(source.flag().then(|| words::standing(source))),
            _ => Input::ProcessIsolated(source.below(4) == 0),
        };
        self.step(input);
    }

    /// So much of the log gets to the disk.
    fn sync(&mut self, entries: u8) {
        let end = self.disk.synced + u64::from(entries);
        self.disk.synced = end.min(self.disk.last().index);
        let position = self.disk.persisted();
        self.step(Input::Persisted(position));
    }

    fn fetched(&mut self) {
        let Some(Fetch { to, from, .. }) = self.fetches.pop_front() else { return };
        let entries = self.disk.fetch(from);
        self.step(match entries.is_empty() {
            true => Input::FetchUnavailable { to },
            false => Input::Fetched { to, from, entries },
        });
    }

    fn tick(&mut self) {
        if let Some(machine) = &self.machine {
            let applied = machine.applied();
            self.step(Input::Applied(applied));
        }
        self.step(Input::Tick { unix_ms: self.now_ms });
    }

    /// From what is on disk; with `all`, everything written is. False: it refuses to start.
    fn restart(&mut self, all: bool) -> bool {
        if all {
            self.disk.synced = self.disk.last().index;
        }
        self.disk.crash();
        (self.incoming, self.outgoing) = (BTreeMap::new(), BTreeSet::new());
        (self.asked, self.arrived, self.limit) = (None, None, 0);
        self.said.clear();
        (self.fetches, self.queue) = (VecDeque::new(), VecDeque::new());
        (self.intake, self.answered) = (Intake::default(), BTreeSet::new());
        self.options.bootstrap = false;
        self.options.seed += 1_000;
        let Some((victim, out)) = started(&self.options, &mut self.disk, self.now_ms) else {
            return false;
        };
        self.victim = victim;
        self.machine = Machine::begin(&self.disk, self.options.segment_bytes);
        self.tell_started();
        self.carry_out(out);
        true
    }

    fn tell_started(&mut self) {
        if let Some(machine) = &self.machine {
            self.disk.fed = machine.applied().last.index;
            self.queue.push_back(Input::Started(machine.applied()));
        }
    }

    /// What the victim's peers know of it.
    fn known(&mut self) -> Known {
        let status = self.victim.status(self.now_ms, LogFigures::default());
        Known {
            term: status.term,
            leader: status.leader,
            last: self.disk.last(),
            commit: status.commit_index,
            view: status.view_number,
            seqno: self.machine.as_ref().map_or(0, Machine::seqno),
        }
    }

    fn check(&mut self) {
        let status = self.victim.status(self.now_ms, LogFigures::default());
        assert_eq!(status.last_index, self.disk.last().index);
        assert!(status.commit_index <= status.last_index);
        assert!(status.persisted_index <= self.disk.synced);
        assert!(self.disk.fed <= self.limit.max(self.disk.base.index));
    }
}
