//! What simulations use: the same seed gives the same, and the disk does to the log what it says.

use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind, HardState, LogPosition};
use quorate_wal::sim::{self, Crash, Faults, Next, SimDisk, Steps};
use quorate_wal::{Wal, WalError, WalOptions};
use std::time::Duration;

fn options() -> WalOptions {
    WalOptions {
        segment_bytes: 16 << 10,
        cache_bytes: 16 << 10,
        retain_bytes: 0,
        reserve_segments: 1,
        ..WalOptions::new("/sim")
    }
}

fn entry(term: u64, index: u64, bytes: usize) -> Entry {
    Entry::new(index, term, EntryKind::Data, Bytes::from(vec![index as u8; bytes]))
}

fn at(term: u64, index: u64) -> LogPosition {
    LogPosition { term, index }
}

/// Until nothing is left to do.
fn settle(steps: &mut Steps) {
    while !matches!(steps.next(), Next::Idle | Next::Mark) {
        steps.step().unwrap();
    }
    recycle_all(steps);
}

fn recycle_all(steps: &mut Steps) {
    while steps.has_recycling() {
        steps.recycle().unwrap();
    }
}

fn open(disk: &SimDisk) -> (Wal, Steps) {
    let (wal, steps, _) = sim::open(disk, options(), true).unwrap();
    (wal, steps)
}

fn read_all(wal: &Wal) -> Vec<Entry> {
    let mut all = Vec::new();
    while wal.base().index + (all.len() as u64) < wal.last().index {
        let next = wal.base().index + all.len() as u64 + 1;
        wal.read(next, 1 << 20, &mut all).unwrap();
    }
    all
}

/// A life with everything in it, and a digest of what is on the disk then.
fn life(seed: u64) -> (LogPosition, u64, Vec<(String, u64)>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut disk = SimDisk::new(seed);
    for _ in 0..4 {
        let (wal, mut steps) = open(&disk);
        disk.set_time(Duration::from_secs(1_750_000_000 + rng.u64(..1000)));
        disk.inject(Faults { dies_after: Some(rng.u64(..200)), ..Faults::default() });
        while !disk.is_dead() {
            let last = wal.last();
            let done = match rng.u32(..12) {
                0..4 => {
                    wal.append(&[entry(last.term + 1, last.index + 1, rng.usize(..30_000))]);
                    Ok(())
                }
                4 if last.index > wal.base().index => {
                    wal.truncate(last.index);
                    Ok(())
                }
                5 => wal.save_hard_state(HardState { term: rng.u64(..), voted_for: None }),
                6 => {
                    // What is below the base is in a snapshot, also while a reset is under way.
                    let upto = wal.persisted().index.saturating_sub(3);
                    wal.release(upto.max(wal.base().index), u64::MAX);
                    Ok(())
                }
                7 => steps.recycle(),
                8 if rng.u32(..6) == 0 => {
                    wal.reset(at(last.term + 1, last.index + rng.u64(..50)));
                    Ok(())
                }
                _ => steps.step().map(drop),
            };
            assert!(done.is_ok() || disk.is_dead());
        }
        let how = if rng.bool() { Crash::Kill } else { Crash::Power };
        disk = disk.crash(how);
    }
    let (wal, _) = open(&disk);
    (wal.last(), disk.operations(), disk.files())
}

#[test]
fn the_same_seed_is_the_same_life() {
    let lives: Vec<_> = (0..100).map(life).collect();
    assert_eq!(lives, (0..100).map(life).collect::<Vec<_>>());
    assert!(lives.windows(2).any(|two| two[0] != two[1]));
}

