//! What an encrypted log shows, and how keys are taken up and given up.

use crate::disk::sim::{Crash, SimDisk};
use crate::disk::Disk;
use crate::error::WalError;
use crate::options::{Recovered, WalOptions};
use crate::recycler;
use crate::seal::{DiskKeyId, DiskKeys};
use crate::shared::Shared;
use crate::sim::snapshot_files;
use crate::writer::Writer;
use bytes::Bytes;
use quorate_consensus::{Entry, EntryKind};
use std::sync::Arc;

const OLD: [u8; 32] = [1; 32];
const NEW: [u8; 32] = [2; 32];
const ROW: &[u8] = b"a row that nobody is to read";

struct Log {
    disk: SimDisk,
    shared: Arc<Shared>,
    writer: Writer,
    found: Recovered,
}

fn open(disk: &SimDisk, keys: DiskKeys) -> Result<Log, WalError> {
    let options = WalOptions {
        segment_bytes: 16 << 10,
        cache_bytes: 0,
        retain_bytes: 0,
        keys,
        ..WalOptions::new("/sim")
    };
    let (shared, writer, found) = Shared::open(Arc::new(disk.clone()), options, true)?;
    Ok(Log { disk: disk.clone(), shared, writer, found })
}

impl Log {
    /// Appends so many rows, and prepares segments meanwhile.
    fn write(&mut self, rows: u64) {
        for _ in 0..rows {
            let index = self.shared.state().last.index + 1;
            let row = Entry::new(index, 1, EntryKind::Data, Bytes::from(ROW.repeat(20)));
            self.shared.state().append(&[row]).unwrap();
            self.writer.write_batch().unwrap();
            self.work();
        }
    }

    /// All that is to be done in the background.
    fn work(&self) {
        while let Some(job) = self.shared.supply.try_job() {
            recycler::carry_out(&self.shared, job).unwrap();
        }
    }

    fn release(&self) {
        let last = self.shared.state().persisted.index;
        let released =
            self.shared.state().release(last, last, &self.shared.options, self.disk.now()).unwrap();
        self.shared.supply.retire(released);
        self.work();
    }

    /// The rows that are read back from disk.
    fn rows(&self) -> u64 {
        let (base, last) = (self.found.base.index, self.shared.state().last.index);
        let mut rows = Vec::new();
        while base + (rows.len() as u64) < last {
            self.shared.read(base + rows.len() as u64 + 1, 5_000, &mut rows).unwrap();
        }
        assert!(rows.iter().all(|row| row.data == ROW.repeat(20)));
        rows.len() as u64
    }

    fn crash(self) -> SimDisk {
        self.disk.crash(Crash::Power)
    }
}

/// Whether any file shows something of a row.
fn shows_rows(disk: &SimDisk) -> bool {
    let mut shown = false;
    for (name, _) in disk.files() {
        disk.damage(&name, |bytes| shown |= bytes.windows(12).any(|part| part == &ROW[..12]));
    }
    shown
}

fn only(keys: &[[u8; 32]]) -> DiskKeys {
    DiskKeys::new(keys, true)
}

fn id(key: [u8; 32]) -> DiskKeyId {
    DiskKeys::id_of(&key)
}

#[test]
fn no_file_of_an_encrypted_log_shows_a_row() {
    for (keys, shown) in [(DiskKeys::default(), true), (only(&[OLD]), false)] {
        let disk = SimDisk::new(1);
        let mut log = open(&disk, keys.clone()).unwrap();
        snapshot_files(&disk, keys).save(1, ROW, ROW).unwrap();
        log.write(100);
        log.release();
        log.write(10);
        assert_eq!(shows_rows(&disk), shown);
    }
}

#[test]
fn a_log_in_the_clear_is_encrypted_from_the_next_start_on_and_what_it_showed_goes() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, DiskKeys::default()).unwrap();
    snapshot_files(&disk, DiskKeys::default()).save(1, b"", b"").unwrap();
    log.write(60);
    log.release();
    log.write(20);
    let disk = log.crash();

    let mut log = open(&disk, only(&[OLD])).unwrap();
    let before: u64 = log.found.encryption.values().sum();
    assert_eq!(log.found.encryption, [(None, before)].into());
    let first = log.rows();
    assert!(first > 0 && shows_rows(&disk), "what was there can be read, by everybody");
    // The recycled files that the log in the clear left, and its prepared segment, are not used.
    log.write(40);
    assert_eq!(log.rows(), first + 40);
    let disk = log.crash();
    let mut log = open(&disk, only(&[OLD])).unwrap();
    assert_eq!(log.rows(), first + 40);
    log.release();
    log.write(40);
    assert!(!shows_rows(&disk), "nothing of the segments in the clear is left");
}

