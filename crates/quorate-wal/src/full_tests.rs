//! The log on a disk that runs full, and has room again.

use crate::crash_tests::{histories, keys, Encryption, History, Life};
use crate::disk::sim::{Crash, Faults, SimDisk};
use crate::options::{Room, WalOptions};
use crate::recycler;
use crate::shared::Shared;
use crate::writer::{Next, Writer};
use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind, HardState, MemberId};
use std::ops::Range;
use std::sync::Arc;

impl History {
    /// Lives on a disk of so many bytes until that has no room; false if it takes long.
    fn fill_up(&mut self, life: &mut Life, capacities: Range<u64>) -> bool {
        let capacity = Some(self.rng.u64(capacities));
        self.disk.inject(Faults { capacity, ..Faults::default() });
        (0..100).any(|_| {
            self.live(life, 1).expect("a full disk is no failure");
            life.writer.next() == Next::Full
        })
    }

    /// Tries in vain, and then there is room.
    fn wait_for_room(&mut self, life: &mut Life) {
        assert_eq!(life.shared.supply.room(), Room::Blocked);
        let persisted = life.shared.state().persisted;
        self.append(life);
        for _ in 0..self.rng.u32(1..4) {
            assert_eq!(life.writer.step().expect("only full"), None);
            assert_eq!(life.writer.next(), Next::Full);
        }
        let still = life.shared.state().persisted;
        assert!(still == persisted, "{still:?} without room, after {persisted:?}");
        assert!(life.shared.supply.warning().is_some_and(|why| why.contains("no space")));
        self.disk.inject(Faults::default());
        life.writer.write_batch().expect("there is room");
        assert_ne!(life.shared.supply.room(), Room::Blocked);
        let rest = self.pending.split_off(self.taken);
        self.pending.drain(..).for_each(|step| self.synced.apply(&step));
        self.pending = rest;
        self.taken = 0;
        assert_eq!(life.shared.state().persisted, self.synced.last());
    }
}

/// What was queued is neither lost nor acknowledged while there is no room, and goes on when there is.
#[test]
fn a_full_disk_blocks_the_log_until_there_is_room() {
    let mut blocked = 0;
    for (seed, encryption) in histories() {
        let mut history = History::new(seed / 4, encryption);
        let mut life = history.open().expect("there is room");
        for _ in 0..3 {
            if history.fill_up(&mut life, 40_000..200_000) {
                blocked += 1;
                history.wait_for_room(&mut life);
            }
        }
        history.crash();
        history.open().expect("there is room again");
    }
    assert!(blocked > 100, "{blocked}");
}

/// A file that was begun without room and given up cannot come under the name of the one that was made later.
#[test]
fn a_power_cut_after_tries_without_room_leaves_no_segment_half_made() {
    let mut blocked = 0;
    for (seed, encryption) in histories() {
        let mut history = History::new(seed / 4, encryption);
        let mut life = history.open().expect("there is room");
        if !history.fill_up(&mut life, 40_000..100_000) {
            continue;
        }
        blocked += 1;
        for _ in 0..history.rng.u32(1..4) {
            assert_eq!(life.writer.step().expect("only full"), None);
        }
        let dies_after = Some(history.rng.u64(..8));
        history.disk.inject(Faults { dies_after, ..Faults::default() });
        // Whether it dies before or after the segment is made.
        let _died = life.writer.step();
        drop(life);
        let disk = Arc::new(history.disk.crash(Crash::Power));
        let opened = Shared::open(disk, history.options.clone(), false);
        assert!(opened.is_ok(), "seed {seed}: {:?}", opened.err());
    }
    assert!(blocked > 50, "{blocked}");
}

/// Where even overwriting needs room, a vote is saved at the expense of the reserve.
#[test]
fn a_vote_takes_from_the_reserve_what_it_needs() {
    let disk = SimDisk::new(1);
    let (shared, mut writer, _) =
        Shared::open(Arc::new(disk.clone()), History::new(1, Encryption::On).options, true)
            .unwrap();
    while let Some(job) = shared.supply.try_job() {
        recycler::carry_out(&shared, job).unwrap();
    }
    let used = disk.files().iter().map(|(_, bytes)| bytes).sum();
    let full = Faults { capacity: Some(used), copies_on_write: true, ..Faults::default() };
    disk.inject(full);
    let vote = HardState { term: 7, voted_for: Some(MemberId(7)) };
    shared.save_meta(|meta| meta.hard_state = vote).unwrap();
    let entry = Entry::new(1, 1, EntryKind::Data, Bytes::from(vec![7; 100]));
    shared.state().append(&[entry]).unwrap();
    writer.write_batch().unwrap();
    assert_eq!(shared.state().persisted.index, 1, "there is the rest of what was given up");
    // So is all that the next start has to write.
    let disk = disk.crash(Crash::Power);
    let used = disk.files().iter().map(|(_, bytes)| bytes).sum();
    disk.inject(Faults { capacity: Some(used), copies_on_write: true, ..Faults::default() });
    let options = WalOptions { keys: keys(true), ..WalOptions::new("/sim") };
    let (_, _, found) = Shared::open(Arc::new(disk), options, false).unwrap();
    assert_eq!((found.hard_state, found.last.index), (vote, 1));
}

