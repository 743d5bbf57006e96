use super::*;
use crate::rng::Rng;
use crate::types::EntryKind;
use bytes::Bytes;

const PAYLOAD: usize = 8;
const COST: usize = PAYLOAD + ENTRY_OVERHEAD_BYTES;

fn position(index: Index, term: Term) -> LogPosition {
    LogPosition { term, index }
}

fn entry(index: Index, term: Term) -> Entry {
    Entry { index, term, kind: EntryKind::Data, data: Bytes::from(vec![0; PAYLOAD]) }
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

#[test]
fn an_entry_that_came_back_needs_a_later_report() {
    let mut log = log(&[1, 1, 1]);
    log.truncate(2);
    log.append(entry(2, 2));
    log.truncate(2);
    log.append(entry(2, 1));
    log.append(entry(3, 1));
    // From before the first truncation, by the look of it: vouches for what lies before both.
    assert!(log.mark_persisted(position(3, 1)));
    assert_eq!(log.persisted(), 1);
    log.append(entry(4, 3));
    assert!(log.mark_persisted(position(4, 3)));
    assert_eq!(log.persisted(), 4);
    assert!(log.removed.is_empty());
}

#[test]
fn many_cuts_are_merged_and_still_doubted() {
    let mut log = log(&[1, 1]);
    for term in 2..200 {
        log.truncate(2);
        log.append(entry(2, term));
    }
    assert!(log.removed.len() <= REMOVED_MAX);
    // The merged record doubts every term, so only something beyond it is believed.
    log.mark_persisted(position(2, 199));
    log.append(entry(3, 199));
    assert!(log.mark_persisted(position(3, 199)));
    assert_eq!(log.persisted(), 3);
}

/// Against a disk that writes in order, reports late and in order: what the log counts as
/// persisted must be on that disk.
#[test]
fn persisted_never_runs_ahead_of_a_disk_that_lags() {
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let mut log = log(&[]);
        let mut written: Vec<Vec<LogPosition>> = Vec::new(); // the whole log after each write
        let mut reports: VecDeque<usize> = VecDeque::new();
        let (mut synced, mut term) = (0, 1);
        for _ in 0..60 {
            match rng.between(0, 10) {
                0..=3 => {
                    // A leader of a new term, with its own idea of the log, from a small pool of
                    // terms, so that entries come back.
                    let from = log.persisted().min(log.last().index) + 1;
                    let from = rng.between(from, log.last().index + 2);
                    log.truncate(from);
                    let low = log.last().term.max(1);
                    term = term.max(low);
                    for index in from..from + rng.between(0, 3) {
                        log.append(entry(index, rng.between(log.last().term.max(1), term + 1)));
                    }
                    term = (term + rng.between(0, 2)).min(4);
                    let all = 1..=log.last().index;
                    written.push(all.filter_map(|index| log.position(index)).collect());
                }
                4..=6 => {
                    let target = rng.between(synced as u64, written.len() as u64 + 1) as usize;
                    if target > synced {
                        synced = target;
                        reports.push_back(synced);
                    }
                }
                _ => {
                    if let Some(report) = reports.pop_front() {
                        if let Some(last) = written[report - 1].last() {
                            log.mark_persisted(*last);
                        }
                    }
                }
            }
            let disk = if synced == 0 { &[][..] } else { &written[synced - 1][..] };
            for index in 1..=log.persisted() {
                let held = disk.get(index as usize - 1).copied();
                assert_eq!(held, log.position(index), "seed {seed}, index {index}");
            }
        }
    }
}
