//! The threads of a running log: failure is reported once, readers and truncations do not mix.

use crate::disk::sim::{Crash, Faults, SimDisk};
use crate::disk::Disk;
use crate::error::{ReadError, WalError};
use crate::options::{Room, WalOptions};
use crate::shared::Shared;
use crate::wal::Wal;
use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind, HardState, LogPosition};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::time::Duration;

type Report = Result<LogPosition, Arc<WalError>>;

fn start(disk: &Arc<SimDisk>) -> (Wal, Receiver<Report>) {
    let options = WalOptions {
        segment_bytes: 16 << 10,
        cache_bytes: 8 << 10,
        retain_bytes: 0,
        ..WalOptions::new("/sim")
    };
    let (shared, writer, _) = Shared::open(disk.clone(), options, true).unwrap();
    let (send, reports) = channel();
    // A test that is done listening does not care.
    let on_sync = Box::new(move |report| drop(send.send(report)));
    (Wal::start(shared, writer, on_sync, None).unwrap(), reports)
}

fn entry(term: u64, index: u64) -> Entry {
    let data = Bytes::from(format!("{term} {index} ").repeat(1 + index as usize % 90));
    Entry::new(index, term, EntryKind::Data, data)
}

fn next(reports: &Receiver<Report>) -> Option<Report> {
    reports.recv_timeout(Duration::from_secs(20)).ok()
}

#[test]
fn a_failed_sync_is_reported_once_and_readers_are_still_served() {
    let disk = Arc::new(SimDisk::new(7));
    let (wal, reports) = start(&disk);
    wal.append(&[entry(1, 1)]);
    assert_eq!(next(&reports).unwrap().unwrap().index, 1);
    disk.inject(Faults { sync_fails_after: Some(0), ..Faults::default() });
    wal.append(&[entry(1, 2)]);
    let error = next(&reports).unwrap().unwrap_err();
    assert!(error.to_string().starts_with("the log in /sim failed for good"), "{error}");
    wal.append(&[entry(1, 3)]);
    wal.truncate(1);
    assert_eq!((wal.last().index, wal.persisted().index), (2, 1));
    let mut read = Vec::new();
    wal.read(1, 1 << 20, &mut read).unwrap();
    assert_eq!(read, [entry(1, 1), entry(1, 2)]);
    assert!(wal.save_hard_state(HardState { term: 9, voted_for: None }).is_err());
    wal.close();
    assert!(reports.recv().is_err(), "one report of the failure, and no more");
}

/// Only what was closed in order says that nothing can be missing.
#[test]
fn a_log_knows_whether_it_was_closed() {
    let disk = Arc::new(SimDisk::new(7));
    let (wal, reports) = start(&disk);
    wal.append(&[entry(1, 1)]);
    next(&reports).unwrap().unwrap();
    let closed = |disk: SimDisk| {
        Shared::open(Arc::new(disk), WalOptions::new("/sim"), false).unwrap().2.closed
    };
    wal.save_synced().unwrap();
    assert!(!closed(disk.crash(Crash::Kill)));
    let disk = Arc::new(disk.crash(Crash::Power));
    let (wal, _reports) = start(&disk);
    wal.close();
    assert!(closed(disk.crash(Crash::Power)));
}

#[test]
fn a_vote_that_can_not_be_saved_fails_the_log() {
    let disk = Arc::new(SimDisk::new(7));
    let (wal, reports) = start(&disk);
    wal.append(&[entry(1, 1)]);
    next(&reports).unwrap().unwrap();
    disk.inject(Faults { sync_fails_after: Some(1), ..Faults::default() });
    while wal.save_hard_state(HardState { term: 9, voted_for: None }).is_ok() {}
    assert!(next(&reports).unwrap().is_err());
    wal.close();
    assert!(reports.recv().is_err());
}

#[test]
fn an_entry_out_of_order_fails_the_log_instead_of_making_a_hole() {
    let disk = Arc::new(SimDisk::new(7));
    let (wal, reports) = start(&disk);
    wal.append(&[entry(1, 2)]);
    let error = next(&reports).unwrap().unwrap_err();
    assert!(error.to_string().contains("bug"), "{error}");
}

#[test]
fn an_entry_altered_in_memory_is_not_written() {
    for bit in 0..8 * entry(1, 2).data.len() {
        let disk = Arc::new(SimDisk::new(7));
        let (wal, reports) = start(&disk);
        let mut data = entry(1, 2).data.to_vec();
        data[bit / 8] ^= 1 << (bit % 8);
        wal.append(&[entry(1, 1), Entry { data: data.into(), ..entry(1, 2) }, entry(1, 3)]);
        let error = next(&reports).unwrap().unwrap_err();
        assert!(error.to_string().contains("log index 2"), "{error}");
        drop(wal);
        let (wal, _reports) = start(&Arc::new(disk.crash(Crash::Kill)));
        assert!(wal.last().index < 2, "{:?}", wal.last());
    }
}