#[test]
fn what_is_queued_during_a_sync_is_the_next_batch() {
    let disk = SimDisk::new(1);
    let (wal, mut steps) = open(&disk);
    wal.append(&[entry(1, 1, 10), entry(1, 2, 10)]);
    steps.step().unwrap();
    assert_eq!(steps.next(), Next::Sync);
    wal.append(&[entry(1, 3, 10)]);
    assert_eq!(steps.step().unwrap(), Some(LogPosition { term: 1, index: 2 }));
    assert_eq!(wal.persisted().index, 2);
    assert_eq!(steps.next(), Next::Write);
    settle(&mut steps);
    assert_eq!(wal.persisted().index, 3);
    assert_eq!(steps.next(), Next::Mark);
    assert_eq!(steps.step().unwrap(), None);
    assert_eq!(steps.next(), Next::Idle, "nobody waits for the mark to be synced");
    steps.close().unwrap();
    let (_, _, recovered) = sim::open(&disk.crash(Crash::Power), options(), false).unwrap();
    assert!(recovered.closed && recovered.last.index == 3);
}

/// A log of several segments, all of it on its disk.
fn long_log(seed: u64) -> (SimDisk, Wal, Steps) {
    let disk = SimDisk::new(seed);
    let (wal, mut steps) = open(&disk);
    while wal.stats().segments < 3 {
        wal.append(&[entry(1, wal.last().index + 1, 3000)]);
        settle(&mut steps);
    }
    (disk, wal, steps)
}

/// What a start finds if nothing that was not synced has reached the disk.
fn found(disk: &SimDisk) -> (LogPosition, LogPosition) {
    let (wal, _) = open(&SimDisk::restore(&disk.image(), 1));
    (wal.base(), wal.last())
}

/// What a snapshot covers may be released at once, but a start may still find the log before the reset.
#[test]
fn a_release_while_a_reset_is_written_leaves_a_log_that_is_accepted() {
    let (disk, wal, mut steps) = long_log(8);
    let (before, base) = (wal.last(), at(2, 1000));
    wal.reset(base);
    assert_eq!((steps.next(), wal.release(base.index, u64::MAX)), (Next::Write, None));
    steps.step().unwrap();
    assert_eq!((steps.next(), wal.release(base.index, u64::MAX)), (Next::Sync, None));
    recycle_all(&mut steps);
    assert_eq!(found(&disk), (LogPosition::default(), before));
    steps.step().unwrap();
    recycle_all(&mut steps);
    assert_eq!(found(&disk), (base, base));
    assert_eq!(wal.stats().segments, 1, "what was before is recycled");
}

/// The first one is on disk then, and its record stands in a segment before the first entry's.
#[test]
fn a_reset_that_is_queued_while_another_is_written_is_not_released_for() {
    let (disk, wal, mut steps) = long_log(9);
    wal.reset(at(2, 1000));
    wal.append(&[entry(2, 1001, 20_000)]);
    steps.step().unwrap();
    wal.reset(at(3, 2000));
    let batches = wal.stats().syncs;
    while wal.stats().syncs == batches {
        assert_eq!(wal.release(2000, u64::MAX), None);
        steps.step().unwrap();
    }
    assert_eq!((steps.next(), wal.release(2000, u64::MAX)), (Next::Write, None));
    recycle_all(&mut steps);
    assert_eq!(found(&disk), (at(2, 1000), at(2, 1001)));
    settle(&mut steps);
    assert_eq!(found(&disk), (at(3, 2000), at(3, 2000)));
    wal.append(&[entry(3, 2001, 10)]);
    settle(&mut steps);
    assert_eq!(found(&disk), (at(3, 2000), at(3, 2001)));
}

/// A log whose disk fails while it is reset releases nothing more.
#[test]
fn a_reset_that_is_not_synced_is_not_released_for() {
    let (disk, wal, mut steps) = long_log(10);
    let before = wal.last();
    wal.reset(at(2, 1000));
    steps.step().unwrap();
    disk.inject(Faults { sync_fails_after: Some(0), ..Faults::default() });
    assert!(steps.step().is_err());
    assert_eq!(wal.release(1000, u64::MAX), None);
    assert_eq!(found(&disk), (LogPosition::default(), before));
}

