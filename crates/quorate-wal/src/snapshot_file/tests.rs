use super::*;
use crate::disk::sim::{Crash, Faults, SimDisk};

fn files() -> (tempfile::TempDir, SnapshotFiles) {
    let dir = tempfile::tempdir().unwrap();
    let files = SnapshotFiles::new(dir.path());
    (dir, files)
}

#[test]
fn what_was_saved_is_loaded() {
    let (_dir, files) = files();
    files.save(5, b"meta", b"payload").unwrap();
    files.save(17, b"", b"").unwrap();
    files.save(17, b"again", b"").unwrap();
    assert_eq!(files.list().unwrap(), [17, 5]);
    let five = files.load(5).unwrap();
    assert_eq!((&five.meta[..], &five.payload[..]), (&b"meta"[..], &b"payload"[..]));
    assert_eq!(&files.load(17).unwrap().meta[..], b"again");
}

#[test]
fn any_flipped_bit_or_cut_is_refused() {
    let (dir, files) = files();
    files.save(5, b"meta", b"payload").unwrap();
    let path = dir.path().join(file_name(5));
    let good = std::fs::read(&path).unwrap();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(Bytes::from(bad)).is_err(), "bit {bit}");
    }
    for len in 0..good.len() {
        assert!(decode(Bytes::copy_from_slice(&good[..len])).is_err(), "cut to {len}");
    }
    std::fs::write(&path, &good[1..]).unwrap();
    let error = files.load(5).unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn pruning_keeps_two_and_what_the_base_needs() {
    let (_dir, files) = files();
    for index in [10, 20, 30, 40, 50, 60] {
        files.save(index, b"", b"").unwrap();
    }
    assert_eq!(files.prune(25).unwrap(), [20, 10]);
    assert_eq!(files.list().unwrap(), [60, 50, 40, 30]);
    assert_eq!(files.prune(100).unwrap(), [40, 30]);
    assert_eq!(files.list().unwrap(), [60, 50]);
}

#[test]
fn a_full_disk_leaves_the_snapshots_there_were_and_nothing_else() {
    let disk = SimDisk::new(1);
    let files = SnapshotFiles::on(Arc::new(disk.clone()));
    files.save(5, b"meta", b"payload").unwrap();
    let before = disk.files();
    disk.inject(Faults { capacity: Some(10_000), ..Faults::default() });
    let error = files.save(9, b"meta", &[7; 20_000]).unwrap_err();
    assert!(matches!(error, WalError::Full { .. }), "{error}");
    assert_eq!(disk.files(), before);
    disk.inject(Faults::default());
    files.save(9, b"meta", &[7; 20_000]).unwrap();
    assert_eq!(files.list().unwrap(), [9, 5]);
}

#[test]
fn what_could_not_be_saved_for_good_has_no_name_and_what_was_removed_stays_away() {
    let disk = SimDisk::new(1);
    let files = SnapshotFiles::on(Arc::new(disk.clone()));
    files.save(5, b"meta", b"payload").unwrap();
    disk.inject(Faults { directory_broken: true, ..Faults::default() });
    assert!(files.save(9, b"meta", b"").is_err());
    assert!(files.save(5, b"meta", b"payload").is_err());
    assert_eq!(files.list().unwrap(), [5], "that one was there");
    disk.inject(Faults::default());
    files.save(9, b"meta", b"").unwrap();
    files.remove(9).unwrap();
    let after = SnapshotFiles::on(Arc::new(disk.crash(Crash::Power)));
    assert_eq!(after.list().unwrap(), [5]);
}
