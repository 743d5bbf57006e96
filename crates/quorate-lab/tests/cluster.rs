//! Three real servers on hosts and disks that fail.

mod common;

use common::{built, plan};
use mysql::prelude::Queryable;
use quorate_lab::cluster::{Cluster, Plan};
use quorate_lab::disk::Loss;
use quorate_lab::process::Activity;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

const CLIENT_TIMEOUT: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_secs(120);

fn run(cluster: &Cluster, node: usize, statement: &str) {
    let mut connection = cluster.connect(node, CLIENT_TIMEOUT).unwrap();
    if let Err(error) = connection.query_drop(statement) {
        panic!("node{}: {statement}: {error}", node + 1);
    }
}

fn rows(cluster: &Cluster, node: usize) -> Vec<u32> {
    let mut connection = cluster.connect(node, CLIENT_TIMEOUT).unwrap();
    connection.query_drop("SET SESSION wsrep_sync_wait = 1").unwrap();
    connection.query("SELECT id FROM t.t ORDER BY id").unwrap()
}

/// One story, as making a cluster takes longer than each of its chapters.
#[test]
fn nodes_are_hurt_in_every_way_and_come_back() {
    let cluster = Cluster::start(&plan()).unwrap();
    run(&cluster, 0, "CREATE DATABASE t");
    run(&cluster, 0, "CREATE TABLE t.t (id INT PRIMARY KEY)");
    let all: Vec<usize> = cluster.nodes().collect();
    cluster.wait_level(&all, LIMIT).unwrap();
    run(&cluster, 2, "INSERT INTO t.t VALUES (1)");
    cluster.wait_level(&all, LIMIT).unwrap();
    assert!(cluster.leader().is_some());

    // Power cuts: of one, then of all.
    let lost = cluster.cut_power(&[2], Loss::All).unwrap();
    assert!(lost[0].bytes > 0, "flush=0 leaves nothing unsynced? {lost:?}");
    run(&cluster, 0, "INSERT INTO t.t VALUES (2)");
    cluster.start_node(2).unwrap();
    cluster.wait_synced(&[2], LIMIT).unwrap();
    run(&cluster, 0, "INSERT INTO t.t VALUES (3)");
    cluster.cut_power(&all, Loss::TornLast { seed: 1 }).unwrap();
    assert!(all.iter().all(|node| cluster.activity(*node) == Activity::Gone));
    cluster.start_all().unwrap();
    cluster.wait_level(&all, LIMIT).unwrap();
    for node in &all {
        assert_eq!(rows(&cluster, *node), [1, 2, 3]);
    }

    // A paused node costs the others nothing.
    let leader = cluster.leader().unwrap();
    let (paused, other) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.pause(paused).unwrap();
    assert_eq!(cluster.activity(paused), Activity::Paused);
    run(&cluster, other, "INSERT INTO t.t VALUES (4)");
    cluster.resume(paused).unwrap();

    // A minority goes on only when it is joined again.
    cluster.network().isolate(other);
    run(&cluster, leader, "INSERT INTO t.t VALUES (5)");
    cluster.network().heal();
    cluster.wait_level(&all, LIMIT).unwrap();

    cluster.kill(&[other]).unwrap();
    cluster.wipe(other).unwrap();
    cluster.start_node(other).unwrap();
    cluster.wait_level(&all, LIMIT).unwrap();
    cluster.stop(paused, LIMIT).unwrap();
    cluster.start_node(paused).unwrap();
    cluster.wait_level(&all, LIMIT).unwrap();
    for node in &all {
        assert_eq!(rows(&cluster, *node), [1, 2, 3, 4, 5]);
    }
    starved(&cluster, other);

    let name = cluster.network().hosts()[0].name().to_owned();
    let logs = cluster.error_log(0);
    drop(cluster);
    let namespaces = Command::new("ip").args(["netns", "list"]).output().unwrap().stdout;
    assert!(!String::from_utf8(namespaces).unwrap().contains(&name));
    assert!(!logs.exists());
}

/// A starved server gets its share of a processor and no more, however much it has to do.
fn starved(cluster: &Cluster, node: usize) {
    const SHARE: f64 = 0.1;
    let pid = cluster.pid(node).unwrap();
    // Clock ticks of a hundredth of a second, in user and in system mode: fields 14 and 15.
    let used = || -> f64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    };
    let mut connection = cluster.connect(node, LIMIT).unwrap();
    cluster.starve(node, Some(SHARE)).unwrap();
    let (begin, before) = (Instant::now(), used());
    connection.query_drop("SELECT BENCHMARK(700000, SHA2('x', 256))").unwrap();
    let share = (used() - before) / begin.elapsed().as_secs_f64();
    cluster.starve(node, None).unwrap();
    assert!(share < SHARE * 1.5, "{share} of a processor");
}

/// A server and a logger are half of the votes each: neither does without the other.
#[test]
fn a_logger_is_started_with_all_others() {
    let logger_program = built("QUORATE_BIN", "quorate");
    let cluster = Cluster::start(&Plan { nodes: 1, loggers: 1, logger_program, ..plan() }).unwrap();
    run(&cluster, 0, "CREATE DATABASE t");
    run(&cluster, 0, "CREATE TABLE t.t (id INT PRIMARY KEY)");
    cluster.kill(&[0, 1]).unwrap();
    cluster.start_all().unwrap();
    cluster.wait_votes(&[1], LIMIT).unwrap();
    cluster.wait_synced(&[0], LIMIT).unwrap();
    run(&cluster, 0, "INSERT INTO t.t VALUES (1)");
    assert_eq!(rows(&cluster, 0), [1]);
}
