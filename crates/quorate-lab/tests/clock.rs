//! Wall clocks that jump.

mod common;

use mysql::prelude::Queryable;
use quorate_lab::cluster::{Cluster, Plan};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const CLIENT_TIMEOUT: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_secs(120);
const HOUR: i64 = 3600;

/// How far a server's clock is from ours, in seconds.
fn offset(connection: &mut mysql::Conn) -> i64 {
    let there: i64 = connection.query_first("SELECT UNIX_TIMESTAMP(SYSDATE())").unwrap().unwrap();
    there - SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

#[test]
fn clocks_jump_and_writes_go_on() {
    let plan = Plan { clocks: true, ..common::plan() };
    let cluster = Cluster::start(&plan).unwrap();
    let mut connections: Vec<mysql::Conn> =
        cluster.nodes().map(|node| cluster.connect(node, CLIENT_TIMEOUT).unwrap()).collect();
    connections[0].query_drop("CREATE DATABASE t").unwrap();
    connections[0].query_drop("CREATE TABLE t.t (id INT AUTO_INCREMENT PRIMARY KEY)").unwrap();
    let all: Vec<usize> = cluster.nodes().collect();
    cluster.wait_level(&all, LIMIT).unwrap();
    for (node, jump) in [(0, HOUR), (1, -HOUR), (2, 24 * HOUR), (0, -24 * HOUR), (2, 0)] {
        cluster.set_clock(node, jump).unwrap();
        let begin = Instant::now();
        while (offset(&mut connections[node]) - jump).abs() > 1 {
            assert!(begin.elapsed() < CLIENT_TIMEOUT, "node{} does not notice", node + 1);
        }
        for connection in &mut connections {
            let begin = Instant::now();
            for _ in 0..20 {
                connection.query_drop("INSERT INTO t.t VALUES ()").unwrap();
            }
            assert!(begin.elapsed() < CLIENT_TIMEOUT);
        }
    }
    cluster.wait_level(&all, LIMIT).unwrap();
    // Also of a server that starts at another time.
    let mut pids: Vec<i32> = all.iter().map(|node| cluster.pid(*node).unwrap()).collect();
    cluster.kill(&[1]).unwrap();
    cluster.start_node(1).unwrap();
    cluster.wait_level(&all, LIMIT).unwrap();
    let mut connection = cluster.connect(1, CLIENT_TIMEOUT).unwrap();
    assert!((offset(&mut connection) + HOUR).abs() <= 1);
    let rows: Option<u32> = connection.query_first("SELECT COUNT(*) FROM t.t").unwrap();
    assert_eq!(rows, Some(5 * 3 * 20));

    // What the library keeps for its processes goes with them, also with those that were killed.
    pids.push(cluster.pid(1).unwrap());
    assert!(pids.iter().any(|pid| kept().contains(pid)));
    drop(cluster);
    let left: Vec<i32> = kept().into_iter().filter(|kept| pids.contains(kept)).collect();
    assert!(left.is_empty(), "kept for {left:?}");
}

/// The processes for which libfaketime keeps shared memory.
fn kept() -> Vec<i32> {
    let names = std::fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.to_str()?.rsplit_once("faketime_shm_")?.1.parse().ok()).collect()
}
