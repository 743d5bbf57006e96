use super::*;
use crate::types::EntryKind;
use bytes::Bytes;

const PAYLOAD: usize = 8;
const COST: usize = PAYLOAD + ENTRY_OVERHEAD_BYTES;

fn position(index: Index, term: Term) -> LogPosition {
    LogPosition { term, index }
}

fn entry(index: Index, term: Term) -> Entry {
    Entry::new(index, term, EntryKind::Data, Bytes::from(vec![0; PAYLOAD]))
}

/// A log with entries of these terms from index 1 on.
fn log(terms: &[Term]) -> Log {
    let mut log = Log::new(LogPosition::default(), LogPosition::default(), &[], 1 << 20);
    terms.iter().zip(1..).for_each(|(term, index)| log.append(entry(index, *term)));
    log
}

#[test]
fn terms_are_known_from_the_base_to_the_end() {
    let mut log = log(&[1, 1, 3, 3, 4]);
    let known = |log: &Log| (0..=6).map(|i| log.term_at(i)).collect::<Vec<_>>();
    assert_eq!(known(&log), [Some(0), Some(1), Some(1), Some(3), Some(3), Some(4), None]);
    log.mark_persisted(position(5, 4));
    log.compact(position(3, 3));
    assert_eq!(known(&log), [None, None, None, Some(3), Some(3), Some(4), None]);
    log.compact(position(5, 4));
    assert_eq!(known(&log), [None, None, None, None, None, Some(4), None]);
    log.append(entry(6, 4));
    assert_eq!(log.term_at(6), Some(4));
}

#[test]
fn a_recovered_log_knows_terms_but_no_bodies() {
    let log = Log::new(position(10, 2), position(15, 5), &[(11, 2), (13, 5)], 1 << 20);
    assert_eq!((log.term_at(12), log.term_at(13), log.persisted()), (Some(2), Some(5), 15));
    assert_eq!(log.recent_first(), 16);
    assert!(log.recent_from(11, 1000).0.is_empty());
}

#[test]
fn the_search_for_agreement_skips_whole_terms() {
    let log = log(&[1, 1, 3, 3, 5]);
    let agree = |index, term| log.last_at_or_below(position(index, term)).index;
    assert_eq!(agree(9, 9), 5);
    assert_eq!(agree(5, 4), 4);
    assert_eq!(agree(4, 2), 2);
    assert_eq!(agree(1, 3), 1);
    assert_eq!(agree(3, 0), 0);
}

#[test]
fn only_persisted_bodies_leave_memory() {
    let mut log = log(&[]);
    log.recent_bytes_max = 3 * COST;
    (1..=5).for_each(|index| log.append(entry(index, 1)));
    assert_eq!(log.recent_first(), 1);
    log.mark_persisted(position(4, 1));
    assert_eq!(log.recent_first(), 3);
}

#[test]
fn a_message_takes_at_least_one_entry() {
    let log = log(&[1, 1, 1, 1]);
    let lengths = |bytes_max| {
        let (entries, bytes) = log.recent_from(2, bytes_max);
        (entries.first().map(|e| e.index), entries.len(), bytes)
    };
    assert_eq!(lengths(0), (Some(2), 1, COST));
    assert_eq!(lengths(2 * COST), (Some(2), 2, 2 * COST));
    assert_eq!(lengths(9 * COST), (Some(2), 3, 3 * COST));
    assert_eq!(log.recent_from(5, 100), (Vec::new(), 0));
}

#[test]
fn reports_of_entries_that_are_gone_count_for_nothing() {
    let mut log = log(&[1, 1, 1]);
    log.truncate(2);
    log.append(entry(2, 2));
    assert!(!log.mark_persisted(position(3, 1)));
    assert!(!log.mark_persisted(position(2, 1)));
    assert!(log.mark_persisted(position(2, 2)));
    assert_eq!(log.persisted(), 2);
}

/// What counts truncations needs no doubt: a rewrite is persisted when its own sync is reported.
#[test]
fn an_entry_that_came_back_is_believed_like_any_other() {
    let mut log = log(&[1, 1, 1]);
    assert!(log.mark_persisted(position(3, 1)));
    log.truncate(2);
    assert_eq!(log.persisted(), 1);
    log.append(entry(2, 2));
    log.truncate(2);
    log.append(entry(2, 1));
    log.append(entry(3, 1));
    assert!(!log.mark_persisted(position(1, 1)), "the late report of the first sync");
    assert!(log.mark_persisted(position(3, 1)));
    assert_eq!(log.persisted(), 3);
    log.reset(position(9, 2));
    assert!(!log.mark_persisted(position(0, 0)), "while the reset is under way");
    assert_eq!(log.persisted(), 9);
}

#[test]
fn what_is_not_on_disk_is_counted_in_entries_and_bytes() {
    let mut log = log(&[1, 1, 1, 1]);
    let ends = |log: &Log| {
        [(9, 9 * COST), (2, 9 * COST), (9, 2 * COST + 1), (9, 0), (0, 0)]
            .map(|(entries, bytes)| log.unsynced_end(entries, bytes))
    };
    assert_eq!(ends(&log), [4, 2, 2, 1, 0]);
    log.mark_persisted(position(2, 1));
    assert_eq!(ends(&log), [4, 4, 4, 3, 2]);
    log.truncate(4);
    assert_eq!(log.unsynced_end(9, COST), 3, "one is left");
    log.truncate(2);
    log.append(entry(2, 2));
    assert_eq!(ends(&log), [2, 2, 2, 2, 1]);
    log.reset(position(9, 2));
    log.append(entry(10, 2));
    assert_eq!(ends(&log), [10, 10, 10, 10, 9]);
}
