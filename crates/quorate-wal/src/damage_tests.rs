//! Damage done to a closed log: it is refused, or it did not matter. Never is less found than was
//! acknowledged. All of it is done to logs in the clear and to encrypted ones.

use crate::crash_tests::keys;
use crate::disk::sim::{Crash, Faults, SimDisk};
use crate::disk::Disk;
use crate::error::WalError;
use crate::options::WalOptions;
use crate::recycler;
use crate::segment::{parse_file_name, HEADER_BYTES};
use crate::shared::Shared;
use crate::supply::Job;
use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind, HardState, LogPosition, MemberId};
use std::sync::Arc;

const SEEDS: u64 = 600;
const VOTE: HardState = HardState { term: 3, voted_for: Some(MemberId(5)) };

fn options(encrypted: bool) -> WalOptions {
    let keys = keys(encrypted);
    WalOptions { segment_bytes: 16 << 10, retain_bytes: 0, keys, ..WalOptions::new("/sim") }
}

/// Every other one is encrypted.
fn logs(seeds: u64) -> impl Iterator<Item = (u64, bool)> {
    (0..seeds).map(|seed| (seed, seed % 2 == 1))
}

/// A log of about `bytes`, all synced and marked, with its entries.
fn log(rng: &mut fastrand::Rng, encrypted: bool, bytes: usize) -> (SimDisk, Vec<Entry>) {
    let disk = Arc::new(SimDisk::new(rng.u64(..)));
    let (shared, mut writer, _) = Shared::open(disk.clone(), options(encrypted), true).unwrap();
    shared.save_meta(|meta| meta.hard_state = VOTE).unwrap();
    let mut entries = Vec::new();
    let mut written = 0;
    while written < bytes {
        for _ in 0..rng.usize(1..5) {
            let data = Bytes::from(vec![rng.u8(..); rng.usize(..1500)]);
            written += data.len() + 48;
            let index = entries.len() as u64 + 1;
            entries.push(Entry::new(index, 3, EntryKind::Data, data));
            shared.state().append(&entries[entries.len() - 1..]).unwrap();
        }
        writer.write_batch().unwrap();
        if let Some(job) = shared.supply.try_job() {
            recycler::carry_out(&shared, job).unwrap();
        }
    }
    // Longer than a sector.
    let index = entries.len() as u64 + 1;
    entries.push(Entry::new(index, 3, EntryKind::Data, vec![9; 600].into()));
    shared.state().append(&entries[entries.len() - 1..]).unwrap();
    writer.write_batch().unwrap();
    writer.mark().unwrap();
    let Some(settle @ Job::Settle(_)) = shared.supply.try_job() else { panic!("it comes first") };
    recycler::carry_out(&shared, settle).unwrap();
    (disk.crash(Crash::Power), entries)
}

/// Opens the log again: the entries, the vote, or the refusal.
fn reopen(disk: SimDisk) -> Result<(Vec<Entry>, HardState), WalError> {
    let (shared, _, recovered) = Shared::open(Arc::new(disk), options(false), false)?;
    let mut entries = Vec::new();
    while (entries.len() as u64) < recovered.last.index {
        shared.read(entries.len() as u64 + 1, 1 << 20, &mut entries).unwrap();
    }
    Ok((entries, recovered.hard_state))
}

fn segments(disk: &SimDisk) -> Vec<String> {
    let mut names = disk.list().unwrap();
    names.retain(|name| parse_file_name(name).is_some());
    names.sort();
    names
}

/// The vote that was given, or a term without one: nobody can have had a vote there.
fn is_safe(found: HardState) -> bool {
    found == VOTE || (found.term > VOTE.term && found.voted_for.is_none())
}

/// Opens it after `harm` to one file; counts refusals.
fn harmed(name: &str, disk: SimDisk, entries: &[Entry], harm: impl FnOnce(&mut Vec<u8>)) -> bool {
    disk.damage(name, harm);
    match reopen(disk) {
        Ok((found, vote)) => {
            assert_eq!(vote, VOTE);
            let (found, all) = (found.len(), entries.len());
            assert!(found == all, "{found} of {all} entries found after damage to {name}");
            false
        }
        Err(error) => {
            let refusal = matches!(error, WalError::Damaged { .. } | WalError::Missing { .. });
            assert!(refusal && error.to_string().contains(&format!("/sim/{name}")), "{error}");
            assert!(
                error.to_string().contains("Empty the directory /sim (keep a copy)"),
                "{error}"
            );
            true
        }
    }
}

#[test]
fn a_flipped_bit_is_refused_or_does_not_matter() {
    let mut refused = 0;
    for (seed, encrypted) in logs(SEEDS) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes = rng.usize(..60_000);
        let (disk, entries) = log(&mut rng, encrypted, bytes);
        let names = segments(&disk);
        let name = &names[rng.usize(..names.len())];
        refused += u32::from(harmed(name, disk, &entries, |file| {
            let at = rng.usize(..file.len());
            file[at] ^= 1 << rng.u32(..8);
        }));
    }
    assert!(u64::from(refused) > SEEDS / 4, "{refused}");
}

