use super::*;
use crate::disk::sim::{Crash, Faults, SimDisk};

fn keys(own: u8, encrypts: bool) -> DiskKeys {
    DiskKeys::new(&[[own; 32]], encrypts)
}

fn files(encrypted: bool) -> (tempfile::TempDir, SnapshotFiles) {
    let dir = tempfile::tempdir().unwrap();
    let files = SnapshotFiles::new(dir.path(), keys(1, encrypted));
    (dir, files)
}

#[test]
fn what_was_saved_is_loaded() {
    for encrypted in [false, true] {
        let (_dir, files) = files(encrypted);
        files.save(5, b"meta", b"payload").unwrap();
        files.save(17, b"", b"").unwrap();
        files.save(17, b"again", b"").unwrap();
        assert_eq!(files.list().unwrap(), [17, 5]);
        let five = files.load(5).unwrap();
        assert_eq!((&five.meta[..], &five.payload[..]), (&b"meta"[..], &b"payload"[..]));
        assert_eq!(&files.load(17).unwrap().meta[..], b"again");
        let (meta, payload) = (vec![1; CHUNK_BYTES / 2], vec![2; 2 * CHUNK_BYTES]);
        files.save(20, &meta, &payload).unwrap();
        let long = files.load(20).unwrap();
        assert!(long.meta == meta && long.payload == payload);
    }
}

#[test]
fn any_flipped_bit_or_cut_is_refused() {
    for encrypted in [false, true] {
        let (dir, files) = files(encrypted);
        files.save(5, b"meta", b"payload").unwrap();
        let path = dir.path().join(file_name(5));
        let good = std::fs::read(&path).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(bad, &files.keys).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            assert!(decode(good[..len].to_vec(), &files.keys).is_err(), "cut to {len}");
        }
        std::fs::write(&path, &good[1..]).unwrap();
        let error = files.load(5).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}

/// Also by somebody who computes the checksum anew.
#[test]
fn what_was_encrypted_is_neither_shown_nor_changed_unnoticed() {
    let (dir, files) = files(true);
    files.save(5, b"a meta of some length", b"rows of the database").unwrap();
    let good = std::fs::read(dir.path().join(file_name(5))).unwrap();
    let shows = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    assert!(!shows(&good, b"some length") && !shows(&good, b"rows"));
    for at in (16..good.len()).filter(|at| !(40..48).contains(at)) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let forged = sealed_with_checksum(&bad);
        assert!(matches!(decode(forged, &files.keys), Err(Unreadable::Damaged(_))), "byte {at}");
    }
}

#[test]
fn one_that_is_encrypted_with_an_unknown_key_is_told_from_a_damaged_one() {
    let (dir, files) = files(true);
    files.save(5, b"meta", b"payload").unwrap();
    let disk = RealDisk::new(dir.path());
    assert_eq!(check_keys(&disk, &keys(1, false)).unwrap(), [files.keys.encrypts_with()]);
    for error in [
        check_keys(&disk, &keys(2, true)).unwrap_err(),
        check_keys(&disk, &DiskKeys::default()).unwrap_err(),
        SnapshotFiles::new(dir.path(), keys(2, true)).load(5).unwrap_err(),
    ] {
        assert!(matches!(&error, WalError::NoKey { .. }), "{error}");
        let id = DiskKeys::id_of(&[1; 32]).to_string();
        assert!(error.to_string().contains(&id) && error.to_string().contains("snap-"), "{error}");
    }
    let path = dir.path().join(file_name(5));
    let mut damaged = std::fs::read(&path).unwrap();
    damaged[41] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    check_keys(&disk, &keys(1, true)).unwrap();
    assert!(matches!(files.load(5), Err(WalError::SnapshotDamaged { .. })));
}

#[test]
fn pruning_keeps_two_and_what_the_base_needs() {
    let (_dir, files) = files(false);
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
    let files = SnapshotFiles::on(Arc::new(disk.clone()), keys(1, true));
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
    let files = SnapshotFiles::on(Arc::new(disk.clone()), keys(1, true));
    files.save(5, b"meta", b"payload").unwrap();
    disk.inject(Faults { directory_broken: true, ..Faults::default() });
    assert!(files.save(9, b"meta", b"").is_err());
    assert!(files.save(5, b"meta", b"payload").is_err());
    assert_eq!(files.list().unwrap(), [5], "that one was there");
    disk.inject(Faults::default());
    files.save(9, b"meta", b"").unwrap();
    files.remove(9).unwrap();
    let after = SnapshotFiles::on(Arc::new(disk.crash(Crash::Power)), keys(1, true));
    assert_eq!(after.list().unwrap(), [5]);
}
