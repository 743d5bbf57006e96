//! The simulator itself: it replays, it visits every corner, it finds planted bugs, and what it
//! once found stays fixed.

use quorate_sim::{run_seed, sweep, Plant, Profile, Sweep, SweepOptions};
use std::ops::Range;

fn run(seeds: Range<u64>, profile: Profile, plant: Option<Plant>) -> Sweep {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let options = SweepOptions { seeds, jobs, profile, plant, violations_max: 1 };
    sweep(&options, &|_| {})
}

fn assert_clean(total: &Sweep) {
    if let Some(report) = total.broken.first() {
        let story = report.trace.join("\n");
        panic!("seed {}: {:?}\n{story}", report.seed, report.violation);
    }
}

#[test]
fn a_seed_replays_exactly() {
    for profile in [Profile::Swarm, Profile::Membership] {
        for seed in 0..10 {
            let (a, b) = (run_seed(seed, profile, None), run_seed(seed, profile, None));
            assert_eq!((a.digest, a.events, a.virtual_us), (b.digest, b.events, b.virtual_us));
            assert_ne!(a.digest, run_seed(seed + 1000, profile, None).digest);
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let options = |jobs| SweepOptions {
        seeds: 100..140,
        jobs,
        profile: Profile::Swarm,
        plant: None,
        violations_max: 1,
    };
    let (one, three) = (sweep(&options(1), &|_| {}), sweep(&options(3), &|_| {}));
    assert_eq!((one.digest, one.events), (three.digest, three.events));
}

#[test]
fn every_profile_is_clean_and_every_corner_is_visited() {
    assert_clean(&run(0..20, Profile::Calm, None));
    assert_clean(&run(0..60, Profile::Disk, None));
    assert_clean(&run(0..60, Profile::Network, None));
    assert_clean(&run(0..60, Profile::Membership, None));
    let swarm = run(0..600, Profile::Swarm, None);
    assert_clean(&swarm);
    for (mark, count) in swarm.coverage.iter() {
        assert!(count > 0, "{mark:?} never happened in {} seeds", swarm.seeds);
    }
}

/// Seeds that found something once, one a line: `seed profile # what`.
#[test]
fn what_was_found_stays_fixed() {
    for line in include_str!("regressions.txt").lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let (Some(seed), Some(profile)) = (words.next(), words.next()) else { continue };
        let seed = seed.parse().expect("a seed is a number");
        let profile = <Profile as clap::ValueEnum>::from_str(profile, false).expect("a profile");
        assert_clean(&run(seed..seed + 1, profile, None));
    }
}

fn assert_found(plant: Plant, seeds_max: u64) {
    let total = run(0..seeds_max, Profile::Swarm, Some(plant));
    let report = total.broken.first().unwrap_or_else(|| {
        panic!("{plant:?} was not found in {seeds_max} seeds");
    });
    assert!(!report.trace.is_empty(), "a violation comes with its story");
}

#[test]
fn finds_acknowledgement_before_sync() {
    assert_found(Plant::AckBeforeSync, 100);
}

#[test]
fn finds_votes_before_they_are_persisted() {
    assert_found(Plant::VoteBeforePersist, 100);
}

#[test]
fn finds_resurrected_entries() {
    assert_found(Plant::ResurrectTruncated, 2000);
}

#[test]
fn finds_an_incomplete_certification_index() {
    assert_found(Plant::PartialIndex, 100);
}

#[test]
fn finds_proposals_that_count_twice() {
    assert_found(Plant::ResendNewSerial, 100);
}

#[test]
fn finds_inflated_acknowledgements() {
    assert_found(Plant::InflatedReply, 100);
}

#[test]
fn finds_write_sets_of_a_former_primary_that_pass() {
    assert_found(Plant::RestampTerm, 1000);
}

#[test]
fn finds_a_member_that_forgot_the_single_primary() {
    assert_found(Plant::ForgottenMode, 4000);
}

#[test]
fn finds_leadership_that_follows_who_may_not_lead() {
    assert_found(Plant::FollowAnybody, 1000);
}

#[test]
fn finds_leadership_that_follows_every_write() {
    assert_found(Plant::RestlessFollow, 400);
}

#[test]
fn finds_leases_that_last_too_long() {
    assert_found(Plant::LongLease, 4000);
}
