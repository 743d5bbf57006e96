//! The network between the machines: how long the way takes, and which ways are cut.

use super::{Micros, Rng, Scenario, World};

pub const SLOTS_MAX: usize = 16;

pub struct Net {
    latency_us: [[Micros; SLOTS_MAX]; SLOTS_MAX],
    /// Bit `to` of `cut[from]`: nothing passes in this direction.
    cut: [u16; SLOTS_MAX],
    /// As fast as may be, and no more faults.
    pub(super) perfect: bool,
}

impl Net {
    pub fn new(scenario: &Scenario, rng: &mut Rng) -> Self {
        let mut latency_us = [[0; SLOTS_MAX]; SLOTS_MAX];
        let (low, high) = scenario.latency_us;
        for latency in latency_us.iter_mut().flatten() {
            *latency = rng.range(low, high);
        }
        Net { latency_us, cut: [0; SLOTS_MAX], perfect: false }
    }

    pub fn cut(&mut self, from: usize, to: usize) {
        self.cut[from] |= 1 << to;
    }

    /// Cuts every link between the two sides, both ways.
    pub fn split(&mut self, side: u16) {
        for from in 0..SLOTS_MAX {
            self.cut[from] |= if side & (1 << from) != 0 { !side } else { side };
        }
    }

    pub fn join_all(&mut self) {
        self.cut = [0; SLOTS_MAX];
    }

    /// A connection needs both directions.
    pub(super) fn works(&self, a: usize, b: usize) -> bool {
        self.cut[a] & (1 << b) == 0 && self.cut[b] & (1 << a) == 0
    }
}

impl World {
    pub(super) fn latency(&mut self, from: usize, to: usize) -> Micros {
        if self.net.perfect {
            return self.scenario.latency_us.0;
        }
        let mut delay = self.net.latency_us[from][to] + self.rng.below(self.scenario.jitter_us + 1);
        if self.rng.chance(self.scenario.spike_per_mille) {
            delay += self.rng.below(self.scenario.spike_us + 1);
        }
        delay
    }
}
