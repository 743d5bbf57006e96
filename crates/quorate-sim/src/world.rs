//! One run: the members, the network between them, virtual time, and the loop.

mod alone;
mod check;
mod clients;
mod disaster;
mod drive;
mod forward;
mod heal;
mod lame;
mod lifecycle;
mod modes;
mod nemesis;
mod operator;
mod snapshots;
mod storage;

use crate::coverage::{Coverage, Mark};
use crate::disk::Snapshot;
use crate::member::{Client, Member};
use crate::net::{Net, SLOTS_MAX};
use crate::oracle::{Oracle, Rule, Violation};
use crate::plant::Plant;
use crate::rng::{mix, Rng};
use crate::scenario::{Profile, Scenario};
use crate::schedule::{Micros, Schedule};
use crate::trace::Trace;
use bytes::Bytes;
use lame::Lame;
use modes::Settling;
use quorate_consensus::{
    Config, Entry, Event as CoreEvent, Fetch, Index, LogPosition, MemberId, Message,
};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The most events one run may take: a run that gets here makes no progress, or far too much.
const EVENTS_MAX: u64 = 400_000;

/// Something due at some time. `m` is the slot of the member it happens to, `run` the life of the
/// process it belongs to.
pub enum Event {
    Tick { m: usize, run: u32 },
    Deliver { from: usize, m: usize, packet: Packet },
    Unreachable { m: usize, run: u32, peer: MemberId },
    SyncDone { m: usize, run: u32 },
    SyncFailed { m: usize, run: u32 },
    Persisted { m: usize, run: u32, upto: Index },
    Fetch { m: usize, run: u32, fetch: Fetch, read: Option<Vec<Entry>> },
    CarryOut { m: usize, run: u32 },
    Apply { m: usize, run: u32 },
    Compact { m: usize, run: u32 },
    Flush { m: usize, run: u32 },
    Client { m: usize, run: u32, client: usize },
    SnapshotStored { m: usize, run: u32, received: Received },
    SnapshotTimeout { m: usize, run: u32, token: u64 },
    Unhang { m: usize, run: u32 },
    Kill { m: usize, run: u32 },
    Restart { m: usize, run: u32 },
    Resume { m: usize, run: u32 },
    Retire { m: usize },
    Fault,
    Strike,
    Rejoin,
    Flap { side: u16, left: u32 },
    Operate,
    OperateNow,
    Disaster,
    Force,
    Alone,
    HealCheck,
}

/// What travels between members.
#[derive(Clone)]
pub enum Packet {
    Raft(Message),
    /// Proposals for the leader: part `part` of a stream.
    Forward {
        session: u64,
        part: u64,
        items: Vec<Bytes>,
    },
    Snapshot {
        term: u64,
        snapshot: Rc<Snapshot>,
        token: u64,
    },
    SnapshotStored {
        token: u64,
    },
}

/// A snapshot that came in.
pub struct Received {
    pub from: usize,
    pub term: u64,
    pub snapshot: Rc<Snapshot>,
    pub token: u64,
}

/// A snapshot on its way to a peer.
pub struct Shipment {
    pub token: u64,
    pub from: usize,
    pub to: MemberId,
    pub last: Index,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Faults,
    /// All faults have ended, but a minority is still away.
    WithoutMinority,
    Healed,
    /// Well, but for some links that are broken for good.
    Lame,
    /// Well, and to show that it is in the mode it runs in.
    Modes,
    Done,
}

pub struct World {
    pub scenario: Scenario,
    pub plant: Option<Plant>,
    pub rng: Rng,
    pub schedule: Schedule<Event>,
    pub members: Vec<Member>,
    pub net: Net,
    pub oracle: Oracle,
    pub phase: Phase,
    pub phase_ends: Micros,
    /// Members that stay away in the first stage after the faults.
    away: u16,
    /// They are down, not cut off.
    away_is_down: bool,
    /// The newest membership known to be committed, and its place in the log.
    committed_config: (Index, Rc<Config>),
    /// Every membership that a leader ever made: it may be in a log, or still on its way to one.
    configs_made: Vec<(Index, Config)>,
    /// When each View entry was made, for those who may go on alone.
    views_made: Vec<(LogPosition, Micros)>,
    /// A majority is lost, and the rest not yet a group again.
    without_majority: bool,
    lame: Lame,
    settling: Settling,
    trace: Trace,
    digest: u64,
    shipments: Vec<Shipment>,
    /// Newcomers that a leader was told to send a snapshot to rather than the whole log.
    welcomed: BTreeSet<MemberId>,
    coverage: Coverage,
    proposals_left: u32,
    /// Numbers sessions, read contexts, shipments.
    counter: u64,
    events: u64,
}

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    /// The same for the same seed and build, always.
    pub digest: u64,
    pub events: u64,
    pub virtual_us: Micros,
    pub committed: Index,
    pub terms_led: usize,
    pub coverage: Coverage,
    pub violation: Option<Violation>,
    pub trace: Vec<String>,
}