/// Also the sector with the end of the last entry: the mark behind it has a page of its own.
#[test]
fn a_lost_sector_is_refused_or_does_not_matter() {
    let mut refused = 0;
    for (seed, encrypted) in logs(SEEDS) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (disk, entries) = log(&mut rng, encrypted, 40_000);
        let names = segments(&disk);
        let name = &names[rng.usize(..names.len())];
        let sector = [512, 4096][rng.usize(..2)];
        refused += u64::from(harmed(name, disk, &entries, |file| {
            let at = rng.usize(..file.len()) / sector * sector;
            let fill = if rng.bool() { 0 } else { rng.u8(..) };
            file[at..at + sector].fill(fill);
        }));
    }
    assert!(refused > SEEDS / 4, "{refused}");
}

/// The term file knows how far the log was synced when it was last written: by a vote, by a
/// snapshot, or when the log was closed.
#[test]
fn a_lost_end_that_the_term_file_knows_of_is_refused() {
    for (seed, encrypted) in logs(SEEDS) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = Arc::new(SimDisk::new(seed));
        let (shared, mut writer, _) = Shared::open(disk.clone(), options(encrypted), true).unwrap();
        let count = rng.u64(2..30);
        for index in 1..=count {
            let data = Bytes::from(vec![7; rng.usize(..1500)]);
            shared.state().append(&[Entry::new(index, 1, EntryKind::Data, data)]).unwrap();
            writer.write_batch().unwrap();
        }
        if rng.bool() {
            shared.save_meta(|meta| meta.hard_state.term += 1).unwrap();
        } else {
            shared.save_synced().unwrap();
        }
        let disk = disk.crash(Crash::Power);
        // The last batch goes, and whatever else the end of that segment holds.
        let names = segments(&disk);
        let mut left = 0;
        for name in names.iter().rev() {
            disk.damage(name, |file| {
                left = file.iter().rposition(|byte| *byte != 0).unwrap_or_default();
                if left >= HEADER_BYTES as usize {
                    file[(left / 512 * 512).max(HEADER_BYTES as usize)..].fill(0);
                }
            });
            if left >= HEADER_BYTES as usize {
                break;
            }
        }
        let Err(error) = reopen(disk) else { panic!("seed {seed}: an acknowledged entry is gone") };
        assert!(matches!(error, WalError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("Empty the directory /sim (keep a copy)"), "{error}");
    }
}

/// A segment that the term file knows of, and that is gone as a whole.
#[test]
fn a_missing_last_segment_that_the_term_file_knows_of_is_refused() {
    let mut rng = fastrand::Rng::with_seed(1);
    let disk = Arc::new(SimDisk::new(1));
    let (shared, mut writer, _) = Shared::open(disk.clone(), options(true), true).unwrap();
    for index in 1..=30 {
        let data = Bytes::from(vec![7; rng.usize(1000..1500)]);
        shared.state().append(&[Entry::new(index, 1, EntryKind::Data, data)]).unwrap();
        writer.write_batch().unwrap();
    }
    shared.save_synced().unwrap();
    let disk = disk.crash(Crash::Power);
    let name = segments(&disk).pop().unwrap();
    disk.remove(&name).unwrap();
    let error = reopen(disk).expect_err("a segment with entries is gone");
    assert!(matches!(error, WalError::Missing { .. }), "{error}");
    assert!(error.to_string().contains(&name), "{error}");
}

#[test]
fn a_cut_off_segment_is_refused() {
    for (seed, encrypted) in logs(SEEDS / 4) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (disk, entries) = log(&mut rng, encrypted, 40_000);
        let names = segments(&disk);
        let name = &names[rng.usize(..names.len())];
        assert!(harmed(name, disk, &entries, |file| file.truncate(rng.usize(..file.len()))));
    }
}

#[test]
fn a_missing_segment_is_refused() {
    for (seed, encrypted) in logs(SEEDS / 4) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (disk, entries) = log(&mut rng, encrypted, 40_000);
        let names = segments(&disk);
        let name = &names[rng.usize(..names.len())];
        disk.remove(name).unwrap();
        match reopen(disk) {
            // Only a prepared segment without a record can be missed.
            Ok((found, _)) => assert_eq!(found, entries),
            Err(error) => {
                assert!(matches!(error, WalError::Missing { .. }), "{error}");
                assert!(error.to_string().contains(name), "{error}");
            }
        }
    }
}

#[test]
fn one_damaged_copy_of_term_and_vote_is_mended_two_are_refused() {
    let mut rng = fastrand::Rng::with_seed(1);
    let (disk, entries) = log(&mut rng, false, 1000);
    for slot in [0, 4096] {
        for bit in (0..160 * 8).step_by(7) {
            let disk = disk.crash(Crash::Kill);
            disk.damage("meta", |file| file[slot + bit / 8] ^= 1 << (bit % 8));
            assert!(reopen(disk).is_ok_and(|(found, vote)| is_safe(vote) && found == entries));
        }
    }
    for bit in 0..160 * 8 {
        let disk = disk.crash(Crash::Kill);
        disk.damage("meta", |file| {
            file[bit / 8] ^= 1 << (bit % 8);
            file[4096 + (bit * 31 / 8) % 160] ^= 1 << (bit % 8);
        });
        assert!(reopen(disk).is_err_and(|e| e.to_string().contains("/sim/meta")));
    }
    for len in [0, 1, 100] {
        let disk = disk.crash(Crash::Kill);
        disk.damage("meta", |file| file.truncate(len));
        assert!(reopen(disk).is_err_and(|e| matches!(e, WalError::Damaged { .. })));
    }
}

