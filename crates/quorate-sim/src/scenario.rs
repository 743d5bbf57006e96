//! What a seed stands for: how many members, how fast, which faults are on.
//!
//! Each run turns on only some of the faults ("swarm testing"): a run with everything at once
//! rarely gets far enough into any one story.

use crate::modes::Modes;
use crate::rng::{mix, Rng};
use crate::schedule::Micros;
use crate::staff::Staff;
use clap::ValueEnum;
use quorate_consensus::{Config, MemberInfo, MemberRole, Primaries, PriorityRule, Rules};

/// Which part of the faults seeds may choose from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Profile {
    /// Every kind of fault, a different selection for each seed.
    Swarm,
    /// No faults at all: the cost and progress of ordinary work.
    Calm,
    /// Crashes, torn writes, stalls, failing syncs, full, lost, rotten and rolled-back disks.
    Disk,
    /// Delay, resets, partitions, one-way cuts, pauses.
    Network,
    /// Membership changes, hand-overs, snapshots, with crashes.
    Membership,
}

/// The faults that may happen in one run.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub kill: bool,
    pub power: bool,
    pub power_of_all: bool,
    pub pause: bool,
    pub partition: bool,
    pub one_way: bool,
    pub reset: bool,
    pub disk_stall: bool,
    pub sync_failure: bool,
    pub full: bool,
    pub wipe: bool,
    pub rot: bool,
    pub roll_back: bool,
    pub orders: bool,
    pub hang: bool,
    pub slow_apply: bool,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub voters: usize,
    pub learners: usize,
    /// The members find each other: one founds the group, the others ask to join.
    pub founded: bool,
    pub election_timeout_ms: u64,
    /// Clocks run so much too fast or too slow, in parts per million: more than is assumed.
    pub drift_ppm: i64,
    /// Faults stop after this much virtual time.
    pub chaos_us: Micros,
    /// Mean time between two faults.
    pub fault_every_us: Micros,
    /// One-way latency of each link is drawn from this range once.
    pub latency_us: (Micros, Micros),
    /// Added to each write on a connection.
    pub jitter_us: Micros,
    /// Writes in a thousand that take much longer, as with loss.
    pub spike_per_mille: u32,
    pub spike_us: Micros,
    pub sync_us: (Micros, Micros),
    /// Syncs in a thousand that take up to `stall_us`.
    pub stall_per_mille: u32,
    pub stall_us: Micros,
    pub faults: Faults,
    pub clients_per_member: usize,
    pub think_us: Micros,
    /// Write sets proposed in the whole run before the faults stop.
    pub proposals_max: u32,
    pub keys: u64,
    /// Reads among the clients' operations, in a thousand.
    pub reads_per_mille: u32,
    /// Fragments of streaming transactions among the writes, in a thousand.
    pub fragments_per_mille: u32,
    /// Write sets the certification index keeps.
    pub window: usize,
    /// Size of a segment of the log, and log between two snapshots.
    pub segment_bytes: u64,
    pub snapshot_bytes: u64,
    /// Write sets of up to several segments, in a thousand.
    pub large_per_mille: u32,
    /// After the faults a minority stays away while the others must make progress.
    pub minority_stays_away: bool,
    /// It runs meanwhile, and nobody hears it.
    pub minority_is_cut_off: bool,
    pub rules: Rules,
    pub zones: u64,
    pub priorities: bool,
    pub loggers_per_mille: u32,
    /// Election timeouts after which a leader's disk counts as standing still; 0: never.
    pub stall_timeouts: u64,
    pub expels: bool,
    /// Reads are answered by leases; clocks then drift no more than is assumed.
    pub lease_reads: bool,
    pub modes: Modes,
    pub allow_alone: bool,
    pub staff: Staff,
}

