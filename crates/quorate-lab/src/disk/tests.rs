//! The model of durability, without a mount.

use super::names::{Kind, Node, ROOT};
use super::store::Store;
use super::{Loss, Lost};
use std::collections::BTreeMap;
use std::ffi::OsStr;

const CAPACITY: u64 = 1 << 20;

fn node(kind: Kind) -> Node {
    Node { kind, mode: 0o644, uid: 0, gid: 0, links: 1 }
}

fn file(store: &mut Store, name: &str) -> u64 {
    let ino = store.create(ROOT, OsStr::new(name), node(Kind::File)).unwrap();
    store.refer(ino);
    ino
}

fn find(store: &Store, name: &str) -> Option<u64> {
    store.names.lookup(ROOT, OsStr::new(name)).ok()
}

fn read(store: &Store, ino: u64) -> Vec<u8> {
    store.file(ino).unwrap().content.read(0, CAPACITY as usize)
}

#[test]
fn content_is_that_of_the_last_sync() {
    let mut store = Store::new(CAPACITY);
    let ino = file(&mut store, "a");
    store.write(ino, 0, b"first").unwrap();
    store.sync(ino).unwrap();
    store.write(ino, 3, &[b'x'; 10_000]).unwrap();
    assert_eq!(read(&store, ino).len(), 10_003);
    let lost = store.cut(Loss::All);
    assert_eq!(lost, Lost { files: 1, bytes: 3 * 4096, names: false });
    assert_eq!(read(&store, ino), b"first");
    assert_eq!(store.used_pages(), 1);
    // What lies past the end is gone for good.
    store.truncate(ino, 8).unwrap();
    assert_eq!(read(&store, ino), b"first\0\0\0");
}

#[test]
fn truncation_is_undone_too() {
    let mut store = Store::new(CAPACITY);
    let ino = file(&mut store, "a");
    store.write(ino, 0, &[7; 9000]).unwrap();
    store.sync(ino).unwrap();
    store.truncate(ino, 100).unwrap();
    store.truncate(ino, 5000).unwrap();
    let now = read(&store, ino);
    assert!(now.len() == 5000 && now[..100] == [7; 100] && now[100..] == [0; 4900]);
    store.cut(Loss::All);
    assert_eq!(read(&store, ino), [7; 9000]);
}

#[test]
fn names_follow_any_sync_in_order() {
    let mut store = Store::new(CAPACITY);
    let kept = file(&mut store, "kept");
    store.write(kept, 0, b"old").unwrap();
    store.sync(kept).unwrap();
    // Replaced by a file whose content was never synced; another file's sync commits the names.
    let new = file(&mut store, "new");
    store.write(new, 0, b"new content").unwrap();
    store.rename((ROOT, OsStr::new("new")), (ROOT, OsStr::new("kept")), true).unwrap();
    let other = file(&mut store, "other");
    store.sync(other).unwrap();
    file(&mut store, "late");
    store.remove(ROOT, OsStr::new("other"), false).unwrap();
    let lost = store.cut(Loss::All);
    assert!(lost.names);
    assert_eq!(find(&store, "kept"), Some(new));
    assert_eq!(read(&store, new), b"");
    assert_eq!((find(&store, "late"), find(&store, "new")), (None, None));
    assert_eq!(find(&store, "other"), Some(other));
}

#[test]
fn an_unsynced_removal_gives_the_file_back() {
    let mut store = Store::new(CAPACITY);
    let ino = file(&mut store, "a");
    store.write(ino, 0, b"text").unwrap();
    store.sync(ino).unwrap();
    store.remove(ROOT, OsStr::new("a"), false).unwrap();
    // Still open: it can be read and written.
    store.write(ino, 4, b"more").unwrap();
    store.forget(ino, 1);
    store.cut(Loss::All);
    assert_eq!(find(&store, "a"), Some(ino));
    assert_eq!(read(&store, ino), b"text");
}

#[test]
fn what_nobody_refers_to_takes_no_space() {
    let mut store = Store::new(CAPACITY);
    let ino = file(&mut store, "a");
    store.write(ino, 0, &[1; 8192]).unwrap();
    store.sync(ino).unwrap();
    store.remove(ROOT, OsStr::new("a"), false).unwrap();
    store.commit_names();
    assert_eq!(store.used_pages(), 2);
    store.forget(ino, 1);
    assert_eq!(store.used_pages(), 0);
    assert!(store.file(ino).is_err());
}