impl World {
    pub fn new(seed: u64, profile: Profile, plant: Option<Plant>, trace: Trace) -> Self {
        let (scenario, mut rng) = Scenario::new(seed, profile);
        let net = Net::new(scenario.net.clone(), &mut rng);
        let mut world = World {
            plant,
            schedule: Schedule::new(),
            members: Vec::with_capacity(SLOTS_MAX),
            net,
            oracle: Oracle::default(),
            phase: Phase::Faults,
            phase_ends: scenario.chaos_us,
            away: 0,
            away_is_down: false,
            committed_config: (0, Rc::default()),
            configs_made: Vec::new(),
            views_made: Vec::new(),
            without_majority: false,
            lame: Lame::default(),
            settling: Settling::default(),
            trace,
            digest: seed,
            shipments: Vec::new(),
            welcomed: BTreeSet::new(),
            coverage: Coverage::default(),
            proposals_left: scenario.proposals_max,
            counter: 0,
            events: 0,
            rng,
            scenario,
        };
        if world.trace.is_on() {
            world.note(format!("{:?}", world.scenario));
        }
        world.found_group();
        world.schedule_faults();
        world.schedule_disaster();
        world.schedule_alone();
        world
    }

    /// Runs to the end or to the first violation.
    pub fn run(&mut self) {
        while self.phase != Phase::Done && !self.oracle.failed() {
            let Some(event) = self.schedule.pop() else { break };
            self.events += 1;
            if self.events > EVENTS_MAX {
                let phase = self.phase;
                self.oracle
                    .fail(Rule::Progress, || format!("{EVENTS_MAX} events, still {phase:?}"));
            }
            self.digest = mix(self.digest, self.schedule.now());
            self.handle(event);
        }
    }

    pub fn report(mut self) -> Report {
        Report {
            seed: self.scenario.seed,
            digest: self.digest,
            events: self.events,
            virtual_us: self.schedule.now(),
            committed: self.oracle.commit(),
            terms_led: self.oracle.terms_led(),
            coverage: self.coverage,
            violation: self.oracle.take_violation(),
            trace: self.trace.into_lines(),
        }
    }

    fn handle(&mut self, event: Event) {
        // A sync goes on while its process is stopped; only the news of it waits.
        if let Event::SyncDone { m, run } = event {
            return self.sync_done(m, run);
        }
        match event.process() {
            Some((m, run)) => {
                let member = &mut self.members[m];
                if !member.is_up() || run.is_some_and(|run| run != member.run) {
                    return self.undeliverable(event);
                }
                if member.paused {
                    // A timer that was missed rings once, when the process goes on.
                    if !matches!(event, Event::Tick { .. }) {
                        member.backlog.push_back(event);
                    }
                    return;
                }
                self.handle_in_process(event);
            }
            None => self.handle_outside(event),
        }
    }

    fn handle_in_process(&mut self, event: Event) {
        match event {
            Event::Tick { m, .. } => self.tick(m),
            Event::Deliver { from, m, packet } => self.receive(from, m, packet),
            Event::Unreachable { m, peer, .. } => self.unreachable(m, peer),
            Event::SyncFailed { m, .. } => self.sync_failed(m),
            Event::Persisted { m, upto, .. } => self.persisted(m, upto),
            Event::Fetch { m, fetch, read, .. } => self.fetch(m, fetch, read),
            Event::CarryOut { m, .. } => self.carry_out(m),
            Event::Apply { m, .. } => self.apply_some(m),
            Event::Compact { m, .. } => self.compact(m),
            Event::Flush { m, .. } => self.flush(m),
            Event::Client { m, client, .. } => self.client(m, client),
            Event::SnapshotStored { m, received, .. } => self.snapshot_stored(m, received),
            Event::SnapshotTimeout { token, .. } => self.shipment_ended(token, false),
            Event::Unhang { m, .. } => self.must_accept(m, CoreEvent::HostHangs(false)),
            _ => unreachable!("an event outside any process"),
        }
    }

