//! One run: the nodes, the connections between them, virtual time, and the loop.
//!
//! The world decides when things happen and what goes wrong; it carries out what the members want
//! done (`carry`), as the shell of the product does, and shows everything to the oracle.

/// Tells the story, if anybody reads it.
macro_rules! note {
    ($world:expr, $($text:tt)+) => {
        if $world.trace.is_on() {
            $world.note(format!($($text)+));
        }
    };
}

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
mod standings;
mod start;
mod storage;

use crate::coverage::Mark;
use crate::encryption::Encryption;
use crate::node::{Client, Clock, Damage, Node, Outgoing, Pending, Process, Read};
use crate::oracle::{show, Oracle, Rule, Violation};
use crate::plant::Plant;
use crate::scenario::{addr, name, slot_of, Fault, Profile, Scenario};
use crate::schedule::{Micros, Schedule};
use alone::Known;
use broken::Broken;
use connections::Connection;
use disaster::Disaster;
pub use event::Action;
use event::Event;
use modes::Settling;
use net::Net;
use quorate_consensus::{Config, Index, MemberId};
use quorate_seeds::{mix, Coverage, Rng, Trace};
use retry::Retries;
pub use retry::Sessions;
use standings::Waits;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

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
    waits: Waits,
    encryption: Encryption,
    trace: Trace,
    digest: u64,
    coverage: Coverage<Mark>,
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
    pub coverage: Coverage<Mark>,
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
            waits: Waits::draw(seed, profile),
            encryption: Encryption::of_run(seed, plant),
            trace,
            digest: seed,
            coverage: Coverage::default(),
            proposals_left: scenario.proposals_max,
            counter: 0,
            events: 0,
            rng,
            scenario,
        };
        note!(world, "{:?}", world.scenario);
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

    fn leader(&self) -> Option<usize> {
        self.slots().find(|m| self.nodes[*m].leads())
    }

    /// The leader so many times in a thousand, for that is where things happen; else anybody.
    fn draw_node(&mut self, per_mille: u32) -> usize {
        match self.leader() {
            Some(leader) if self.rng.chance(per_mille) => leader,
            _ => self.rng.index(self.nodes.len()),
        }
    }

    /// What is to be done in this phase has so many election timeouts.
    fn enter(&mut self, phase: Phase, timeouts: u64) {
        self.phase = phase;
        self.phase_ends = self.schedule.now() + timeouts * self.scenario.election_us();
    }

    fn slots(&self) -> Range<usize> {
        0..self.nodes.len()
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

    fn note(&mut self, text: String) {
        let at = Duration::from_micros(self.schedule.now());
        self.trace.line(at, &text);
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
