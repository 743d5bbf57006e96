//! The network between members: delay, loss, duplication, reordering, partitions, clogs.

use crate::rng::Rng;
use crate::schedule::Micros;

/// The most members one run ever has, replaced ones included.
pub const SLOTS_MAX: usize = 16;

/// How one run's network behaves when no fault is on.
#[derive(Clone, Debug)]
pub struct NetProfile {
    /// Base one-way latency of each link is drawn from this range once.
    pub latency_us: (Micros, Micros),
    /// Added to each message, uniform up to this.
    pub jitter_us: Micros,
    /// Messages in a thousand that take much longer.
    pub spike_per_mille: u32,
    pub spike_us: Micros,
    pub drop_per_mille: u32,
    pub duplicate_per_mille: u32,
    /// Like a TCP connection: nothing overtakes.
    pub in_order: bool,
}

pub struct Net {
    profile: NetProfile,
    latency_us: [[Micros; SLOTS_MAX]; SLOTS_MAX],
    /// Bit `to` of `cut[from]`: nothing passes in this direction.
    cut: [u16; SLOTS_MAX],
    /// Nothing arrives on this link before that time.
    clogged_until: [[Micros; SLOTS_MAX]; SLOTS_MAX],
    last_arrival: [[Micros; SLOTS_MAX]; SLOTS_MAX],
    perfect: bool,
}

/// When copies of a message arrive: none, one or two.
pub type Arrivals = [Option<Micros>; 2];

impl Net {
    pub fn new(profile: NetProfile, rng: &mut Rng) -> Self {
        let mut latency_us = [[0; SLOTS_MAX]; SLOTS_MAX];
        let (low, high) = profile.latency_us;
        for latency in latency_us.iter_mut().flatten() {
            *latency = rng.range(low, high);
        }
        Net {
            profile,
            latency_us,
            cut: [0; SLOTS_MAX],
            clogged_until: [[0; SLOTS_MAX]; SLOTS_MAX],
            last_arrival: [[0; SLOTS_MAX]; SLOTS_MAX],
            perfect: false,
        }
    }

    /// Decides the fate of one message sent now. A message of a `stream` never overtakes another of
    /// the same link and is never duplicated.
    pub fn route(
        &mut self,
        rng: &mut Rng,
        now: Micros,
        from: usize,
        to: usize,
        stream: bool,
    ) -> Arrivals {
        if self.is_cut(from, to) {
            return [None, None];
        }
        if self.perfect {
            let latency = self.profile.latency_us.0;
            return [Some(self.in_order(from, to, now + latency)), None];
        }
        if rng.chance(self.profile.drop_per_mille) {
            return [None, None];
        }
        let first = self.arrival(rng, now, from, to);
        if stream {
            return [Some(self.in_order(from, to, first)), None];
        }
        let second = rng
            .chance(self.profile.duplicate_per_mille)
            .then(|| self.arrival(rng, now, from, to) + rng.below(self.profile.spike_us + 1));
        [Some(first), second]
    }

    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cut[from] & (1 << to) != 0
    }

    /// Stops everything from `from` to `to`, in this direction only.
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

    /// Holds everything on this link back until `until`.
    pub fn clog(&mut self, from: usize, to: usize, until: Micros) {
        self.clogged_until[from][to] = until;
    }

    /// No more faults of any kind, and every link is as fast as any may be.
    pub fn heal(&mut self) {
        self.join_all();
        self.clogged_until = [[0; SLOTS_MAX]; SLOTS_MAX];
        self.perfect = true;
    }

    fn arrival(&mut self, rng: &mut Rng, now: Micros, from: usize, to: usize) -> Micros {
        let mut at = now + self.latency_us[from][to] + rng.below(self.profile.jitter_us + 1);
        if rng.chance(self.profile.spike_per_mille) {
            at += rng.below(self.profile.spike_us + 1);
        }
        at = at.max(self.clogged_until[from][to]);
        if self.profile.in_order {
            at = self.in_order(from, to, at);
        }
        at
    }

    fn in_order(&mut self, from: usize, to: usize, at: Micros) -> Micros {
        let last = &mut self.last_arrival[from][to];
        *last = at.max(*last);
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(in_order: bool) -> (Net, Rng) {
        let mut rng = Rng::new(3);
        let profile = NetProfile {
            latency_us: (100, 200),
            jitter_us: 500,
            spike_per_mille: 0,
            spike_us: 0,
            drop_per_mille: 0,
            duplicate_per_mille: 0,
            in_order,
        };
        (Net::new(profile, &mut rng), rng)
    }

    #[test]
    fn splits_cut_both_ways_and_cuts_one_way() {
        let (mut net, mut rng) = net(false);
        net.split(0b011);
        assert!(net.is_cut(0, 2) && net.is_cut(2, 1) && !net.is_cut(0, 1) && !net.is_cut(2, 3));
        net.join_all();
        net.cut(1, 0);
        assert_eq!(net.route(&mut rng, 0, 1, 0, false), [None, None]);
        assert!(net.route(&mut rng, 0, 0, 1, false)[0].is_some());
    }

    #[test]
    fn ordered_links_never_overtake() {
        let (mut net, mut rng) = net(true);
        let mut last = 0;
        for now in 0..100 {
            let [Some(at), None] = net.route(&mut rng, now, 0, 1, false) else { panic!("lost") };
            assert!(at >= last);
            last = at;
        }
    }
}