    fn handle_outside(&mut self, event: Event) {
        match event {
            Event::Restart { m, run } => self.restart(m, run),
            Event::Resume { m, run } => self.resume(m, run),
            Event::Kill { m, run } => self.kill(m, run),
            Event::Retire { m } => self.retire(m),
            Event::Fault => self.fault(),
            Event::Strike => self.strike(),
            Event::Rejoin => self.rejoin(),
            Event::Flap { side, left } => self.flap(side, left),
            Event::Operate => self.operate(),
            Event::OperateNow => self.operate_now(),
            Event::Disaster => self.disaster(),
            Event::Force => self.force(),
            Event::Alone => self.go_on_alone(),
            Event::HealCheck => self.heal_check(),
            _ => unreachable!("an event inside a process"),
        }
    }

    /// Sends a packet into the network.
    fn send(&mut self, from: usize, to: MemberId, packet: Packet) {
        let Some(m) = self.slot(to) else { return };
        let now = self.schedule.now();
        // Over a connection, what arrives of a stream of proposals arrives in order and once.
        let stream = matches!(packet, Packet::Forward { .. }) && !self.scenario.loose_forwarding;
        match self.net.route(&mut self.rng, now, from, m, stream) {
            [Some(at), Some(again)] => {
                self.schedule.at(again, Event::Deliver { from, m, packet: packet.clone() });
                self.schedule.at(at, Event::Deliver { from, m, packet });
            }
            [Some(at), None] | [None, Some(at)] => {
                self.schedule.at(at, Event::Deliver { from, m, packet })
            }
            [None, None] => {}
        }
    }

    fn slot(&self, id: MemberId) -> Option<usize> {
        self.members.iter().position(|m| m.id == id)
    }

    /// How many members there ever were.
    fn slots(&self) -> usize {
        self.members.len()
    }

    fn next_number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn stir(&mut self, value: u64) {
        self.digest = mix(self.digest, value);
    }

    fn mark(&mut self, mark: Mark) {
        self.coverage.mark(mark);
    }

    /// Whether anybody reads the story; ask before making a line.
    fn tells(&self) -> bool {
        self.trace.is_on()
    }

    fn note(&mut self, text: String) {
        let now = self.schedule.now();
        self.trace.line(now, &text);
    }

    fn idle_client_again(&mut self, m: usize, client: usize) {
        self.members[m].clients[client] = Client::Idle;
        let think = self.scenario.think_us;
        let delay = self.rng.range(think / 2, think * 2);
        let run = self.members[m].run;
        self.schedule.after(delay, Event::Client { m, run, client });
    }
}

impl Event {
    /// The process that has to be running for this to happen, if any.
    fn process(&self) -> Option<(usize, Option<u32>)> {
        match *self {
            Event::Deliver { m, .. } => Some((m, None)),
            Event::Tick { m, run }
            | Event::Unreachable { m, run, .. }
            | Event::SyncDone { m, run }
            | Event::SyncFailed { m, run }
            | Event::Persisted { m, run, .. }
            | Event::Fetch { m, run, .. }
            | Event::CarryOut { m, run }
            | Event::Apply { m, run }
            | Event::Compact { m, run }
            | Event::Flush { m, run }
            | Event::Client { m, run, .. }
            | Event::SnapshotStored { m, run, .. }
            | Event::SnapshotTimeout { m, run, .. }
            | Event::Unhang { m, run } => Some((m, Some(run))),
            Event::Restart { .. }
            | Event::Resume { .. }
            | Event::Kill { .. }
            | Event::Retire { .. }
            | Event::Fault
            | Event::Strike
            | Event::Rejoin
            | Event::Flap { .. }
            | Event::Operate
            | Event::OperateNow
            | Event::Disaster
            | Event::Force
            | Event::Alone
            | Event::HealCheck => None,
        }
    }
}
