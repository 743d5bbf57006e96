//! What a seed stands for: how many members, how fast, which faults are on.
//!
//! Each run turns on only some of the faults ("swarm testing"): a run with everything at once
//! rarely gets far enough into any one story.

use crate::modes::Modes;
use crate::net::NetProfile;
use crate::rng::{mix, Rng};
use crate::schedule::Micros;
use crate::staff::Staff;
use clap::ValueEnum;

/// Which part of the faults seeds may choose from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Profile {
    /// Every kind of fault, a different selection for each seed.
    Swarm,
    /// No faults at all: the cost and progress of ordinary work.
    Calm,
    /// Crashes, torn batches, stalls, failing syncs, lost disks.
    Disk,
    /// Loss, delay, duplication, reordering, partitions, pauses.
    Network,
    /// Membership changes, hand-overs, snapshots, with crashes.
    Membership,
}

/// The faults that may happen in one run.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub crash: bool,
    pub pause: bool,
    pub partition: bool,
    pub one_way: bool,
    pub flap: bool,
    pub clog: bool,
    pub disk_stall: bool,
    pub sync_failure: bool,
    pub wipe: bool,
    pub membership: bool,
    pub transfer: bool,
    pub compaction: bool,
    pub false_alarms: bool,
    pub slow_apply: bool,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub voters: usize,
    pub learners: usize,
    pub election_timeout_ms: u64,
    pub clock_drift_ms: u64,
    pub lease_reads: bool,
    pub append_bytes_max: usize,
    pub inflight_bytes_max: usize,
    pub inflight_messages_max: usize,
    pub recent_bytes_max: usize,
    /// Faults stop after this much virtual time.
    pub chaos_us: Micros,
    /// Mean time between two faults.
    pub fault_every_us: Micros,
    /// How often, in a thousand, a fault follows at once when something delicate happened: an
    /// election, a membership change, a log cut off.
    pub provoked_per_mille: u32,
    pub net: NetProfile,
    pub sync_us: (Micros, Micros),
    /// Syncs in a thousand that take up to `stall_us`.
    pub stall_per_mille: u32,
    pub stall_us: Micros,
    /// A member carries out what it wants up to this long after it decided; 0: at each step.
    pub batch_us: Micros,
    /// Wake-ups of the core that come late after a sync, in a thousand.
    pub late_notice_per_mille: u32,
    pub faults: Faults,
    pub clients_per_member: usize,
    pub think_us: Micros,
    /// Write sets proposed in the whole run before the faults stop.
    pub proposals_max: u32,
    pub keys: u64,
    /// Reads among the clients' operations, in a thousand.
    pub reads_per_mille: u32,
    /// Write sets the certification index keeps.
    pub window: usize,
    /// Entries applied between two snapshots of a member.
    pub snapshot_every: u64,
    /// A member applies only what its own disk has, as well as a majority.
    pub applies_own_persisted: bool,
    /// Forwarded proposals may be lost, doubled and overtaken one by one.
    pub loose_forwarding: bool,
    /// Whether a member records its commit index beside the log.
    pub records_commit: bool,
    /// The first membership is an entry of the log instead of its base. Always so in a group of some
    /// mode, as in live ones: whoever begins with an empty log has to find the mode in it.
    pub config_in_log: bool,
    /// After the faults a minority stays away while the others must make progress.
    pub minority_stays_away: bool,
    /// In the end some links break for good, and the group must work all the same.
    pub lame: bool,
    /// One of two whose other one's process is gone goes on alone.
    pub alone: bool,
    pub staff: Staff,
    pub modes: Modes,
}

