//! What is refused at open, and what the refusal says.

use quorate_consensus::{Entry, EntryKind};
use quorate_wal::{Wal, WalError, WalOptions};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

fn open(dir: &Path, create: bool) -> Result<Wal, WalError> {
    let options = WalOptions { segment_bytes: 1 << 20, ..WalOptions::new(dir) };
    Wal::open(options, create, Box::new(|_| {})).map(|(wal, _)| wal)
}

fn refusal(dir: &Path, create: bool) -> String {
    open(dir, create).err().expect("refused").to_string()
}

fn listing(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|e| (e.file_name().to_string_lossy().into_owned(), fs::read(e.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_directory_is_created_only_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("a/b");
    assert!(refusal(&log, false).contains("holds no log"));
    assert!(!log.exists());
    open(&log, true).unwrap().close();
    open(&log, false).unwrap().close();
}

#[test]
fn a_foreign_directory_is_left_untouched() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ibdata1"), "somebody's tables").unwrap();
    let before = listing(dir.path());
    let error = refusal(dir.path(), true);
    assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
    assert!(error.contains("ibdata1") && error.contains("left untouched"), "{error}");
    assert_eq!(listing(dir.path()), before);

    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("meta"), vec![b'x'; 10_000]).unwrap();
    let before = listing(dir.path());
    assert!(refusal(dir.path(), true).contains("`meta` is not one of a log"));
    assert_eq!(listing(dir.path()), before);
}

#[test]
fn a_log_without_its_meta_file_is_no_empty_directory() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), true).unwrap().close();
    fs::remove_file(dir.path().join("meta")).unwrap();
    let error = refusal(dir.path(), true);
    assert!(error.contains("/meta is missing"), "{error}");
}

/// The log's directory with term files of this format, whose checksum covers the bytes up to `end`.
fn of_format(version: u8, end: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), true).unwrap().close();
    let path = dir.path().join("meta");
    let mut meta = fs::read(&path).unwrap();
    for slot in [0, 4096] {
        meta[slot + 8] = version;
        meta[slot + end..slot + 512].fill(0);
        let crc = crc32c::crc32c(&meta[slot..slot + 12]);
        let crc = crc32c::crc32c_append(crc, &meta[slot + 16..slot + end]);
        meta[slot + 12..slot + 16].copy_from_slice(&crc.to_le_bytes());
    }
    fs::write(&path, meta).unwrap();
    dir
}

#[test]
fn another_format_is_refused_by_name() {
    for (version, end) in [(1, 160), (3, 512)] {
        let dir = of_format(version, end);
        let before = listing(dir.path());
        let error = refusal(dir.path(), true);
        let found = format!("written by another version of Quorate (format {version}, ");
        assert!(error.contains(&found) && error.contains("that wrote it"), "{error}");
        assert_eq!(listing(dir.path()), before);
    }
}

#[test]
fn a_damaged_version_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), true).unwrap().close();
    let path = dir.path().join("meta");
    let whole = fs::read(&path).unwrap();
    for version in [1, 3] {
        let mut meta = whole.clone();
        (meta[8], meta[4096 + 8]) = (version, version);
        fs::write(&path, meta).unwrap();
        let error = refusal(dir.path(), true);
        assert!(error.contains("both copies of term, vote and identity"), "{error}");
    }
}

#[test]
fn two_on_one_directory_is_one_error() {
    let dir = tempfile::tempdir().unwrap();
    let wal = open(dir.path(), true).unwrap();
    let error = refusal(dir.path(), true);
    assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
    assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
    wal.close();
    open(dir.path(), true).unwrap().close();
}

#[test]
fn a_file_in_place_of_the_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refusal(&file, true);
    assert!(error.contains(&format!("cannot list {}", file.display())), "{error}");
}

/// A log at rest marks itself: then even its very last entry is known to have been there.
#[test]
fn damage_to_the_last_entry_of_an_idle_log_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (send, reports) = channel();
    let options = WalOptions { segment_bytes: 1 << 20, ..WalOptions::new(dir.path()) };
    let on_sync = Box::new(move |report: Result<_, _>| {
        send.send(report.is_ok()).expect("the test listens");
    });
    let (wal, _) = Wal::open(options, true, on_sync).unwrap();
    let data = bytes::Bytes::from_static(b"the last word");
    wal.append(&[Entry::new(1, 1, EntryKind::Data, data)]);
    assert!(reports.recv_timeout(Duration::from_secs(20)).unwrap());
    let name = "log-0000000000000001";
    let find = || {
        let bytes = fs::read(dir.path().join(name)).unwrap();
        let at = bytes.windows(13).position(|w| w == b"the last word").unwrap();
        (at, bytes)
    };
    // The mark is the only thing that comes after the entry.
    let (at, bytes) = loop {
        let (at, bytes) = find();
        if bytes[at + 16..at + 64].iter().any(|b| *b != 0) {
            break (at, bytes);
        }
        std::thread::yield_now();
    };
    // As a crash would leave it: without closing.
    let copy = 'copying: loop {
        let copy = tempfile::tempdir().unwrap();
        for file in fs::read_dir(dir.path()).unwrap() {
            let file = file.unwrap();
            match fs::copy(file.path(), copy.path().join(file.file_name())) {
                // It got another name since it was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => continue 'copying,
                copied => copied.unwrap(),
            };
        }
        break copy;
    };
    let mut damaged = bytes;
    damaged[at] ^= 1;
    fs::write(copy.path().join(name), damaged).unwrap();
    let error = refusal(copy.path(), false);
    assert!(error.contains(name) && error.contains("is damaged at byte"), "{error}");
}