/// It uses what it has, says so, waits, and goes on by itself.
#[test]
fn a_full_disk_blocks_the_log_and_no_more() {
    let disk = Arc::new(SimDisk::new(7));
    let (wal, reports) = start(&disk);
    let count =
        |prefix: &str| disk.list().unwrap().iter().filter(|n| n.starts_with(prefix)).count();
    while count("log-") < 2 || count("spare-") < 2 {
        std::thread::yield_now();
    }
    disk.inject(Faults { capacity: Some(0), ..Faults::default() });
    let mut index = 0;
    while wal.room() != Room::Blocked {
        index += 1;
        wal.append(&[entry(1, index)]);
        while wal.persisted().index < index && wal.room() != Room::Blocked {
            std::thread::yield_now();
        }
    }
    assert_eq!(wal.stats().segments, 4, "the prepared one and the reserve were used");
    let warning = wal.stats().warning.unwrap();
    assert!(warning.contains("no space") && warning.contains("goes on by itself"), "{warning}");
    while let Ok(report) = reports.try_recv() {
        assert!(report.unwrap().index < index);
    }
    wal.append(&[entry(1, index + 1)]);
    disk.inject(Faults::default());
    let last = loop {
        let position = next(&reports).expect("it tries again by itself").unwrap();
        if position.index == index + 1 {
            break position;
        }
    };
    assert_eq!((wal.persisted(), wal.room()), (last, Room::Enough));
    assert_eq!(wal.stats().warning, None);
}

#[test]
fn a_log_without_room_can_be_closed() {
    let disk = Arc::new(SimDisk::new(7));
    let (wal, _reports) = start(&disk);
    disk.inject(Faults { capacity: Some(0), ..Faults::default() });
    let mut index = 0;
    while wal.room() != Room::Blocked {
        index += 1;
        wal.append(&[entry(1, index)]);
    }
    let persisted = wal.persisted().index;
    wal.close();
    let (_, _, recovered) =
        Shared::open(Arc::new(disk.crash(Crash::Power)), WalOptions::new("/sim"), false).unwrap();
    assert!(recovered.closed && recovered.last.index >= persisted);
}

/// A bug on the writer's thread, or on the one that prepares segments: it is reported, final, and
/// costs whoever closes the log nothing.
#[test]
fn a_panic_on_a_thread_of_the_log_is_a_failure_that_is_reported() {
    for operations in 0..40 {
        let disk = Arc::new(SimDisk::new(operations));
        let (wal, reports) = start(&disk);
        disk.inject(Faults { panics_after: Some(operations), ..Faults::default() });
        let mut index = 0;
        let error = loop {
            index += 1;
            wal.append(&[entry(1, index)]);
            if let Some(Err(error)) = next(&reports) {
                break error;
            }
        };
        assert!(error.to_string().contains("an injected bug"), "{error}");
        let persisted = wal.persisted();
        wal.append(&[entry(1, index + 1)]);
        assert!(wal.save_hard_state(HardState { term: 9, voted_for: None }).is_err());
        assert_eq!(wal.persisted(), persisted);
        wal.close();
        assert!(reports.recv().is_err(), "one report of the failure, and no more");
    }
}

/// Nor is a receiver that panics left without the report.
#[test]
fn a_panic_in_the_receiver_is_reported_to_it() {
    let disk = Arc::new(SimDisk::new(7));
    let (shared, writer, _) = Shared::open(disk, WalOptions::new("/sim"), true).unwrap();
    let (send, reports) = channel();
    let on_sync = Box::new(move |report: Report| match report {
        Ok(_) => panic!("a bug of the receiver"),
        Err(error) => drop(send.send(error)),
    });
    let wal = Wal::start(shared, writer, on_sync, None).unwrap();
    wal.append(&[entry(1, 1)]);
    let error = reports.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(error.to_string().contains("a bug of the receiver"), "{error}");
    wal.close();
}

/// While the log is extended, cut and purged, a reader finds only what was once appended, in
/// order.
#[test]
fn readers_meet_no_half_truth() {
    let disk = Arc::new(SimDisk::new(7));
    let (wal, reports) = start(&disk);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (wal, done) = (wal.clone(), &done);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                while !done.load(Ordering::Relaxed) {
                    let (base, last) = (wal.base().index, wal.last().index);
                    if base < last {
                        let from = rng.u64(base + 1..=last);
                        let mut read = Vec::new();
                        match wal.read(from, rng.usize(..9000), &mut read) {
                            Ok(()) | Err(ReadError::Purged { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                        for (number, found) in read.iter().enumerate() {
                            assert_eq!(found, &entry(found.term, from + number as u64));
                        }
                        assert!(read.windows(2).all(|w| w[0].term <= w[1].term));
                    }
                }
            });
        }
        let mut rng = fastrand::Rng::with_seed(3);
        for (round, mut term) in (1..).step_by(2).enumerate().take(600) {
            let last = wal.last().index;
            let entries: Vec<_> =
                (last + 1..last + rng.u64(2..60)).map(|i| entry(term, i)).collect();
            wal.append(&entries);
            term += 1;
            let base = wal.base().index;
            match rng.u32(..12) {
                0 => wal.truncate(rng.u64(base + 1..=wal.last().index)),
                1 | 2 => drop(wal.release(wal.persisted().index.saturating_sub(20), u64::MAX)),
                3 if round % 10 == 0 => {
                    wal.reset(LogPosition { term, index: wal.last().index + 7 });
                }
                _ => drop(next(&reports).unwrap().unwrap()),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    wal.close();
}