impl Scenario {
    pub fn new(seed: u64, profile: Profile) -> (Self, Rng) {
        let mut rng = Rng::new(seed);
        let r = &mut rng;
        let voters =
            r.weighted(&[(1, 4), (2, 8), (3, 44), (4, 10), (5, 24), (6, 4), (7, 6)]).unwrap_or(3);
        let election_timeout_ms = *r.pick(&[100, 200, 500, 1000]).unwrap_or(&200);
        let election_us = election_timeout_ms * 1000;
        let faults = Faults::draw(r, profile);
        let calm = profile == Profile::Calm;
        let lossy = !calm && profile != Profile::Disk;
        let small = r.chance(500);
        let modes = Modes::draw(seed, profile, election_timeout_ms);
        let scenario = Scenario {
            seed,
            voters,
            learners: if r.chance(150) { 1 } else { 0 },
            election_timeout_ms,
            clock_drift_ms: *r
                .pick(&[1, election_timeout_ms / 20, election_timeout_ms / 8])
                .unwrap_or(&1),
            lease_reads: r.chance(500),
            append_bytes_max: if small { r.range(64, 600) } else { r.range(600, 16_384) } as usize,
            inflight_bytes_max: if small { r.range(200, 2_000) } else { 65_536 } as usize,
            inflight_messages_max: if small { r.range(1, 8) } else { 64 } as usize,
            recent_bytes_max: if r.chance(500) { r.range(0, 2_000) } else { 65_536 } as usize,
            chaos_us: election_us * r.range(6, if voters > 5 { 20 } else { 32 }),
            fault_every_us: election_us * r.range(4, 24) / 8,
            provoked_per_mille: *r.pick(&[0, 100, 400]).unwrap_or(&0),
            net: net_profile(r, election_us, lossy),
            sync_us: (r.range(20, 200), election_us / r.pick(&[400, 40, 10, 3]).unwrap_or(&40)),
            stall_per_mille: if faults.disk_stall { r.range(1, 60) as u32 } else { 0 },
            stall_us: election_us * r.range(1, 16) / 8,
            late_notice_per_mille: *r.pick(&[0, 0, 10, 200]).unwrap_or(&0),
            batch_us: if r.chance(400) { r.range(2, 2_000) } else { 0 },
            clients_per_member: r.range(1, 3) as usize,
            think_us: election_us * 2 / r.pick(&[1, 6, 20, 80]).unwrap_or(&16),
            proposals_max: *r.pick(&[12, 80, 160, 240]).unwrap_or(&160),
            keys: *r.pick(&[2, 6, 20, 200]).unwrap_or(&20),
            reads_per_mille: *r.pick(&[0, 50, 200, 500]).unwrap_or(&200),
            window: *r.pick(&[4, 16, 64, 256]).unwrap_or(&64),
            snapshot_every: if faults.compaction { r.range(5, 60) } else { u64::MAX },
            applies_own_persisted: r.chance(500),
            loose_forwarding: r.chance(400),
            records_commit: r.chance(500),
            config_in_log: r.chance(300) || modes.on,
            minority_stays_away: !calm && r.chance(300),
            lame: lossy && Rng::new(mix(seed, 0x006c_616d_6521)).chance(200),
            alone: !calm && voters < 4 && Rng::new(mix(seed, 0x0061_6c6f_6e65)).chance(600),
            staff: Staff::draw(seed, profile),
            modes,
            faults,
        };
        (scenario, rng)
    }

    pub fn election_us(&self) -> Micros {
        self.election_timeout_ms * 1000
    }

    pub fn heartbeat_ms(&self) -> u64 {
        self.election_timeout_ms / 5
    }

    pub fn tick_us(&self) -> Micros {
        self.heartbeat_ms() * 1000 / 4
    }
}

impl Faults {
    fn draw(rng: &mut Rng, profile: Profile) -> Self {
        let all = profile == Profile::Swarm;
        let disk = all || profile == Profile::Disk;
        let network = all || profile == Profile::Network;
        let membership = all || profile == Profile::Membership;
        let mut on = |possible: bool, per_mille: u32| rng.chance(per_mille) && possible;
        Faults {
            crash: on(disk || membership, 700),
            pause: on(network, 350),
            partition: on(network, 450),
            one_way: on(network, 300),
            flap: on(network, 150),
            clog: on(network, 300),
            disk_stall: on(disk, 350),
            sync_failure: on(disk, 200),
            wipe: on(disk || membership, 200),
            membership: on(membership, 350),
            transfer: on(network || membership, 300),
            compaction: on(disk || membership, 450),
            false_alarms: on(network, 200),
            slow_apply: on(all, 200),
        }
    }
}

fn net_profile(rng: &mut Rng, election_us: Micros, lossy: bool) -> NetProfile {
    let wide = rng.chance(250);
    let far = if wide { election_us / 10 } else { 1_000 };
    let in_order = rng.chance(400);
    let lossy = lossy && rng.chance(500);
    let jittery = lossy || rng.chance(400);
    NetProfile {
        latency_us: (50, far),
        jitter_us: if jittery { rng.range(100, election_us / 20) } else { 50 },
        spike_per_mille: if jittery { rng.range(0, 30) as u32 } else { 0 },
        spike_us: election_us * rng.range(1, 3),
        drop_per_mille: if lossy { *rng.pick(&[1, 10, 50, 150]).unwrap_or(&10) } else { 0 },
        duplicate_per_mille: if lossy && !in_order { rng.range(0, 60) as u32 } else { 0 },
        in_order,
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
            assert_eq!(scenario.net.drop_per_mille, 0);
        }
    }
}