#[test]
fn a_failed_sync_loses_what_it_should_have_kept() {
    let mut store = Store::new(CAPACITY);
    let ino = file(&mut store, "a");
    store.write(ino, 0, &[1; 4096]).unwrap();
    store.sync(ino).unwrap();
    store.write(ino, 0, &[2; 4096]).unwrap();
    store.fail_sync(ino).unwrap();
    store.write(ino, 4096, &[3; 4096]).unwrap();
    store.sync(ino).unwrap();
    assert_eq!(read(&store, ino), [[2; 4096], [3; 4096]].concat());
    store.cut(Loss::All);
    assert_eq!(read(&store, ino), [[1; 4096], [3; 4096]].concat());
}

#[test]
fn a_torn_write_leaves_its_first_sectors() {
    let mut seen = BTreeMap::new();
    for seed in 0..200 {
        let mut store = Store::new(CAPACITY);
        let ino = file(&mut store, "a");
        store.write(ino, 0, &[1; 4096]).unwrap();
        store.sync(ino).unwrap();
        store.write(ino, 2000, b"forgotten: not the last").unwrap();
        store.write(ino, 3072, &[2; 1536]).unwrap();
        store.cut(Loss::TornLast { seed });
        let left = read(&store, ino);
        let torn = left.iter().filter(|byte| **byte == 2).count();
        let old = 4096 - torn.min(1024);
        assert!(left[..3072] == [1; 3072] && left[3072..3072 + torn].iter().all(|b| *b == 2));
        assert_eq!(left.len(), old + torn);
        *seen.entry(torn).or_insert(0) += 1;
    }
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [0, 512, 1024, 1536]);
}

#[test]
fn scattered_loss_keeps_some_sectors_of_each() {
    let mut store = Store::new(CAPACITY);
    let ino = file(&mut store, "a");
    store.write(ino, 0, &[1; 65_536]).unwrap();
    store.sync(ino).unwrap();
    store.write(ino, 0, &[2; 65_536]).unwrap();
    store.cut(Loss::Scattered { seed: 7 });
    let left = read(&store, ino);
    let new = left.chunks(512).filter(|sector| sector.iter().all(|byte| *byte == 2)).count();
    let old = left.chunks(512).filter(|sector| sector.iter().all(|byte| *byte == 1)).count();
    assert_eq!(new + old, 128);
    assert!((40..88).contains(&new), "{new}");
}

#[test]
fn space_is_counted() {
    let mut store = Store::new(4 * 4096);
    let ino = file(&mut store, "a");
    store.allocate(ino, 0..3 * 4096, false).unwrap();
    assert_eq!((store.used_pages(), store.file(ino).unwrap().content.size()), (3, 0));
    store.write(ino, 100, &[1; 8000]).unwrap();
    assert_eq!(store.used_pages(), 3);
    assert!(store.write(ino, 12_000, &[1; 5000]).is_err());
    store.write(ino, 12_000, &[1; 4000]).unwrap();
    assert!(store.allocate(ino, 4 * 4096..4 * 4096 + 1, true).is_err());
    store.full = true;
    store.write(ino, 0, &[1; 4096]).unwrap();
    store.punch(ino, 0..4096).unwrap();
    assert_eq!(store.used_pages(), 3);
    assert!(store.write(ino, 0, &[1; 1]).is_err());
    store.truncate(ino, 0).unwrap();
    assert_eq!(store.used_pages(), 0);
}

#[test]
fn zeroing_without_room_leaves_what_was_there() {
    let mut store = Store::new(CAPACITY);
    let ino = file(&mut store, "a");
    store.write(ino, 0, &[1; 8192]).unwrap();
    store.full = true;
    assert!(store.zero(ino, 4096..12_288, true).is_err());
    assert_eq!(read(&store, ino), [1; 8192]);
    // What is allocated already needs no room.
    store.zero(ino, 4096..8192, true).unwrap();
    assert_eq!(read(&store, ino), [[1; 4096], [0; 4096]].concat());
    assert_eq!(store.used_pages(), 2);
}

#[test]
fn a_directory_goes_only_when_empty() {
    let mut store = Store::new(CAPACITY);
    let kind = Kind::Directory { entries: BTreeMap::new(), parent: ROOT };
    let directory = store.create(ROOT, OsStr::new("d"), node(kind)).unwrap();
    store.create(directory, OsStr::new("a"), node(Kind::File)).unwrap();
    assert!(store.remove(ROOT, OsStr::new("d"), true).is_err());
    assert!(store.remove(ROOT, OsStr::new("d"), false).is_err());
    store.remove(directory, OsStr::new("a"), false).unwrap();
    store.remove(ROOT, OsStr::new("d"), true).unwrap();
    assert_eq!(find(&store, "d"), None);
}
