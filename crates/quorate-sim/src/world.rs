//! One run: the nodes, the connections between them, virtual time, and the loop.
//!
//! The world decides when things happen and what goes wrong; it carries out what the members want
//! done (`carry`), as the shell of the product does, and shows everything to the oracle.

mod admission;
mod alone;
mod broken;
mod carry;
mod check;
mod clients;
mod connections;
mod departures;
mod dial;
mod disaster;
mod event;
mod faults;
mod feed;
mod heal;
mod modes;
mod net;
mod operators;
mod orders;
mod process;
mod retry;
mod staff;
mod start;
mod storage;

use crate::coverage::{Coverage, Mark};
use crate::node::{Clock, Node};
use crate::oracle::{Oracle, Rule, Violation};
use crate::plant::Plant;
use crate::rng::{mix, Rng};
use crate::scenario::{Profile, Scenario};
use crate::schedule::{Micros, Schedule};
use crate::trace::Trace;
use alone::Known;
use broken::Broken;
use connections::Connection;
use disaster::Disaster;
pub use event::{Asked, Event};
use modes::Settling;
use net::Net;
use quorate_consensus::{Config, Index, MemberId};
use quorate_wal::sim::Crash;
use retry::Retries;
pub use retry::Sessions;
use std::collections::BTreeMap;

/// The most events one run may take: a run that gets here makes no progress, or far too much.
const EVENTS_MAX: u64 = 400_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The members find each other.
    Founding,
    Faults,
    /// All faults have ended, but a minority is still away.
    WithoutMinority,
    Healed,
    /// It shows that it can do what its mode asks for.
    Modes,
    /// Links are broken for good.
    Broken,
    Done,
}

pub struct World {
    pub scenario: Scenario,
    pub plant: Option<Plant>,
    pub rng: Rng,
    pub schedule: Schedule<Event>,
    pub nodes: Vec<Node>,
    pub oracle: Oracle,
    pub phase: Phase,
    pub phase_ends: Micros,
    net: Net,
    connections: BTreeMap<u64, Connection>,
    /// Nodes that stay away in the first stage after the faults.
    away: u16,
    /// The newest membership that was fed anywhere, and its place in the log.
    committed_config: (Index, Config),
    /// Every membership that a leader made, and its place in that leader's log.
    configs_made: Vec<(Index, Config)>,
    broken: Broken,
    settling: Settling,
    known: Known,
    disaster: Disaster,
    retries: Retries,
    trace: Trace,
    digest: u64,
    coverage: Coverage,
    proposals_left: u32,
    /// Numbers connections, orders.
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
        let net = Net::new(&scenario, &mut rng);
        let mut world = World {
            plant,
            schedule: Schedule::new(),
            nodes: Vec::new(),
            oracle: Oracle::default(),
            phase: Phase::Faults,
            phase_ends: scenario.chaos_us,
            net,
            connections: BTreeMap::new(),
            away: 0,
            committed_config: (0, Config::default()),
            configs_made: Vec::new(),
            broken: Broken::draw(seed, profile),
            settling: Settling::default(),
            known: Known::default(),
            disaster: Disaster::default(),
            retries: Retries::draw(seed, profile),
            trace,
            digest: seed,
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
        world
    }

    /// Runs to the end or to the first violation.
    pub fn run(&mut self) {
        self.begin();
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
        let Some((m, run)) = event.process() else { return self.handle_outside(event) };
        let node = &mut self.nodes[m];
        if !node.is_up() || run != node.run {
            return;
        }
        if node.paused {
            // A timer that was missed rings once, when the process goes on. The disk goes on.
            match event {
                Event::Tick { .. } => return,
                other => return node.backlog.push_back(other),
            }
        }
        self.handle_in_process(m, event);
        self.bury(m);
    }

    fn handle_in_process(&mut self, m: usize, event: Event) {
        match event {
            Event::Tick { .. } => self.tick(m),
            Event::Disk { turn, .. } => self.disk_step(m, turn),
            Event::Feed { .. } => self.feed(m),
            Event::Fetch { fetch, .. } => self.fetch(m, fetch),
            Event::Save { save, .. } => self.save(m, save),
            Event::SendSnapshot { order, .. } => self.send_snapshot(m, order),
            Event::Client { client, .. } => self.client(m, client),
            Event::ReadAgain { client, .. } => self.read(m, client),
            Event::Dial { peer, attempt, addr, refused, .. } => {
                self.dial(m, peer, attempt, addr, refused)
            }
            Event::DialFailed { peer, attempt, addr, refused, .. } => {
                self.dial_failed(m, peer, attempt, addr, refused)
            }
            Event::Hello { connection, addr, refused, bytes, .. } => {
                self.hello(m, connection, addr, refused, bytes)
            }
            Event::Greeted { connection, addr, refused, bytes, .. } => {
                self.greeted(m, connection, addr, refused, bytes)
            }
            Event::Arrive { connection, bytes, .. } => self.arrive(m, connection, bytes),
            Event::Pump { connection, .. } => self.pump(connection),
            Event::OutgoingEnded { connection, .. } => self.outgoing_ended(m, connection),
            Event::IncomingEnded { connection, .. } => self.incoming_ended(m, connection),
            Event::AskArrives { ask, .. } => self.ask_arrives(m, ask),
            Event::AskAnswered { number, addr, bytes, .. } => {
                self.ask_answered(m, number, addr, &bytes)
            }
            Event::AskFailed { number, addr, reason, .. } => {
                self.ask_failed(m, number, addr, reason)
            }
            Event::Leave { serial, .. } => self.leave(m, serial),
            Event::Unhang { .. } => self.unhang(m),
            _ => unreachable!("an event outside any process"),
        }
    }

    fn handle_outside(&mut self, event: Event) {
        match event {
            Event::LinkTimeout { connection } => self.link_timeout(connection),
            Event::Restart { m, run } => self.restart(m, run),
            Event::Resume { m, run } => self.resume(m, run),
            Event::Return { task, from } => self.come_back(task, from),
            Event::Join => self.join_links(),
            Event::Room { m } => self.make_room(m),
            Event::Fault => self.fault(),
            Event::Order => self.order(),
            Event::Act(act) => self.act(act),
            Event::HealCheck => self.heal_check(),
            _ => unreachable!("an event inside a process"),
        }
    }

    /// A machine whose disk died in the middle of an operation lost its power.
    fn bury(&mut self, m: usize) {
        if self.nodes[m].is_up() && self.nodes[m].disk.is_dead() {
            self.mark(Mark::CrashInsideWrite);
            let crash = if self.rng.chance(500) { Crash::Power } else { Crash::Kill };
            self.crash(m, crash);
            self.restart_later(m);
        }
    }

    fn slot(&self, id: MemberId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    fn now_ms(&self, m: usize) -> u64 {
        self.nodes[m].clock.millis(self.schedule.now())
    }

    fn next_number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
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

    /// Clocks differ by any offset, and drift apart by more than is assumed.
    fn draw_clock(&mut self) -> Clock {
        let most = self.scenario.drift_ppm;
        Clock {
            offset_us: self.rng.below(10_000_000) as i64,
            parts_per_million: self.rng.range(0, 2 * most as u64) as i64 - most,
        }
    }
}
