//! The lab's disk beside a real one: ext4 on a loop device, which loses its power by being shut down.
//! What either keeps and loses must follow the same rules, for programs of one thread, of several, and
//! for InnoDB.
//!
//! As root, like all tests of the lab: without loop devices they fail, they are not skipped.
//! `REAL_DISK_ROUNDS` and `REAL_DISK_SEED` make them longer and others.

mod innodb;
mod place;
mod same;
mod threads;

use place::{lab_disk, Ext4, Place};

const SMALL: u64 = 64 << 20;
const LARGE: u64 = 1 << 30;

fn rounds(otherwise: u64) -> u64 {
    number("REAL_DISK_ROUNDS").unwrap_or(otherwise)
}

fn seed() -> u64 {
    number("REAL_DISK_SEED").unwrap_or(1)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn one_program_finds_the_same_on_both() {
    let (disk, ext4) = (lab_disk(SMALL).unwrap(), Ext4::new(SMALL).unwrap());
    let places: [&dyn Place; 2] = [&disk, &ext4];
    same::both_do_the_same(places, 200 * rounds(10), seed()).unwrap();
}

#[test]
fn threads_find_what_they_synced_on_the_labs_disk() {
    threads::keep_what_was_synced(&lab_disk(SMALL).unwrap(), rounds(5), seed()).unwrap();
}

#[test]
fn threads_find_what_they_synced_on_ext4() {
    threads::keep_what_was_synced(&Ext4::new(SMALL).unwrap(), rounds(5), seed()).unwrap();
}

#[test]
fn innodb_comes_back_on_the_labs_disk() {
    innodb::comes_back(&lab_disk(LARGE).unwrap(), rounds(2), seed()).unwrap();
}

#[test]
fn innodb_comes_back_on_ext4() {
    innodb::comes_back(&Ext4::new(LARGE).unwrap(), rounds(2), seed()).unwrap();
}
