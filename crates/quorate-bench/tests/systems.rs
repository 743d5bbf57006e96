//! Each system forms its group, keeps its members equal, and takes a member back: one that was killed, and
//! one that lost everything.

mod common;

use common::{alone, start};
use mysql::prelude::Queryable;
use quorate_bench::fleet::Fleet;
use std::fs;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

fn write(fleet: &Fleet, rows: std::ops::Range<u32>) {
    let mut connection = fleet.connect(fleet.primary().unwrap()).unwrap();
    for row in rows {
        connection.query_drop(format!("INSERT INTO t.t VALUES ({row})")).unwrap();
    }
}

fn assert_equal(fleet: &Fleet, rows: u32) {
    fleet.wait_level(LIMIT).unwrap();
    for member in fleet.members() {
        let mut connection = fleet.connect(member).unwrap();
        let found: Vec<u32> = connection.query("SELECT id FROM t.t ORDER BY id").unwrap();
        assert_eq!(found, (0..rows).collect::<Vec<_>>(), "node{}", member + 1);
    }
}

/// Names that this process gave to what the lab makes.
fn left_behind() -> Vec<String> {
    let own = format!("quorate-lab-{}.", std::process::id());
    let folders = ["/var/tmp", "/run/netns", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&own)).collect()
}

fn story(name: &str, members: usize) {
    let _alone = alone();
    let fleet = start(name, members);
    // An error if a variable is not as described.
    let setup = fleet.setup().unwrap();
    println!("{}: {}; {:?}", setup.title, setup.version, setup.read_back);
    let mut connection = fleet.connect(fleet.primary().unwrap()).unwrap();
    connection.query_drop("CREATE DATABASE t").unwrap();
    connection.query_drop("CREATE TABLE t.t (id INT PRIMARY KEY)").unwrap();
    write(&fleet, 0..10);
    assert_equal(&fleet, 10);
    let before = fleet.applied(0).unwrap();
    write(&fleet, 10..20);
    fleet.wait_level(LIMIT).unwrap();
    assert_eq!(fleet.applied(0).unwrap() - before, 10, "a transaction counts as one");

    let primary = fleet.primary().unwrap();
    let others: Vec<usize> = fleet.others(primary).collect();
    let hurt = *others.last().unwrap_or(&primary);
    match others.is_empty() {
        // Alone and relaxed, it may lose what it has acknowledged.
        true => fleet.stop(hurt, LIMIT).unwrap(),
        false => fleet.kill(hurt).unwrap(),
    }
    fleet.start_again(hurt).unwrap();
    fleet.wait_up(&[hurt]).unwrap();
    write(&fleet, 20..30);
    assert_equal(&fleet, 30);
    if let Some(lost) = others.last() {
        fleet.stop(*lost, LIMIT).unwrap();
        fleet.wipe(*lost).unwrap();
        fleet.make_joiner(*lost).unwrap();
        fleet.join(*lost).unwrap();
        fleet.wait_up(&[*lost]).unwrap();
        write(&fleet, 30..40);
        assert_equal(&fleet, 40);
    }
    drop(fleet);
    assert_eq!(left_behind(), Vec::<String>::new());
}

#[test]
fn quorate() {
    story("quorate", 3);
}

#[test]
fn quorate_with_other_protection() {
    story("quorate-plain", 3);
    story("quorate-sealed", 3);
}

#[test]
fn galera() {
    story("galera", 3);
}

#[test]
fn galera_relaxed() {
    story("galera-relaxed", 2);
}

#[test]
fn asynchronous() {
    story("async", 3);
}

#[test]
fn semi_synchronous() {
    story("semisync", 3);
}

#[test]
fn standalone() {
    story("standalone", 3);
}

#[test]
fn standalone_relaxed() {
    story("standalone-relaxed", 3);
}

#[test]
#[ignore = "needs MySQL: QUORATE_MYSQL_ROOT names its folder"]
fn group_replication() {
    story("gr-eventual", 3);
    story("gr-tuned", 3);
    story("gr-after", 3);
}
