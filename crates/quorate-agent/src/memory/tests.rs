//! What counts of what a member said, and for how long.

use super::*;
use crate::verdict::tests::report;

#[test]
fn an_old_report_is_known_as_old_and_counts_for_nothing() {
    let memory = Memory::new(Duration::from_secs(1));
    assert!(memory.known().fresh.is_none() && memory.known().last.is_none());
    memory.answered(report(true, "multi"), Instant::now());
    assert!(memory.known().fresh.is_some());
    memory.not_answered("no answer in time".into(), false);
    assert!(memory.known().fresh.is_some(), "it may be slow");
    memory.not_answered("connection refused".into(), true);
    assert!(memory.known().fresh.is_none(), "it is gone");
    memory.answered(report(true, "multi"), Instant::now());
    assert!(memory.known().fresh.is_some());
    let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(5)) else { return };
    memory.answered(report(true, "multi"), long_ago);
    let known = memory.known();
    assert!(
        known.fresh.is_none(),
        "a question that took so long says how it was when it was asked"
    );
    assert!(known.last.unwrap().1 >= Duration::from_secs(5));
}

#[test]
fn no_verdict_rests_on_what_is_older_than_the_election_timeout() {
    let Some(asked) = Instant::now().checked_sub(Duration::from_millis(700)) else { return };
    let is_fresh = |memory: Memory, timeout_ms| {
        let mut report = report(true, "single");
        report.own.election_timeout_ms = timeout_ms;
        memory.answered(report, asked);
        memory.known().fresh.is_some()
    };
    let memory = || Memory::new(Duration::from_secs(60));
    assert!(is_fresh(memory().within_election_timeout(), None), "it does not say");
    assert!(!is_fresh(memory().within_election_timeout(), Some(500)));
    assert!(is_fresh(memory().within_election_timeout(), Some(50_000)));
    assert!(is_fresh(memory(), Some(500)), "no verdict rests on it");
    let short = Memory::new(Duration::from_millis(600)).within_election_timeout();
    assert!(!is_fresh(short, Some(50_000)), "it may be less");
}

#[test]
fn a_member_is_asked_so_often_that_its_answers_count() {
    let memory = Memory::new(Duration::from_secs(4)).within_election_timeout();
    let (often, seldom) = (Duration::from_millis(100), Duration::from_secs(2));
    assert_eq!((memory.interval(often), memory.interval(seldom)), (often, seldom));
    for (timeout_ms, wanted_ms) in [(1000, 500), (0, 10)] {
        let mut report = report(true, "single");
        report.own.election_timeout_ms = Some(timeout_ms);
        memory.answered(report, Instant::now());
        assert_eq!(memory.interval(seldom), Duration::from_millis(wanted_ms));
    }
}

#[test]
fn silence_is_told_once_and_so_is_its_end() {
    let memory = Memory::new(Duration::from_secs(1));
    memory.not_answered("connection refused".into(), true);
    memory.not_answered("connection refused".into(), true);
    memory.answered(report(true, "multi"), Instant::now());
    let events = memory.events_from(0).0;
    let whats: Vec<&str> = events.iter().map(|event| event.what.as_str()).collect();
    assert_eq!(
        whats,
        ["the member does not answer: connection refused", "the member answers again"]
    );
    let known = memory.known();
    assert_eq!((known.asked, known.unanswered, known.silence), (3, 2, None));
}

#[test]
fn an_election_is_another_leader_or_another_term_and_no_gap_in_between() {
    let memory = Memory::new(Duration::from_secs(1));
    let elections_after = |term, leader: Option<&str>| {
        let leader = leader.map(str::to_owned);
        memory.answered(Report { term, leader, ..report(true, "multi") }, Instant::now());
        memory.known().elections
    };
    assert_eq!(elections_after(4, None), 0);
    assert_eq!(elections_after(4, Some("a")), 0, "elected who knows when");
    assert_eq!(elections_after(4, None), 0);
    assert_eq!(elections_after(4, Some("a")), 0, "the same leader was not heard for a while");
    memory.not_answered("no answer in time".into(), false);
    assert_eq!(elections_after(5, Some("b")), 1);
    assert_eq!(elections_after(6, None), 1, "not won yet");
    assert_eq!(elections_after(7, Some("b")), 2, "elected again");
}

#[test]
fn old_events_make_room() {
    let memory = Memory::new(Duration::from_secs(1));
    for _ in 0..EVENTS_MAX {
        memory.not_answered("gone".into(), true);
        memory.answered(report(true, "multi"), Instant::now());
    }
    assert_eq!(memory.events_from(0).0.len(), EVENTS_MAX);
    let (last, next) = memory.events_from(2 * EVENTS_MAX as u64 - 1);
    assert_eq!((last.len(), next), (1, 2 * EVENTS_MAX as u64));
    assert!(memory.events_from(next).0.is_empty());
}
