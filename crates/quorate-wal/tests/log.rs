//! A log through its public handle, on a real directory.

use bytes::Bytes;
use quorate_consensus::{Charter, Entry, EntryKind, HardState, LogPosition, MemberId};
use quorate_wal::{ReadError, Recovered, Wal, WalError, WalOptions};
use std::path::Path;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::time::Duration;

type Reports = Receiver<Result<LogPosition, Arc<WalError>>>;

fn options(dir: &Path) -> WalOptions {
    WalOptions { segment_bytes: 64 << 10, retain_bytes: 0, ..WalOptions::new(dir) }
}

fn open_with(options: WalOptions) -> Result<(Wal, Recovered, Reports), WalError> {
    let (send, receive) = channel();
    let on_sync = Box::new(move |report| {
        // A test that is done listening does not care.
        let _ = send.send(report);
    });
    let (wal, recovered) = Wal::open(options, true, on_sync)?;
    Ok((wal, recovered, receive))
}

fn open(dir: &Path) -> (Wal, Recovered, Reports) {
    open_with(options(dir)).expect("opens")
}

fn entry(term: u64, index: u64) -> Entry {
    let data = Bytes::from(format!("{term}/{index}/").repeat(1 + index as usize % 50));
    let kind = if index % 7 == 0 { EntryKind::View } else { EntryKind::Data };
    Entry::new(index, term, kind, data)
}

fn entries(term: u64, range: std::ops::RangeInclusive<u64>) -> Vec<Entry> {
    range.map(|index| entry(term, index)).collect()
}

fn at(term: u64, index: u64) -> LogPosition {
    LogPosition { term, index }
}

fn wait_for(reports: &Reports, position: LogPosition) {
    loop {
        let report = reports.recv_timeout(Duration::from_secs(20)).expect("a report");
        if report.expect("no failure") == position {
            return;
        }
    }
}

/// Everything after the base, read in pieces.
fn read_all(wal: &Wal) -> Vec<Entry> {
    let mut all = Vec::new();
    while wal.base().index + (all.len() as u64) < wal.last().index {
        let from = wal.base().index + all.len() as u64 + 1;
        wal.read(from, 3000, &mut all).expect("readable");
    }
    all
}

#[test]
fn entries_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (wal, recovered, reports) = open(dir.path());
    assert_eq!((recovered.last, recovered.identity.incarnation), (at(0, 0), 1));
    let mut all = entries(1, 1..=2000);
    wal.append(&all);
    all.extend(entries(2, 2001..=3000));
    wal.append(&all[2000..]);
    assert_eq!(wal.last(), at(2, 3000));
    wait_for(&reports, at(2, 3000));
    assert_eq!(wal.persisted(), at(2, 3000));
    assert_eq!(read_all(&wal), all);
    assert!(wal.stats().segments > 3, "several segments: {:?}", wal.stats());
    wal.close();
    wal.close();

    let (wal, again, _reports) = open(dir.path());
    assert_eq!((again.last, again.base, again.torn_bytes), (at(2, 3000), at(0, 0), 0));
    assert_eq!(again.identity.member, recovered.identity.member);
    assert_eq!(again.identity.incarnation, 2);
    assert_eq!(again.term_runs, vec![(1, 1), (2001, 2)]);
    assert_eq!(again.special.len(), 3000 / 7);
    assert_eq!(read_all(&wal), all);
    assert_eq!((wal.term_at(2000), wal.term_at(2001)), (Some(1), Some(2)));
    assert_eq!((wal.term_at(0), wal.term_at(3001)), (Some(0), None));
}

#[test]
fn old_entries_are_read_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (wal, _, reports) =
        open_with(WalOptions { cache_bytes: 10_000, ..options(dir.path()) }).unwrap();
    let all = entries(1, 1..=3000);
    for some in all.chunks(17) {
        wal.append(some);
    }
    wait_for(&reports, at(1, 3000));
    assert_eq!(read_all(&wal), all);
    let mut one = Vec::new();
    wal.read(1500, 0, &mut one).unwrap();
    assert_eq!(one, all[1499..1500]);
}

/// It does not wait for the next segment to be filled.
#[test]
fn a_log_that_grows_faster_than_its_segments_are_filled_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let options = || WalOptions { segment_bytes: 4 << 20, ..WalOptions::new(dir.path()) };
    let (wal, _, reports) = open_with(options()).unwrap();
    let data = Bytes::from(vec![7; 300 << 10]);
    let all: Vec<_> =
        (1..=100).map(|index| Entry::new(index, 1, EntryKind::Data, data.clone())).collect();
    wal.append(&all);
    wait_for(&reports, at(1, 100));
    wal.close();
    let (wal, again, _reports) = open_with(options()).unwrap();
    assert_eq!((again.last, again.torn_bytes), (at(1, 100), 0));
    assert_eq!(read_all(&wal), all);
}