#[test]
fn an_encrypted_log_is_in_the_clear_from_the_next_start_on() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, only(&[OLD])).unwrap();
    log.write(60);
    let disk = log.crash();
    let mut log = open(&disk, DiskKeys::new(&[OLD], false)).unwrap();
    log.write(1);
    assert!(shows_rows(&disk));
    log.write(39);
    assert_eq!(log.rows(), 100);
    log.release();
    log.write(1);
    let disk = log.crash();
    open(&disk, DiskKeys::default()).expect("no file needs the key any more");
}

#[test]
fn without_the_key_a_start_is_refused_and_changes_nothing() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, only(&[OLD])).unwrap();
    log.write(60);
    let disk = log.crash();
    for keys in [DiskKeys::default(), only(&[NEW])] {
        let operations = disk.operations();
        let Err(error) = open(&disk, keys.clone()) else { panic!("opened with {keys}") };
        assert!(matches!(&error, WalError::NoKey { .. }), "{error}");
        let sentence = error.to_string();
        for part in [&id(OLD).to_string(), &keys.to_string(), "/sim/meta", "Nothing was changed"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert_eq!(disk.operations(), operations);
    }
    assert_eq!(open(&disk, only(&[OLD])).unwrap().rows(), 60);
}

#[test]
fn what_is_in_the_clear_is_not_read_where_that_is_demanded() {
    let demanding = only(&[OLD]).refusing_plain();
    let refused = |disk: &SimDisk, name: &str| {
        let operations = disk.operations();
        let Err(error) = open(disk, demanding.clone()) else { panic!("{name} was taken") };
        assert!(matches!(&error, WalError::Plain { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(disk.operations(), operations);
    };
    // A segment.
    let disk = SimDisk::new(1);
    open(&disk, DiskKeys::default()).unwrap().write(60);
    refused(&disk, "/sim/meta");
    // Until what was in the clear is gone.
    let mut log = open(&disk, only(&[OLD])).unwrap();
    log.write(40);
    let disk = log.crash();
    refused(&disk, "/sim/log-");
    let mut log = open(&disk, only(&[OLD])).unwrap();
    log.write(40);
    log.release();
    log.write(1);
    let disk = log.crash();
    open(&disk, demanding.clone()).unwrap().write(1);
    // A snapshot, at the start and later.
    let encrypted = snapshot_files(&disk, demanding.clone());
    encrypted.save(1, ROW, ROW).unwrap();
    assert_eq!(encrypted.load(1).unwrap().payload, ROW);
    open(&disk, demanding.clone()).unwrap();
    snapshot_files(&disk, DiskKeys::default()).save(2, ROW, ROW).unwrap();
    assert!(matches!(encrypted.load(2), Err(WalError::Plain { .. })));
    refused(&disk, "/sim/snap-");
}

#[test]
fn another_key_is_used_at_once_and_the_old_one_until_its_files_are_gone() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, only(&[OLD])).unwrap();
    log.write(60);
    let disk = log.crash();
    let mut log = open(&disk, only(&[NEW, OLD])).unwrap();
    assert!(log.found.encryption.keys().eq([&Some(id(OLD))]));
    log.write(40);
    let disk = log.crash();
    assert!(matches!(open(&disk, only(&[NEW])), Err(WalError::NoKey { .. })));
    let mut log = open(&disk, only(&[NEW, OLD])).unwrap();
    assert!(log.found.encryption.contains_key(&Some(id(OLD))));
    assert_eq!(log.rows(), 100);
    log.release();
    log.write(1);
    let disk = log.crash();
    let log = open(&disk, only(&[NEW])).unwrap();
    assert!(log.found.encryption.keys().eq([&Some(id(NEW))]));
}

/// A machine is set back, twice, and writes to the same places of the same file, with the same data key and
/// in the same incarnation. Under the same nonces, the same rows would be the same bytes.
#[test]
fn a_machine_that_was_set_back_repeats_no_nonce() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, only(&[OLD])).unwrap();
    log.write(3);
    let image = disk.image();
    let written = [7, 8].map(|seed| {
        let disk = SimDisk::restore(&image, seed);
        let mut log = open(&disk, only(&[OLD])).unwrap();
        log.write(3);
        let mut bytes = Vec::new();
        disk.damage("log-0000000000000001", |file| bytes = file.clone());
        bytes
    });
    let [a, b] = &written;
    assert_eq!(a[..4096], b[..4096], "one file, one data key");
    let alike = a.iter().zip(b).skip(12 << 10).filter(|(a, b)| a == b && **a != 0).count();
    assert!(alike < 150, "of the same rows, so many bytes are the same: {alike}");
}
