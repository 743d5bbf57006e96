//! What a seed stands for: how many members, how fast, which faults are on.
//!
//! Each run turns on only some of the faults ("swarm testing"): a run with everything at once
//! rarely gets far enough into any one story.

use crate::modes::Modes;
use crate::schedule::Micros;
use crate::staff::Staff;
use clap::ValueEnum;
use quorate_consensus::{Config, MemberInfo, MemberRole, Primaries, PriorityRule, Rules};
use quorate_seeds::{mix, Rng};

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

/// What may go wrong in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    Kill,
    Power,
    PowerOfAll,
    DiesInWrite,
    Pause,
    Partition,
    OneWay,
    Reset,
    SlowDisk,
    SyncFails,
    Full,
    Wipe,
    Rot,
    /// An image of a disk is kept, for it to be rolled back to.
    Image,
    RollBack,
    Orders,
    Hang,
    SlowApply,
}

/// Each with the profiles beside the swarm that have it, in how many of a thousand runs of them it is
/// on, and how often it strikes then, in proportion; 0: otherwise than by chance.
const FAULTS: [(Fault, &[Profile], u32, u32); 18] = [
    (Fault::Kill, &[Profile::Disk, Profile::Membership, Profile::Network], 600, 30),
    (Fault::Power, &[Profile::Disk], 500, 20),
    (Fault::PowerOfAll, &[Profile::Disk], 200, 4),
    (Fault::DiesInWrite, &[], 0, 20),
    (Fault::Pause, &[Profile::Network], 350, 20),
    (Fault::Partition, &[Profile::Network], 450, 20),
    (Fault::OneWay, &[Profile::Network], 300, 20),
    (Fault::Reset, &[Profile::Network], 400, 20),
    (Fault::SlowDisk, &[Profile::Disk], 350, 20),
    (Fault::SyncFails, &[Profile::Disk], 200, 10),
    (Fault::Full, &[Profile::Disk], 150, 10),
    (Fault::Wipe, &[Profile::Disk, Profile::Membership], 200, 10),
    (Fault::Rot, &[Profile::Disk], 150, 10),
    (Fault::Image, &[], 0, 10),
    (Fault::RollBack, &[Profile::Disk], 150, 20),
    (Fault::Orders, &[Profile::Membership], 400, 0),
    (Fault::Hang, &[Profile::Membership], 150, 10),
    (Fault::SlowApply, &[], 200, 0),
];

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
    pub faults: Vec<Fault>,
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
    /// Segments that a log may have; `None`: any number.
    pub log_segments_max: Option<u64>,
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
        let election_timeout_ms = r.one_of([100, 200, 500, 1000]);
        let election_us = election_timeout_ms * 1000;
        let on = |(_, profiles, per_mille, _): &(Fault, &[Profile], u32, u32)| {
            r.chance(*per_mille) && (profile == Profile::Swarm || profiles.contains(&profile))
        };
        let faults: Vec<Fault> = FAULTS.into_iter().filter(on).map(|(fault, ..)| fault).collect();
        let calm = profile == Profile::Calm;
        let varied = matches!(profile, Profile::Swarm | Profile::Membership) && r.chance(400);
        let zones = if varied { r.one_of([1, 1, 2, 3]) } else { 1 };
        let priorities = varied && r.chance(500);
        let mut rules = draw_rules(r, zones, varied, priorities);
        let modes = Modes::draw(&mut rules, seed, profile, election_timeout_ms);
        let far = if r.chance(250) { election_us / 10 } else { 1_000 };
        let jittery = !calm && r.chance(500);
        let stalls = faults.contains(&Fault::SlowDisk);
        let mut scenario = Scenario {
            seed,
            voters,
            learners: if r.chance(150) { 1 } else { 0 },
            founded: r.chance(100),
            election_timeout_ms,
            drift_ppm: r.one_of([0, 1_000, 50_000, 150_000]),
            chaos_us: election_us * r.range(6, if voters > 5 { 20 } else { 32 }),
            fault_every_us: election_us * r.range(4, 24) / 8,
            latency_us: (50, far),
            jitter_us: if jittery { r.range(100, election_us / 20) } else { 50 },
            spike_per_mille: if jittery { r.range(0, 30) as u32 } else { 0 },
            spike_us: election_us * r.range(1, 3),
            sync_us: (r.range(20, 200), election_us / r.one_of([400, 40, 10, 3])),
            stall_per_mille: if stalls { r.range(1, 60) as u32 } else { 0 },
            stall_us: election_us * r.range(1, 16) / 8,
            clients_per_member: r.range(1, 3) as usize,
            think_us: election_us * 2 / r.one_of([1, 6, 20, 80]),
            proposals_max: r.one_of([12, 80, 160, 240]),
            keys: r.one_of([2, 6, 20, 200]),
            reads_per_mille: r.one_of([0, 50, 200, 500]),
            fragments_per_mille: r.one_of([0, 0, 100, 400]),
            window: r.one_of([4, 16, 64, 256]),
            segment_bytes: r.one_of([16 << 10, 16 << 10, 32 << 10]),
            snapshot_bytes: r.one_of([1 << 10, 4 << 10, 16 << 10, 1 << 20]),
            log_segments_max: Rng::new(mix(seed, 0x4c6f_674d_6178)).one_of([
                None,
                Some(2),
                Some(8),
            ]),
            large_per_mille: r.one_of([0, 0, 2, 20]),
            minority_stays_away: !calm && r.chance(300),
            minority_is_cut_off: Rng::new(mix(seed, 0x4375_744f_6666)).chance(500),
            rules,
            zones,
            priorities,
            loggers_per_mille: if varied { r.one_of([0, 200, 400]) } else { 0 },
            stall_timeouts: r.below(3),
            expels: !calm && r.chance(100),
            allow_alone: !calm && voters == 2 && r.chance(600),
            lease_reads: false,
            modes,
            staff: Staff::default(),
            faults,
        };
        scenario.staff = Staff::draw(&scenario, profile);
        scenario.modes.tell_two_apart(scenario.sync_us.1);
        scenario.draw_leases(profile);
        (scenario, rng)
    }

    /// Drawn apart from the rest, so that other seeds keep their meaning.
    fn draw_leases(&mut self, profile: Profile) {
        let mut rng = Rng::new(mix(self.seed, 0x4c65_6173_6573));
        let possible = matches!(profile, Profile::Swarm | Profile::Network);
        self.lease_reads = rng.chance(150) && possible;
        if self.lease_reads {
            self.drift_ppm = rng.one_of([0, 1_000, 30_000]);
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
                true => rng.one_of([0, 20, 50, 50, 80]),
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

    pub fn may(&self, fault: Fault) -> bool {
        match fault {
            Fault::DiesInWrite => self.may(Fault::Kill) || self.may(Fault::Power),
            Fault::Image => self.may(Fault::RollBack),
            fault => self.faults.contains(&fault),
        }
    }

    /// What may strike by chance, and how often, in proportion.
    pub fn odds(&self) -> Vec<(Fault, u32)> {
        let possible = FAULTS.into_iter().filter(|(fault, ..)| self.may(*fault));
        possible.map(|(fault, .., odds)| (fault, odds)).collect()
    }

    /// Some member may be lost for good.
    pub fn loses_disks(&self) -> bool {
        let lost = |fault: &Fault| matches!(fault, Fault::Wipe | Fault::Rot | Fault::RollBack);
        self.faults.iter().any(lost)
    }

    pub fn election_us(&self) -> Micros {
        self.election_timeout_ms * 1000
    }

    /// As the product's clock: four times in a heartbeat.
    pub fn tick_us(&self) -> Micros {
        (self.election_timeout_ms / 5).max(1) * 1000 / 4
    }

    /// Silence after which a connection counts as dead.
    pub fn silence_us(&self) -> Micros {
        self.election_us() * 2
    }
}

/// `varied`: whose writes count, and whether leadership follows them, is drawn, too; `priorities`: and
/// whether they are forced.
pub fn draw_rules(rng: &mut Rng, zones: u64, varied: bool, priorities: bool) -> Rules {
    let single = varied && rng.chance(400);
    let zones_min = rng.below(zones + 1) as u8;
    let forced = priorities && rng.chance(300);
    Rules {
        zones_min,
        priorities: if forced { PriorityRule::Forced } else { PriorityRule::Optimistic },
        primaries: if single { Primaries::Single } else { Primaries::Multi },
        follows_writes: varied && rng.chance(400),
        ..Rules::default()
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
            assert_eq!(scenario.faults, []);
        }
    }
}
