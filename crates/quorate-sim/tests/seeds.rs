//! The simulator itself: it replays, it visits every corner, it finds planted bugs by the rule that
//! they break, and what it once found stays fixed.

use quorate_seeds::{sweep, Simulator, Sweep};
use quorate_sim::{Groups, Plant, Profile, Report, Rule};
use std::collections::BTreeMap;
use std::ops::Range;

fn run(seeds: Range<u64>, profile: Profile, plant: Option<Plant>) -> Sweep<Report> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    sweep(&Groups { profile, plant }, seeds, jobs, 1, &|_| {})
}

fn assert_clean(total: &Sweep<Report>) {
    if let Some(report) = total.broken.first() {
        let story = report.trace.join("\n");
        panic!("seed {}: {:?}\n{story}", report.seed, report.violation);
    }
}

#[test]
fn a_seed_replays_exactly() {
    for profile in [Profile::Swarm, Profile::Disk] {
        let groups = Groups { profile, plant: None };
        for seed in 0..8 {
            let (a, b) = (groups.run_seed(seed), groups.run_seed(seed));
            let all = |report: &Report| (report.digest, report.events, report.virtual_us);
            assert_eq!(all(&a), all(&b));
            assert_ne!(a.digest, groups.run_seed(seed + 1000).digest);
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let groups = Groups { profile: Profile::Swarm, plant: None };
    let on = |jobs| sweep(&groups, 100..132, jobs, 1, &|_| {});
    let (one, three) = (on(1), on(3));
    assert_eq!((one.digest, one.figures), (three.digest, three.figures));
}

#[test]
fn every_profile_is_clean_and_every_corner_is_visited() {
    let mut visited = BTreeMap::new();
    let ranges = [
        (Profile::Calm, 20),
        (Profile::Disk, 40),
        (Profile::Network, 40),
        (Profile::Membership, 40),
        (Profile::Swarm, 1_500),
    ];
    for (profile, seeds) in ranges {
        let total = run(0..seeds, profile, None);
        assert_clean(&total);
        for (mark, count) in total.coverage {
            *visited.entry(mark).or_insert(0) += count;
        }
    }
    let never = visited.into_iter().filter(|(_, count)| *count == 0);
    let never: Vec<_> = never.map(|(mark, _)| mark.to_string()).collect();
    assert!(never.is_empty(), "{never:?} never happened");
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

/// The first seed that notices the planted bug does so by one of these rules.
fn assert_found(plant: Plant, seeds_max: u64, rules: &[Rule]) {
    assert_found_in(Profile::Swarm, plant, seeds_max, rules);
}

fn assert_found_in(profile: Profile, plant: Plant, seeds_max: u64, rules: &[Rule]) {
    let total = run(0..seeds_max, profile, Some(plant));
    let report = total.broken.first().unwrap_or_else(|| {
        panic!("{plant:?} was not found in {seeds_max} seeds");
    });
    let violation = report.violation.as_ref().expect("it is broken");
    assert!(rules.contains(&violation.rule), "seed {}: {violation}", report.seed);
    assert!(!report.trace.is_empty(), "a violation comes with its story");
}

#[test]
fn finds_acknowledgement_before_sync() {
    assert_found(Plant::AckBeforeSync, 50, &[Rule::AcknowledgeOnlyPersisted]);
}

#[test]
fn finds_a_term_file_that_is_not_written() {
    assert_found(Plant::TermNotSynced, 50, &[Rule::VoteOnlyPersisted]);
}

#[test]
fn finds_a_start_that_commits_a_superseded_tail() {
    // Or its server waits for ever, beyond what the group has.
    let rules = [Rule::CommittedNeverChanges, Rule::Progress];
    assert_found_in(Profile::Disk, Plant::CommitWithoutTerms, 5000, &rules);
}

#[test]
fn finds_proposals_that_count_twice() {
    assert_found(Plant::ProposedTwice, 50, &[Rule::ExactlyOnce, Rule::AcknowledgedSurvives]);
}

#[test]
fn finds_views_that_members_go_by_differently() {
    assert_found(Plant::ViewOnSomeOnly, 50, &[Rule::SameVerdictsEverywhere]);
}

#[test]
fn finds_an_incomplete_certification_index() {
    assert_found(Plant::PartialIndex, 50, &[Rule::SameVerdictsEverywhere]);
}

#[test]
fn finds_write_sets_of_who_is_not_the_primary() {
    assert_found(Plant::RestampTerm, 100, &[Rule::OnlyThePrimaryWrites]);
}

#[test]
fn finds_entries_that_are_fed_too_early() {
    let rules =
        [Rule::CommitNeedsPersistedMajority, Rule::LogFitsDatabase, Rule::CommittedNeverChanges];
    assert_found(Plant::FedTooEarly, 50, &rules);
}

#[test]
fn finds_inflated_acknowledgements() {
    assert_found(Plant::InflatedReply, 50, &[Rule::CommitNeedsPersistedMajority]);
}

#[test]
fn finds_reads_that_ask_nobody() {
    assert_found(Plant::LocalReads, 50, &[Rule::ReadsNeverStale]);
}

#[test]
fn finds_servers_that_are_said_to_have_applied_more_than_they_have() {
    assert_found(Plant::InflatedStanding, 500, &[Rule::AppliedEverywhere]);
}

#[test]
fn finds_leases_that_last_too_long() {
    assert_found(Plant::LongLease, 3000, &[Rule::ReadsNeverStale]);
}

#[test]
fn finds_a_member_that_forgot_the_single_primary() {
    let rules = [Rule::SameVerdictsEverywhere, Rule::OnlyThePrimaryWrites, Rule::Progress];
    assert_found(Plant::ForgottenMode, 400, &rules);
}

#[test]
fn finds_orders_that_a_member_forgot() {
    assert_found(Plant::ForgottenNotes, 400, &[Rule::SameNotesEverywhere]);
}

#[test]
fn finds_leadership_that_follows_every_write() {
    assert_found(Plant::RestlessFollow, 200, &[Rule::LeadershipRests]);
}

#[test]
fn finds_clients_that_do_not_look_what_became_of_their_write() {
    assert_found(Plant::BlindRetry, 100, &[Rule::ExactlyOnce]);
}

#[test]
fn finds_serials_that_a_rolled_back_member_uses_again() {
    let rules = [Rule::ExactlyOnce, Rule::AcknowledgedSurvives];
    assert_found_in(Profile::Disk, Plant::SerialsFromOne, 2500, &rules);
}

#[test]
fn finds_kin_that_overwrite_what_was_given_up() {
    assert_found(Plant::KinOverwrites, 2000, &[Rule::NoLostUpdate]);
}

#[test]
fn finds_overwritten_entries_that_come_back() {
    assert_found(Plant::ResurrectTruncated, 50, &[Rule::SyncedIsKept]);
}

#[test]
fn finds_two_that_both_go_on_alone() {
    assert_found_in(Profile::Network, Plant::SilenceIsAbsence, 5000, &[Rule::AloneWithAll]);
}

#[test]
fn finds_a_majority_given_up_without_asking_those_kept() {
    assert_found(Plant::AllAgreeToForce, 7000, &[Rule::CommittedNeverChanges]);
}

#[test]
fn finds_a_start_on_a_database_that_is_ahead_of_its_log() {
    assert_found(Plant::UnloggedUnknown, 4000, &[Rule::CommittedNeverChanges]);
}

#[test]
fn finds_a_snapshot_that_is_not_saved() {
    assert_found(Plant::SnapshotNotSaved, 100, &[Rule::AcknowledgeOnlyPersisted]);
}