/// Longer than a piece, than a segment, and one byte.
#[test]
fn entries_of_any_length() {
    let disk = SimDisk::new(2);
    let (wal, mut steps) = open(&disk);
    let lengths = [1, 20 << 20, 0, 70_000, 40 << 20, 1 << 20, (1 << 20) + 1, 3];
    let mut reports = 0;
    for (number, bytes) in lengths.into_iter().enumerate() {
        wal.append(&[entry(1, number as u64 + 1, bytes)]);
        while !matches!(steps.next(), Next::Idle | Next::Mark) {
            reports += u32::from(steps.step().unwrap().is_some());
        }
        assert_eq!(wal.persisted().index, number as u64 + 1);
    }
    assert!(reports > lengths.len() as u32, "a long one is reported on its way");
    let (wal, _) = open(&disk.crash(Crash::Power));
    let found = read_all(&wal);
    assert!(found.iter().map(|e| e.data.len()).eq(lengths));
    assert!(found.iter().all(|e| e.data.iter().all(|byte| *byte == e.index as u8)));
}

#[test]
fn a_disk_that_is_full_goes_on_when_it_is_not() {
    let disk = SimDisk::new(3);
    let (wal, mut steps) = open(&disk);
    settle(&mut steps);
    let used: u64 = disk.files().iter().map(|(_, bytes)| bytes).sum();
    disk.inject(Faults { capacity: Some(used), ..Faults::default() });
    let mut index = 0;
    while steps.next() != Next::Full {
        index += 1;
        wal.append(&[entry(1, index, 3000)]);
        while !matches!(steps.next(), Next::Idle | Next::Mark | Next::Full) {
            steps.step().unwrap();
        }
    }
    // The segment at hand, the one prepared, and the one in reserve are used up.
    assert_eq!(wal.stats().segments, 3);
    assert_eq!(wal.persisted().index, index - 1);
    assert_eq!(steps.step().unwrap(), None);
    assert_eq!(steps.next(), Next::Full);
    // What nobody needs makes room, whatever retention says.
    assert!(wal.release(index - 2, u64::MAX).is_some());
    recycle_all(&mut steps);
    settle(&mut steps);
    assert_eq!(wal.persisted().index, index);
}

/// A member that no majority needs stops first.
#[test]
fn only_who_is_needed_uses_the_whole_reserve() {
    let written = |needed: bool| {
        let disk = SimDisk::new(3);
        let options = WalOptions { reserve_segments: 4, ..options() };
        let (wal, mut steps, _) = sim::open(&disk, options, true).unwrap();
        settle(&mut steps);
        wal.set_needed(needed);
        disk.inject(Faults { capacity: Some(0), ..Faults::default() });
        while steps.next() != Next::Full {
            let index = wal.last().index + 1;
            wal.append(&[entry(1, index, 3000)]);
            while !matches!(steps.next(), Next::Idle | Next::Mark | Next::Full) {
                steps.step().unwrap();
            }
        }
        if !needed {
            let persisted = wal.persisted();
            wal.set_needed(true);
            settle(&mut steps);
            assert!(wal.persisted() > persisted, "it is needed now");
        }
        wal.stats().segments
    };
    assert_eq!((written(true), written(false)), (6, 5));
}

#[test]
fn rot_is_refused_and_an_older_image_is_found_as_it_was() {
    let disk = SimDisk::new(4);
    let (wal, mut steps) = open(&disk);
    wal.append(&[entry(1, 1, 600)]);
    settle(&mut steps);
    let image = disk.image();
    wal.append(&[entry(1, 2, 600), entry(1, 3, 600)]);
    settle(&mut steps);
    let older = SimDisk::restore(&image, 5);
    assert_eq!(read_all(&open(&older).0), [entry(1, 1, 600)]);
    assert_eq!(read_all(&open(&disk.crash(Crash::Power)).0).len(), 3);

    let disk = older.crash(Crash::Power);
    let (name, bytes) = disk.files().into_iter().find(|(name, _)| name.ends_with('1')).unwrap();
    assert!(!disk.rot(&name, bytes / 512));
    assert!(disk.rot(&name, 8));
    let Err(error) = sim::open(&disk, options(), false) else { panic!("{name} is rotten") };
    assert!(matches!(error, WalError::Damaged { .. }), "{error}");
}

