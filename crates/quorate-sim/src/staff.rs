//! What sets the members of one run apart: roles, priorities, zones, and the rules that go by them.
//!
//! Drawn apart from the rest of a scenario, so that the seeds of a plain group keep their meaning.

use crate::rng::{mix, Rng};
use crate::scenario::Profile;
use quorate_consensus::{Config, MemberInfo, MemberRole, PriorityRule, Rules, PRIORITY_DEFAULT};

#[derive(Clone, Debug, Default)]
pub struct Staff {
    /// Anything but a plain group.
    pub varied: bool,
    /// Voters that are loggers, in a thousand.
    loggers_per_mille: u32,
    priorities: bool,
    /// Members with none, two or three votes.
    votes: bool,
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
        let priorities = r.chance(500);
        Staff {
            varied: true,
            loggers_per_mille: *r.pick(&[0, 200, 400, 600]).unwrap_or(&0),
            priorities,
            zones,
            rules: Self::draw_rules(r, zones, priorities),
            stall_timeouts: r.below(3),
            hangs: r.chance(300),
            votes: r.chance(400),
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
            priority: self.priority(rng),
            votes: self.votes(rng),
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
        if config.votes().next().is_none() {
            config.members.values_mut().for_each(|info| info.votes = 1);
        }
        if config.members.values().any(MemberInfo::may_lead) {
            return;
        }
        if let Some(first) = config.members.values_mut().find(|info| info.is_voter()) {
            (first.role, first.priority) = (MemberRole::Voter, PRIORITY_DEFAULT);
        }
    }

    /// Other rules for a running group.
    pub fn rules(&self, rng: &mut Rng) -> Rules {
        Self::draw_rules(rng, self.zones, self.priorities)
    }

    /// The same member in another role or of another priority.
    pub fn altered(&self, rng: &mut Rng, info: &MemberInfo) -> MemberInfo {
        let role = match (info.role, rng.chance(500)) {
            (MemberRole::Voter, true) => MemberRole::Logger,
            (MemberRole::Logger, true) => MemberRole::Voter,
            (role, _) => role,
        };
        let votes = self.votes(rng);
        MemberInfo { role, priority: self.priority(rng), votes, ..info.clone() }
    }

    fn votes(&self, rng: &mut Rng) -> u8 {
        match self.votes {
            true => *rng.pick(&[0, 1, 1, 1, 2, 3]).unwrap_or(&1),
            false => 1,
        }
    }

    fn priority(&self, rng: &mut Rng) -> u8 {
        match self.priorities {
            true => *rng.pick(&[0, 20, 50, 50, 80]).unwrap_or(&PRIORITY_DEFAULT),
            false => PRIORITY_DEFAULT,
        }
    }

    fn draw_rules(rng: &mut Rng, zones: u64, priorities: bool) -> Rules {
        let forced = priorities && rng.chance(300);
        Rules {
            zones_min: rng.below(zones + 1) as u8,
            priorities: if forced { PriorityRule::Forced } else { PriorityRule::Optimistic },
            ..Rules::default()
        }
    }
}
