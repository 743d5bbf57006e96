//! Directories of members of released versions are gone on with.
//!
//! `formats/RELEASE` is the directory of a group's only member, which has saved a snapshot and filled
//! several segments; since 0.2.0 with a note of an order before the snapshot and one after it. A release with other formats of files than the one before
//! (`quorate_consensus::level`) adds its own:
//! `QUORATE_WRITE_FORMATS=1 cargo test -p quorate-live --test formats`

mod common;

use common::{Cluster, PATIENCE};
use quorate_consensus::level::NEWEST;
use quorate_consensus::Rules;
use std::fs;
use std::path::{Path, PathBuf};

/// Small, for what is kept in the repository.
const SEGMENT_BYTES: u64 = 64 << 10;
const ROWS: usize = 40;
/// Long enough for several segments, and so for a snapshot.
const ROW_BYTES: usize = 8 << 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let name = file.unwrap().file_name();
        // Segments that are made ahead are empty; the lock is the process's own.
        let name_text = name.to_string_lossy();
        if name_text != "lock" && !name_text.starts_with("spare") {
            fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

fn cluster(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, 1);
    let options = &mut cluster.nodes[0].options;
    options.segment_bytes = SEGMENT_BYTES;
    options.retain_bytes = SEGMENT_BYTES;
    cluster
}

fn write(folder: &Path) {
    let mut cluster = cluster("formats");
    let node = &mut cluster.nodes[0];
    node.start().unwrap();
    node.joined();
    // One order before the snapshot, and one after it.
    let rules = Rules { follows_writes: true, ..Rules::default() };
    node.wait("leadership", |node| node.status().is_leader);
    node.operator().set_rules(rules, PATIENCE).unwrap();
    node.wait("the note of it", |node| node.group().orders().len() == 1);
    let rows: Vec<String> = (0..ROWS).map(|_| node.propose_padded(ROW_BYTES)).collect();
    node.await_applied(&rows);
    node.operator().remove_member("nobody", PATIENCE).unwrap_err();
    node.wait("the note of it", |node| node.group().orders().len() == 2);
    node.kill();
    if folder.exists() {
        fs::remove_dir_all(folder).unwrap();
    }
    copy(&node.options.dir, folder);
}

#[test]
fn a_member_of_an_earlier_release_goes_on() {
    let newest = folder().join(NEWEST.release);
    if std::env::var_os("QUORATE_WRITE_FORMATS").is_some() {
        write(&newest);
    }
    assert!(newest.exists(), "{}: a release with formats of its own has no folder", NEWEST.release);
    for release in fs::read_dir(folder()).unwrap() {
        let release = release.unwrap().path();
        let mut cluster = cluster("formats");
        let node = &mut cluster.nodes[0];
        copy(&release, &node.options.dir);
        node.start().unwrap();
        node.joined();
        let mut rows: Vec<String> = (1..=ROWS).map(|serial| format!("n0/1/{serial}")).collect();
        rows.push(node.propose());
        node.await_applied(&rows);
        assert_eq!(node.shared.state.lock().applied, rows, "{}", release.display());
        let orders = node.group().orders();
        let done: Vec<bool> = orders.iter().map(|note| note.done).collect();
        match release.ends_with("0.1.0") {
            true => assert!(orders.is_empty(), "it did not note them"),
            false => assert_eq!(done, [true, false], "{}", release.display()),
        }
    }
}
