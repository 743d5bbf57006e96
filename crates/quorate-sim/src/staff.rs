//! What sets the members of one run apart: roles, weights, zones, and the rules that go by them.
//!
//! Drawn apart from the rest of a scenario, so that the seeds of a plain group keep their meaning.

use crate::rng::{mix, Rng};
use crate::scenario::Profile;
use quorate_consensus::{Config, MemberInfo, MemberRole, Rules, WeightRule, WEIGHT_DEFAULT};

#[derive(Clone, Debug, Default)]
pub struct Staff {
    /// Anything but a plain group.
    pub varied: bool,
    /// Voters that are loggers, in a thousand.
    loggers_per_mille: u32,
    weights: bool,
    /// Members with none, two or three votes.
    ballots: bool,
    zones: u64,
    /// Rules of the first membership.
    rules: Rules,
    /// After how many election timeouts a leader's disk counts as standing still; 0: never.
    pub stall_timeouts: u64,
    /// The host of a member may hang.
    pub hangs: bool,
    /// A majority loses its disks, and the rest is made the group by force.
    pub disaster: bool,
}

impl Staff {
    pub fn draw(seed: u64, profile: Profile) -> Self {
        let mut rng = Rng::new(mix(seed, 0x5374_6166_6621));
        let r = &mut rng;
        if !matches!(profile, Profile::Swarm | Profile::Membership) || !r.chance(450) {
            return Staff::default();
        }
        let zones = *r.pick(&[1, 1, 2, 3]).unwrap_or(&1);
        let weights = r.chance(500);
        Staff {
            varied: true,
            loggers_per_mille: *r.pick(&[0, 200, 400, 600]).unwrap_or(&0),
            weights,
            zones,
            rules: Self::draw_rules(r, zones, weights),
            stall_timeouts: r.below(3),
            hangs: r.chance(300),
            ballots: r.chance(400),
            disaster: r.chance(150),
        }
    }

    /// A voter or learner for `slot`, with what sets it apart. A plain group draws nothing.
    pub fn member(&self, rng: &mut Rng, slot: usize, role: MemberRole) -> MemberInfo {
        let plain = MemberInfo::new(role, format!("host{slot}:1"), format!("m{slot}"));
        if !self.varied {
            return plain;
        }
        let logger = role == MemberRole::Voter && rng.chance(self.loggers_per_mille);
        MemberInfo {
            role: if logger { MemberRole::Logger } else { role },
            weight: self.weight(rng),
            ballots: self.ballots(rng),
            zone: format!("z{}", slot as u64 % self.zones),
            ..plain
        }
    }

    /// The first membership's rules; somebody in it must be able to lead.
    pub fn govern(&self, config: &mut Config) {
        if !self.varied {
            return;
        }
        config.rules = self.rules;
        config.rules.zones_min = self.rules.zones_min.min(config.zones().len() as u8);
        if config.ballots().next().is_none() {
            config.members.values_mut().for_each(|info| info.ballots = 1);
        }
        if config.members.values().any(MemberInfo::may_lead) {
            return;
        }
        if let Some(first) = config.members.values_mut().find(|info| info.votes()) {
            (first.role, first.weight) = (MemberRole::Voter, WEIGHT_DEFAULT);
        }
    }

    /// Other rules for a running group.
    pub fn rules(&self, rng: &mut Rng) -> Rules {
        Self::draw_rules(rng, self.zones, self.weights)
    }

    /// The same member in another role or of another weight.
    pub fn altered(&self, rng: &mut Rng, info: &MemberInfo) -> MemberInfo {
        let role = match (info.role, rng.chance(500)) {
            (MemberRole::Voter, true) => MemberRole::Logger,
            (MemberRole::Logger, true) => MemberRole::Voter,
            (role, _) => role,
        };
        let ballots = self.ballots(rng);
        MemberInfo { role, weight: self.weight(rng), ballots, ..info.clone() }
    }

    fn ballots(&self, rng: &mut Rng) -> u8 {
        match self.ballots {
            true => *rng.pick(&[0, 1, 1, 1, 2, 3]).unwrap_or(&1),
            false => 1,
        }
    }

    fn weight(&self, rng: &mut Rng) -> u8 {
        match self.weights {
            true => *rng.pick(&[0, 20, 50, 50, 80]).unwrap_or(&WEIGHT_DEFAULT),
            false => WEIGHT_DEFAULT,
        }
    }

    fn draw_rules(rng: &mut Rng, zones: u64, weights: bool) -> Rules {
        let forced = weights && rng.chance(300);
        Rules {
            zones_min: rng.below(zones + 1) as u8,
            weights: if forced { WeightRule::Forced } else { WeightRule::Optimistic },
            ..Rules::default()
        }
    }
}