/// One sector of the log rots, or cannot be read, after a crash: whoever is let in has everything that
/// it acknowledged, but for the last batch where nothing came after it, and what of the one before
/// shares a sector with it.
#[test]
fn rot_after_a_crash_costs_at_most_what_was_written_last() {
    let (mut refused, mut found_all, mut found_less) = (0, 0, 0);
    for seed in 0..1500 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new(seed);
        let (wal, mut steps) = open(&disk);
        let (mut acknowledged, mut before, mut least) = (0, 0, 0);
        for _ in 0..rng.u32(1..12) {
            for _ in 0..rng.u32(1..4) {
                // So long that no sector holds more than the end of one and the begin of the next.
                wal.append(&[entry(1, wal.last().index + 1, rng.usize(600..4000))]);
            }
            (least, before) = (before, acknowledged);
            settle(&mut steps);
            acknowledged = wal.persisted().index;
            match rng.u32(..6) {
                0 => {
                    while steps.next() != Next::Idle {
                        steps.step().unwrap();
                    }
                    // The mark is synced in the background.
                    settle(&mut steps);
                    least = acknowledged;
                }
                1 => {
                    let term = rng.u64(..);
                    wal.save_hard_state(HardState { term, voted_for: None }).unwrap();
                    least = acknowledged;
                }
                _ => {}
            }
            before = before.max(least);
        }
        // Something under way, perhaps.
        wal.append(&[entry(1, acknowledged + 1, rng.usize(..4000))]);
        (0..rng.u32(..2)).for_each(|_| {
            steps.step().unwrap();
        });
        let disk = disk.crash(Crash::Power);
        let logs: Vec<_> =
            disk.files().into_iter().filter(|(name, _)| name.starts_with("log-")).collect();
        let (name, bytes) = &logs[rng.usize(..logs.len())];
        let sector = rng.u64(..bytes / 512);
        let harmed = if rng.u32(..4) == 0 { SimDisk::set_unreadable } else { SimDisk::rot };
        assert!(harmed(&disk, name, sector));
        match sim::open(&disk, options(), false) {
            Err(_) => refused += 1,
            Ok((wal, _, recovered)) => {
                assert!(!recovered.closed);
                let last = recovered.last.index;
                assert!(last >= least, "seed {seed}: {last} of {acknowledged}, not {least}");
                assert_eq!(read_all(&wal).len() as u64, last);
                if last >= acknowledged {
                    found_all += 1
                } else {
                    found_less += 1
                }
            }
        }
    }
    assert!(
        refused > 100 && found_all > 100 && found_less > 0,
        "{refused} {found_all} {found_less}"
    );
}

#[test]
fn a_broken_disk_is_final_for_the_log() {
    let disk = SimDisk::new(6);
    let (wal, mut steps) = open(&disk);
    wal.append(&[entry(1, 1, 6)]);
    disk.inject(Faults { broken: true, ..Faults::default() });
    assert!(steps.step().is_err());
    assert_eq!(steps.next(), Next::Failed);
    disk.inject(Faults::default());
    assert!(steps.step().is_err() && wal.save_synced().is_err());
    assert_eq!(wal.persisted().index, 0);
}

/// A mark that was not synced yet is in nobody's way: what comes meanwhile is synced with it.
#[test]
fn an_entry_after_a_mark_takes_one_sync() {
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        let (wal, mut steps) = open(&disk);
        wal.append(&[entry(1, 1, 600)]);
        settle(&mut steps);
        assert_eq!((steps.next(), steps.step().unwrap()), (Next::Mark, None));
        wal.append(&[entry(1, 2, 600)]);
        assert_eq!((steps.next(), steps.step().unwrap()), (Next::Write, None));
        assert_eq!(steps.next(), Next::Sync);
        assert_eq!(steps.step().unwrap().map(|synced| synced.index), Some(2));
        let (wal, _) = open(&disk.crash(Crash::Power));
        assert_eq!(read_all(&wal), [entry(1, 1, 600), entry(1, 2, 600)]);
    }
}