impl Scenario {
    pub fn new(seed: u64, profile: Profile) -> (Self, Rng) {
        let mut rng = Rng::new(seed);
        let r = &mut rng;
        let voters =
            r.weighted(&[(1, 4), (2, 8), (3, 46), (4, 10), (5, 24), (6, 3), (7, 5)]).unwrap_or(3);
        let election_timeout_ms = *r.pick(&[100, 200, 500, 1000]).unwrap_or(&200);
        let election_us = election_timeout_ms * 1000;
        let faults = Faults::draw(r, profile);
        let calm = profile == Profile::Calm;
        let varied = matches!(profile, Profile::Swarm | Profile::Membership) && r.chance(400);
        let zones = if varied { *r.pick(&[1, 1, 2, 3]).unwrap_or(&1) } else { 1 };
        let priorities = varied && r.chance(500);
        let single = varied && r.chance(400);
        let rules = Rules {
            zones_min: r.below(zones + 1) as u8,
            priorities: if priorities && r.chance(300) {
                PriorityRule::Forced
            } else {
                PriorityRule::Optimistic
            },
            primaries: if single { Primaries::Single } else { Primaries::Multi },
            follows_writes: varied && r.chance(400),
            ..Rules::default()
        };
        let far = if r.chance(250) { election_us / 10 } else { 1_000 };
        let jittery = !calm && r.chance(500);
        let mut scenario = Scenario {
            seed,
            voters,
            learners: if r.chance(150) { 1 } else { 0 },
            founded: r.chance(100),
            election_timeout_ms,
            drift_ppm: *r.pick(&[0, 1_000, 50_000, 150_000]).unwrap_or(&0),
            chaos_us: election_us * r.range(6, if voters > 5 { 20 } else { 32 }),
            fault_every_us: election_us * r.range(4, 24) / 8,
            latency_us: (50, far),
            jitter_us: if jittery { r.range(100, election_us / 20) } else { 50 },
            spike_per_mille: if jittery { r.range(0, 30) as u32 } else { 0 },
            spike_us: election_us * r.range(1, 3),
            sync_us: (r.range(20, 200), election_us / r.pick(&[400, 40, 10, 3]).unwrap_or(&40)),
            stall_per_mille: if faults.disk_stall { r.range(1, 60) as u32 } else { 0 },
            stall_us: election_us * r.range(1, 16) / 8,
            clients_per_member: r.range(1, 3) as usize,
            think_us: election_us * 2 / r.pick(&[1, 6, 20, 80]).unwrap_or(&16),
            proposals_max: *r.pick(&[12, 80, 160, 240]).unwrap_or(&160),
            keys: *r.pick(&[2, 6, 20, 200]).unwrap_or(&20),
            reads_per_mille: *r.pick(&[0, 50, 200, 500]).unwrap_or(&200),
            fragments_per_mille: *r.pick(&[0, 0, 100, 400]).unwrap_or(&0),
            window: *r.pick(&[4, 16, 64, 256]).unwrap_or(&64),
            segment_bytes: *r.pick(&[16 << 10, 16 << 10, 32 << 10]).unwrap_or(&(16 << 10)),
            snapshot_bytes: *r.pick(&[1 << 10, 4 << 10, 16 << 10, 1 << 20]).unwrap_or(&(4 << 10)),
            large_per_mille: *r.pick(&[0, 0, 2, 20]).unwrap_or(&0),
            minority_stays_away: !calm && r.chance(300),
            minority_is_cut_off: Rng::new(mix(seed, 0x4375_744f_6666)).chance(500),
            rules,
            zones,
            priorities,
            loggers_per_mille: if varied { *r.pick(&[0, 200, 400]).unwrap_or(&0) } else { 0 },
            stall_timeouts: r.below(3),
            expels: !calm && r.chance(100),
            allow_alone: !calm && voters == 2 && r.chance(600),
            lease_reads: false,
            modes: Modes::draw(seed, profile, election_timeout_ms),
            staff: Staff::draw(seed, profile, (voters, election_us), faults.loses_disks()),
            faults,
        };
        scenario.modes.govern(&mut scenario.rules);
        scenario.draw_leases(profile);
        (scenario, rng)
    }