/// There, too, whatever is written waits for room, in any piece of it.
#[test]
fn a_write_that_finds_no_room_is_written_whole_later() {
    for (seed, encryption) in histories().take(50) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new(seed);
        let options = WalOptions { reserve_segments: 0, ..History::new(seed, encryption).options };
        let (shared, mut writer, _) =
            Shared::open(Arc::new(disk.clone()), options.clone(), true).unwrap();
        let mut entries = Vec::new();
        for index in 1..20 {
            let bytes = if rng.u32(..8) == 0 { rng.usize(..3 << 20) } else { rng.usize(..5000) };
            entries.push(Entry::new(
                index,
                1,
                EntryKind::Data,
                Bytes::from(vec![index as u8; bytes]),
            ));
            shared.state().append(&entries[entries.len() - 1..]).unwrap();
            while writer.next() != Next::Mark {
                if rng.bool() {
                    // A next segment is there, whether the end of this one finds room or not.
                    disk.inject(Faults { copies_on_write: true, ..Faults::default() });
                    while let Some(job) = shared.supply.try_job() {
                        recycler::carry_out(&shared, job).unwrap();
                    }
                }
                let used: u64 = disk.files().iter().map(|(_, bytes)| bytes).sum();
                let capacity = rng.bool().then(|| used + rng.u64(..5000));
                disk.inject(Faults { capacity, copies_on_write: true, ..Faults::default() });
                writer.step().unwrap();
            }
            assert_eq!(shared.state().persisted.index, index);
        }
        let disk = Arc::new(disk.crash(Crash::Power));
        let (shared, writer, _) = Shared::open(disk, options, false).unwrap();
        let found = Life { shared, writer }.read_all();
        assert!(found == entries, "seed {seed}");
    }
}

/// Entries of segments of 16 KiB until there is no room; returns the last one's index.
fn append_until_full(shared: &Shared, writer: &mut Writer) -> u64 {
    let mut index = 0;
    while writer.next() != Next::Full {
        index += 1;
        let entry = Entry::new(index, 1, EntryKind::Data, Bytes::from(vec![7; 3000]));
        shared.state().append(&[entry]).unwrap();
        writer.write_batch().unwrap();
    }
    index
}

/// What a try without room has begun is gone before the next: that one would find even less.
#[test]
fn tries_without_room_leave_no_file_behind() {
    for encryption in [Encryption::Off, Encryption::On] {
        let disk = SimDisk::new(1);
        let options = WalOptions { reserve_segments: 0, ..History::new(1, encryption).options };
        let segment_bytes = options.segment_bytes;
        let (shared, mut writer, _) = Shared::open(Arc::new(disk.clone()), options, true).unwrap();
        let used: u64 = disk.files().iter().map(|(_, bytes)| bytes).sum();
        // Enough for another file, but not for its header.
        let capacity = Some(used + segment_bytes);
        disk.inject(Faults { capacity, copies_on_write: true, ..Faults::default() });
        let index = append_until_full(&shared, &mut writer);
        for _ in 0..3 {
            let left = disk.files().iter().map(|(_, bytes)| bytes).sum::<u64>();
            assert_eq!(left, used, "{:?}", disk.files());
            assert_eq!(writer.step().expect("only full"), None);
        }
        disk.inject(Faults::default());
        writer.write_batch().unwrap();
        assert_eq!(shared.state().persisted.index, index);
    }
}

/// A spare that has got its segment's name, but not durably, is not looked for under the old one; and whichever
/// name a power cut leaves it, the log is whole.
#[test]
fn a_directory_without_room_blocks_the_log_until_there_is_room() {
    for (seed, encryption) in histories().take(100) {
        let disk = SimDisk::new(seed);
        let options = History::new(seed, encryption).options;
        let (shared, mut writer, _) =
            Shared::open(Arc::new(disk.clone()), options.clone(), true).unwrap();
        while let Some(job) = shared.supply.try_job() {
            recycler::carry_out(&shared, job).unwrap();
        }
        disk.inject(Faults { directory_full: true, ..Faults::default() });
        let index = append_until_full(&shared, &mut writer);
        for _ in 0..5 {
            assert_eq!(writer.step().expect("only full"), None);
            assert_eq!(shared.supply.room(), Room::Blocked);
        }
        if seed % 3 > 0 {
            disk.inject(Faults::default());
            writer.write_batch().unwrap();
            assert_eq!(shared.state().persisted.index, index);
        }
        let persisted = shared.state().persisted.index;
        let disk = Arc::new(disk.crash(Crash::Power));
        let (_, _, found) = Shared::open(disk, options, false).unwrap();
        assert!(found.last.index >= persisted, "seed {seed}: {:?}, {persisted}", found.last);
    }
}
