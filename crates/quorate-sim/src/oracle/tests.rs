use super::*;
use bytes::Bytes;
use quorate_consensus::{EntryKind, HardState};

const A: MemberId = MemberId(1 << 96);
const B: MemberId = MemberId(2 << 96);

fn entry(index: Index, term: Term, data: &'static str) -> Entry {
    Entry::new(index, term, EntryKind::Data, Bytes::from_static(data.as_bytes()))
}

fn broken(oracle: &mut Oracle) -> Option<Rule> {
    oracle.take_violation().map(|v| v.rule)
}

#[test]
fn two_leaders_in_a_term() {
    let mut oracle = Oracle::default();
    oracle.elected(A, 2, 0, |_| None);
    oracle.elected(A, 2, 0, |_| None);
    assert_eq!(broken(&mut oracle), None);
    oracle.elected(B, 2, 0, |_| None);
    assert_eq!(broken(&mut oracle), Some(Rule::OneLeaderPerTerm));
}

#[test]
fn logs_that_do_not_match() {
    let mut oracle = Oracle::default();
    oracle.appended(A, &entry(1, 1, "x"), 0, true);
    oracle.appended(B, &entry(1, 1, "x"), 0, false);
    oracle.appended(B, &entry(1, 2, "y"), 0, true);
    assert_eq!(broken(&mut oracle), None, "two terms may differ");
    oracle.appended(B, &entry(1, 1, "z"), 0, false);
    assert_eq!(broken(&mut oracle), Some(Rule::LogMatching), "other content");
    oracle.appended(A, &entry(2, 2, "x"), 2, true);
    oracle.appended(B, &entry(2, 2, "x"), 1, false);
    assert_eq!(broken(&mut oracle), Some(Rule::LogMatching), "other predecessor");
    oracle.appended(B, &entry(3, 2, "x"), 2, false);
    assert_eq!(broken(&mut oracle), Some(Rule::LogMatching), "out of nowhere");
}

/// Entries of one term, made by its leader and fed to it.
fn fed(
    oracle: &mut Oracle,
    leader: MemberId,
    term: Term,
    indexes: std::ops::RangeInclusive<Index>,
) {
    for index in indexes {
        let prev = oracle.committed_term(index - 1).unwrap_or_default();
        oracle.appended(leader, &entry(index, term, "x"), prev, true);
        assert!(oracle.committing(leader, &entry(index, term, "x"), term));
    }
}

#[test]
fn a_leader_without_a_committed_entry() {
    let mut oracle = Oracle::default();
    let term = |_| Some(1);
    fed(&mut oracle, A, 1, 1..=2);
    oracle.elected(B, 3, 2, term);
    assert_eq!(broken(&mut oracle), None);
    oracle.elected(B, 4, 1, term);
    assert_eq!(broken(&mut oracle), Some(Rule::LeaderCompleteness));
    fed(&mut oracle, A, 6, 3..=3);
    oracle.elected(B, 5, 2, term);
    assert_eq!(broken(&mut oracle), None, "it cannot know what a later term committed");
}

#[test]
fn commits_that_change_or_come_from_nowhere() {
    let mut oracle = Oracle::default();
    fed(&mut oracle, A, 1, 1..=1);
    assert_eq!(broken(&mut oracle), None);
    oracle.appended(B, &entry(1, 2, "y"), 0, true);
    oracle.committing(B, &entry(1, 2, "y"), 2);
    assert_eq!(broken(&mut oracle), Some(Rule::CommittedNeverChanges));
    oracle.committing(B, &entry(3, 2, "y"), 2);
    assert_eq!(broken(&mut oracle), Some(Rule::CommittedNeverChanges), "a gap");
    oracle.committing(B, &entry(2, 2, "y"), 2);
    assert_eq!(broken(&mut oracle), Some(Rule::LogMatching), "no leader made it");
    oracle.hard_state(B, HardState { term: 2, voted_for: None });
    oracle.hard_state_saved(B);
    oracle.truncated(B, LogPosition { term: 1, index: 1 });
    assert_eq!(broken(&mut oracle), Some(Rule::CommittedNeverChanges));
    oracle.appended(A, &entry(3, 2, "x"), 2, true);
    assert!(oracle.committing(A, &entry(3, 2, "x"), 5));
    oracle.truncated(B, LogPosition { term: 2, index: 3 });
    assert_eq!(broken(&mut oracle), None, "the leader of term 2 cannot know what term 5 committed");
}