    /// Drawn apart from the rest, so that other seeds keep their meaning.
    fn draw_leases(&mut self, profile: Profile) {
        let mut rng = Rng::new(mix(self.seed, 0x4c65_6173_6573));
        let possible = matches!(profile, Profile::Swarm | Profile::Network);
        self.lease_reads = rng.chance(150) && possible;
        if self.lease_reads {
            self.drift_ppm = *rng.pick(&[0, 1_000, 30_000]).unwrap_or(&0);
        }
    }

    /// The first membership.
    pub fn config(&self, rng: &mut Rng, ids: &[quorate_consensus::MemberId]) -> Config {
        let mut config = Config { rules: self.rules, ..Config::default() };
        for (slot, id) in ids.iter().enumerate() {
            let voter = slot < self.voters;
            let role = match voter {
                true if slot > 0 && rng.chance(self.loggers_per_mille) => MemberRole::Logger,
                true => MemberRole::Voter,
                false => MemberRole::Learner,
            };
            let priority = match self.priorities && slot > 0 {
                true => *rng.pick(&[0, 20, 50, 50, 80]).unwrap_or(&50),
                false => 50,
            };
            let zone = format!("z{}", slot as u64 % self.zones);
            let info =
                MemberInfo { priority, zone, ..MemberInfo::new(role, addr(slot), name(slot)) };
            config.members.insert(*id, info);
        }
        self.staff.govern(&mut config, ids);
        config.rules.zones_min = config.rules.zones_min.min(config.zones().len() as u8);
        config
    }

    pub fn election_us(&self) -> Micros {
        self.election_timeout_ms * 1000
    }

    pub fn heartbeat_ms(&self) -> u64 {
        (self.election_timeout_ms / 5).max(1)
    }

    pub fn tick_us(&self) -> Micros {
        self.heartbeat_ms() * 1000 / 4
    }

    /// Silence after which a connection counts as dead.
    pub fn silence_us(&self) -> Micros {
        self.election_us() * 2
    }
}

pub fn addr(slot: usize) -> String {
    format!("m{slot}:1")
}

pub fn name(slot: usize) -> String {
    format!("m{slot}")
}

/// The slot of an address.
pub fn slot_of(addr: &str) -> Option<usize> {
    addr.strip_prefix('m')?.strip_suffix(":1")?.parse().ok()
}

impl Faults {
    /// Some member may be lost for good.
    pub fn loses_disks(&self) -> bool {
        self.wipe || self.rot || self.roll_back
    }

    fn draw(rng: &mut Rng, profile: Profile) -> Self {
        let all = profile == Profile::Swarm;
        let disk = all || profile == Profile::Disk;
        let network = all || profile == Profile::Network;
        let membership = all || profile == Profile::Membership;
        let mut on = |possible: bool, per_mille: u32| rng.chance(per_mille) && possible;
        Faults {
            kill: on(disk || membership || network, 600),
            power: on(disk, 500),
            power_of_all: on(disk, 200),
            pause: on(network, 350),
            partition: on(network, 450),
            one_way: on(network, 300),
            reset: on(network, 400),
            disk_stall: on(disk, 350),
            sync_failure: on(disk, 200),
            full: on(disk, 150),
            wipe: on(disk || membership, 200),
            rot: on(disk, 150),
            roll_back: on(disk, 150),
            orders: on(membership, 400),
            hang: on(membership, 150),
            slow_apply: on(all, 200),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_means_the_same() {
        for seed in 0..50 {
            let (a, mut ra) = Scenario::new(seed, Profile::Swarm);
            let (b, mut rb) = Scenario::new(seed, Profile::Swarm);
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
            assert_eq!(ra.next_u64(), rb.next_u64());
        }
    }

    #[test]
    fn a_calm_run_has_no_faults() {
        for seed in 0..50 {
            let (scenario, _) = Scenario::new(seed, Profile::Calm);
            let faults = format!("{:?}", scenario.faults);
            assert!(!faults.contains("true"), "{faults}");
        }
    }
}