#[test]
fn truncation_takes_back_and_new_entries_take_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let (wal, _, reports) =
        open_with(WalOptions { cache_bytes: 5_000, ..options(dir.path()) }).unwrap();
    wal.append(&entries(1, 1..=1000));
    wait_for(&reports, at(1, 1000));
    wal.truncate(400);
    assert_eq!((wal.last(), wal.persisted()), (at(1, 399), at(1, 399)));
    wal.append(&entries(3, 400..=600));
    wal.truncate(500);
    wal.append(&entries(4, 500..=501));
    wait_for(&reports, at(4, 501));
    let mut expected = entries(1, 1..=399);
    expected.extend(entries(3, 400..=499));
    expected.extend(entries(4, 500..=501));
    assert_eq!(read_all(&wal), expected);
    wal.close();
    let (wal, recovered, _) = open(dir.path());
    assert_eq!(recovered.last, at(4, 501));
    assert_eq!(recovered.term_runs, vec![(1, 1), (400, 3), (500, 4)]);
    assert_eq!(read_all(&wal), expected);
}

#[test]
fn reset_starts_over_behind_the_base() {
    let dir = tempfile::tempdir().unwrap();
    let (wal, _, reports) = open(dir.path());
    wal.append(&entries(1, 1..=2000));
    wal.reset(at(5, 7000));
    assert_eq!((wal.base(), wal.last()), (at(5, 7000), at(5, 7000)));
    wait_for(&reports, at(5, 7000));
    assert!(matches!(wal.read(7000, 1, &mut Vec::new()), Err(ReadError::Purged { .. })));
    wal.append(&entries(5, 7001..=7010));
    wait_for(&reports, at(5, 7010));
    wal.close();
    let (wal, recovered, _) = open(dir.path());
    assert_eq!((recovered.base, recovered.last), (at(5, 7000), at(5, 7010)));
    assert_eq!(read_all(&wal), entries(5, 7001..=7010));
}

#[test]
fn released_segments_are_recycled() {
    let dir = tempfile::tempdir().unwrap();
    let (wal, _, reports) = open(dir.path());
    let mut last = 0;
    for _ in 0..20 {
        wal.append(&entries(1, last + 1..=last + 1000));
        last += 1000;
        wait_for(&reports, at(1, last));
        let base = wal.release(last - 100, u64::MAX).expect("something to release");
        assert_eq!(base, wal.base());
        assert!(base.index <= last - 100);
        assert!(wal.stats().segments < 4, "{:?}", wal.stats());
    }
    let base = wal.base();
    wal.close();
    assert!(std::fs::read_dir(dir.path()).unwrap().count() < 12, "files are reused");
    let (wal, recovered, _) = open(dir.path());
    assert_eq!((recovered.base, recovered.last), (base, at(1, last)));
    assert_eq!(read_all(&wal), entries(1, base.index + 1..=last));
}

#[test]
fn retention_keeps_bytes_and_age() {
    let dir = tempfile::tempdir().unwrap();
    let keep_bytes = WalOptions { retain_bytes: 200 << 10, ..options(dir.path()) };
    let (wal, _, reports) = open_with(keep_bytes).unwrap();
    wal.append(&entries(1, 1..=5000));
    wait_for(&reports, at(1, 5000));
    wal.release(5000, u64::MAX).expect("more than 200 KiB are there");
    assert!(wal.stats().bytes >= 200 << 10, "{:?}", wal.stats());
    wal.close();
    let hour = Some(Duration::from_secs(3600));
    let (wal, _, _) = open_with(WalOptions { retain_age: hour, ..options(dir.path()) }).unwrap();
    assert_eq!(wal.release(5000, u64::MAX), None);
}

#[test]
fn what_others_have_not_got_stays_up_to_half_of_what_there_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let (wal, _, reports) = open(dir.path());
    wal.append(&entries(1, 1..=5000));
    wait_for(&reports, at(1, 5000));
    let base = wal.release(4000, 1000).expect("what all have");
    assert!((1..=1000).contains(&base.index), "{base:?}");
    assert_eq!(wal.release(4000, 1000), None);
    let bytes = wal.stats().bytes;
    wal.close();
    let limited = WalOptions { retain_max: Some(bytes), ..options(dir.path()) };
    let segment = limited.segment_bytes;
    let (wal, _, _) = open_with(limited).unwrap();
    let base = wal.release(4000, 1000).expect("what is too much");
    assert!((1001..4000).contains(&base.index), "{base:?}");
    assert!(wal.stats().bytes <= bytes / 2 + segment, "{:?}", wal.stats());
}

#[test]
fn an_entry_longer_than_a_segment_gets_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (wal, _, reports) = open(dir.path());
    let mut all = entries(1, 1..=3);
    all.push(Entry::new(4, 1, EntryKind::Data, vec![9; 1 << 20].into()));
    all.extend(entries(1, 5..=6));
    wal.append(&all);
    wait_for(&reports, at(1, 6));
    wal.close();
    let (wal, _, _) = open(dir.path());
    assert_eq!(read_all(&wal), all);
}

#[test]
fn term_vote_and_group_survive() {
    let dir = tempfile::tempdir().unwrap();
    let (wal, recovered, _) = open(dir.path());
    assert_eq!(recovered.hard_state, HardState::default());
    let state = HardState { term: 9, voted_for: Some(MemberId(77)) };
    wal.save_hard_state(state).unwrap();
    wal.save_group(1234, Charter([5; 5])).unwrap();
    wal.close();
    assert!(wal.save_group(1, Charter::default()).is_err(), "closed");
    let (_, recovered, _) = open(dir.path());
    assert_eq!((recovered.hard_state, recovered.identity.group), (state, 1234));
    assert_eq!(recovered.identity.charter, Charter([5; 5]));
}