#[test]
fn votes_and_terms() {
    let mut oracle = Oracle::default();
    oracle.voted(A, 1, A);
    oracle.voted(A, 1, A);
    oracle.voted(A, 2, B);
    assert_eq!(broken(&mut oracle), None);
    oracle.voted(A, 2, A);
    assert_eq!(broken(&mut oracle), Some(Rule::OneVotePerTerm));
    oracle.spoke(B, 5);
    oracle.spoke(B, 4);
    assert_eq!(broken(&mut oracle), Some(Rule::TermNeverGoesBack));
    oracle.hard_state(B, HardState { term: 5, voted_for: None });
    oracle.hard_state(B, HardState { term: 5, voted_for: Some(A) });
    assert_eq!(broken(&mut oracle), None);
    oracle.hard_state(B, HardState { term: 5, voted_for: Some(B) });
    assert_eq!(broken(&mut oracle), Some(Rule::TermNeverGoesBack));
}

#[test]
fn what_is_lost_by_force_may_be_otherwise_and_nothing_before_it() {
    let mut oracle = Oracle::default();
    fed(&mut oracle, A, 1, 1..=4);
    (0..=4).for_each(|index| oracle.state(A, index, index));
    oracle.forced(2);
    assert_eq!(oracle.commit(), 2);
    fed(&mut oracle, B, 9, 3..=3);
    oracle.state(B, 3, 33);
    oracle.elected(B, 9, 3, |index| Some(if index < 3 { 1 } else { 9 }));
    assert_eq!(broken(&mut oracle), None);
    oracle.state(B, 2, 22);
    assert_eq!(broken(&mut oracle), Some(Rule::SameVerdictsEverywhere));
}

#[test]
fn states_that_differ() {
    let mut oracle = Oracle::default();
    oracle.state(A, 0, 10);
    oracle.state(A, 1, 11);
    oracle.state(B, 1, 11);
    assert_eq!(broken(&mut oracle), None);
    oracle.state(B, 0, 12);
    assert_eq!(broken(&mut oracle), Some(Rule::SameVerdictsEverywhere));
}

/// A writes in term 2 as its leader; B leads term 3 from index 3 on.
fn with_two_primaries() -> (Oracle, u32) {
    let mut oracle = Oracle::default();
    oracle.elected(A, 2, 0, |_| None);
    fed(&mut oracle, A, 2, 1..=2);
    oracle.elected(B, 3, 2, |_| Some(2));
    fed(&mut oracle, B, 3, 3..=4);
    let op = oracle.new_op(A, 2);
    (oracle, op)
}

#[test]
fn a_former_primary_passes_no_more() {
    let (mut oracle, op) = with_two_primaries();
    assert!(oracle.primacy(op, 2, Outcome::Ok, true));
    assert!(!oracle.primacy(op, 3, Outcome::NotPrimary, true));
    assert!(!oracle.primacy(op, 3, Outcome::Ok, false), "everybody may write there");
    assert_eq!(broken(&mut oracle), None);
    oracle.primacy(op, 3, Outcome::Ok, true);
    assert_eq!(broken(&mut oracle), Some(Rule::OnlyThePrimaryWrites));
}

#[test]
fn a_primary_is_not_refused_and_nobody_is_without_a_single_one() {
    let (mut oracle, op) = with_two_primaries();
    oracle.primacy(op, 2, Outcome::NotPrimary, true);
    assert_eq!(broken(&mut oracle), Some(Rule::OnlyThePrimaryWrites));
    oracle.primacy(op, 3, Outcome::NotPrimary, false);
    assert_eq!(broken(&mut oracle), Some(Rule::OnlyThePrimaryWrites));
}

#[test]
fn primaries_take_turns() {
    let (mut oracle, op) = with_two_primaries();
    let next = oracle.new_op(B, 3);
    assert!(oracle.primacy(next, 3, Outcome::Ok, true));
    // As if entry 2 came after entry 3.
    oracle.primacy(op, 2, Outcome::Ok, true);
    assert_eq!(broken(&mut oracle), Some(Rule::OnlyThePrimaryWrites));
}