/// Either copy has the vote, or says from where on there was none; a start writes both anew.
#[test]
fn a_copy_of_term_and_vote_that_gives_an_error_is_mended_two_are_refused() {
    let mut rng = fastrand::Rng::with_seed(1);
    let (disk, entries) = log(&mut rng, false, 1000);
    for slot in [0, 8] {
        let disk = disk.crash(Crash::Kill);
        assert!(disk.set_unreadable("meta", slot));
        let mended = disk.clone();
        assert!(reopen(disk).is_ok_and(|(found, vote)| is_safe(vote) && found == entries));
        // The other one can be lost now.
        let disk = mended.crash(Crash::Power);
        assert!(disk.set_unreadable("meta", 8 - slot));
        assert!(reopen(disk).is_ok_and(|(_, vote)| is_safe(vote)));
    }
    let disk = disk.crash(Crash::Kill);
    disk.set_unreadable("meta", 0);
    disk.set_unreadable("meta", 8);
    let error = reopen(disk).expect_err("nothing says what it voted for").to_string();
    assert!(error.contains("cannot read /sim/meta"), "{error}");
}

/// Whatever a vote was when the power failed: with one of the copies gone as well, what is found is
/// the vote that was answered, or the one that was not answered yet; or no vote in a later term.
#[test]
fn one_copy_of_an_interrupted_vote_never_takes_an_answer_back() {
    for (seed, encrypted) in logs(SEEDS) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new(seed);
        let (shared, _, _) =
            Shared::open(Arc::new(disk.clone()), options(encrypted), true).unwrap();
        let vote = |term| HardState { term, voted_for: Some(MemberId(u128::from(term))) };
        let mut answered = 0;
        disk.inject(Faults { dies_after: Some(rng.u64(..20)), ..Faults::default() });
        while shared.save_meta(|meta| meta.hard_state = vote(answered + 1)).is_ok() {
            answered += 1;
        }
        let disk = disk.crash(Crash::Power);
        // One that was being written may read as nothing, or give an error.
        disk.set_unreadable("meta", [0, 8][rng.usize(..2)]);
        match reopen(disk) {
            Ok((_, found)) => {
                let is_ahead = found.term > answered && found.voted_for.is_none();
                assert!(
                    is_ahead || [answered, answered + 1].contains(&found.term),
                    "seed {seed}: {found:?}"
                );
            }
            // The slot that can be read is the one that was being written.
            Err(error) => assert!(error.to_string().contains("cannot read /sim/meta"), "{error}"),
        }
    }
}

/// What scan.rs says remains: after a crash, damage inside the very last batch passes for a torn
/// write. An open already ends that.
#[test]
fn only_the_last_batch_before_a_crash_is_in_doubt() {
    only_the_last_batch_is_in_doubt(false, 48, 152);
    only_the_last_batch_is_in_doubt(true, 88, 184);
}

/// `mark_bytes` and `entry_bytes`: what the records of the log's begin take, and those of its entries.
fn only_the_last_batch_is_in_doubt(encrypted: bool, mark_bytes: usize, entry_bytes: usize) {
    let mut rng = fastrand::Rng::with_seed(1);
    let disk = Arc::new(SimDisk::new(1));
    let (shared, mut writer, _) = Shared::open(disk.clone(), options(encrypted), true).unwrap();
    let mut entries = Vec::new();
    let mut ends = Vec::new();
    for index in 1..=4 {
        let data = Bytes::from(vec![rng.u8(..); 100]);
        entries.push(Entry::new(index, 1, EntryKind::Data, data));
        shared.state().append(&entries[entries.len() - 1..]).unwrap();
        assert_eq!(writer.write_batch().unwrap(), Some(LogPosition { term: 1, index }));
        ends.push(2 * HEADER_BYTES as usize + mark_bytes + index as usize * entry_bytes);
    }
    let crashed = disk.crash(Crash::Power);
    let flip = |disk: &SimDisk, record: usize| {
        disk.damage("log-0000000000000001", |file| file[ends[record] - 20] ^= 1);
    };
    for record in 0..3 {
        let disk = crashed.crash(Crash::Kill);
        flip(&disk, record);
        assert!(reopen(disk).is_err());
    }
    let disk = crashed.crash(Crash::Kill);
    flip(&disk, 3);
    assert_eq!(reopen(disk).unwrap().0, entries[..3]);

    let disk = Arc::new(crashed.crash(Crash::Kill));
    Shared::open(disk.clone(), options(encrypted), false).unwrap();
    let disk = disk.crash(Crash::Power);
    flip(&disk, 3);
    assert!(reopen(disk).is_err());
}
