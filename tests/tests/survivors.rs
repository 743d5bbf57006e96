//! Few are left, and lose nothing: the two whose appliers stood still when the leader died for good,
//! and the last of five that left one after the other.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_lab::cluster::{Cluster, Plan};
use quorate_tests::power::quorate;
use quorate_tests::writers::{self, create_table_at, missing_at};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

fn rows(connection: &mut Conn) -> Result<Option<u64>> {
    Ok(connection.query_first("SELECT COUNT(*) FROM t.t")?)
}

fn leader(cluster: &Cluster) -> usize {
    let end = Instant::now() + LIMIT;
    loop {
        match cluster.leader() {
            Some(leader) => return leader,
            None => assert!(Instant::now() < end, "nobody leads"),
        }
        thread::sleep(POLL);
    }
}

/// Published of a group whose log is in memory: what the followers had received, but not applied,
/// was gone with them, though the leader had acknowledged it.
#[test]
fn what_frozen_followers_had_not_applied_is_there_when_the_leader_is_not() -> Result<()> {
    let cluster = Cluster::start(&Plan::new(quorate()))?;
    let all: Vec<usize> = cluster.nodes().collect();
    let leader = leader(&cluster);
    let mut on_leader = cluster.connect(leader, TIMEOUT)?;
    on_leader.query_drop("CREATE DATABASE t")?;
    on_leader.query_drop("CREATE TABLE t.t (id INT PRIMARY KEY AUTO_INCREMENT, v CHAR(60))")?;
    cluster.wait_level(&all, LIMIT)?;

    let followers: Vec<usize> = all.into_iter().filter(|node| *node != leader).collect();
    let mut frozen = Vec::new();
    for node in &followers {
        let mut connection = cluster.connect(*node, TIMEOUT)?;
        connection.query_drop("SET SESSION wsrep_sync_wait = 0")?;
        // Holds back appliers, not the group's log.
        connection.query_drop("FLUSH TABLES WITH READ LOCK")?;
        frozen.push(connection);
    }
    for _ in 0..100 {
        on_leader.query_drop("INSERT INTO t.t (v) VALUES ('acknowledged')")?;
    }
    for connection in &mut frozen {
        assert_eq!(rows(connection)?, Some(0), "this follower is not frozen");
    }
    cluster.kill(&[leader])?;
    cluster.wipe(leader)?;
    cluster.kill(&followers)?;

    for node in &followers {
        cluster.start_node(*node)?;
    }
    cluster.wait_level(&followers, LIMIT)?;
    for (done, node) in followers.iter().enumerate() {
        let mut connection = cluster.connect(*node, TIMEOUT)?;
        connection.query_drop("SET SESSION wsrep_sync_wait = 1")?;
        assert_eq!(rows(&mut connection)?, Some(100 + done as u64), "node{}", node + 1);
        connection.query_drop("INSERT INTO t.t (v) VALUES ('of the two')")?;
    }
    // The lost one comes back empty, and is one of three again.
    cluster.start_node(leader)?;
    let all: Vec<usize> = cluster.nodes().collect();
    cluster.wait_level(&all, LIMIT)?;
    assert_eq!(rows(&mut cluster.connect(leader, TIMEOUT)?)?, Some(102));
    Ok(())
}

#[test]
fn five_leave_down_to_one_that_still_writes_and_return() -> Result<()> {
    let cluster = Cluster::start(&Plan { nodes: 5, ..Plan::new(quorate()) })?;
    let sockets: Vec<PathBuf> = cluster.nodes().map(|node| cluster.socket(node)).collect();
    create_table_at(&sockets[0])?;
    let all: Vec<usize> = cluster.nodes().collect();
    cluster.wait_level(&all, LIMIT)?;
    let last = (leader(&cluster) + 1) % all.len();
    let size = |expected: &str| {
        let end = Instant::now() + LIMIT;
        let shown = || Some(cluster.status(last).ok()?.get("wsrep_cluster_size")?.to_owned());
        while shown().as_deref() != Some(expected) {
            assert!(Instant::now() < end, "{:?} servers, not {expected}", shown());
            thread::sleep(POLL);
        }
    };

    let writers = writers::start_at(&sockets[last..=last], 4, 1);
    let mut left = Vec::new();
    while left.len() + 1 < all.len() {
        // Who leads goes first, if it is not to be the last.
        let here = |node: &usize| *node != last && !left.contains(node);
        let leads = cluster.leader().filter(here);
        let node = leads.or_else(|| all.iter().copied().find(here)).expect("some are here");
        cluster.stop(node, LIMIT)?;
        left.push(node);
        size(&(all.len() - left.len()).to_string());
    }
    writers.wait_acked(Instant::now(), LIMIT).context("the last one does not write")?;
    // Two by themselves, then both others at once.
    for returning in [&left[..1], &left[1..2], &left[2..]] {
        returning.iter().try_for_each(|node| cluster.start_node(*node))?;
        cluster.wait_synced(returning, LIMIT)?;
    }
    let acks = writers.stop();
    println!("{} acknowledged, longest pause {:?}", acks.len(), acks.longest_gap());

    cluster.wait_level(&all, LIMIT)?;
    size("5");
    for socket in &sockets {
        assert_eq!(missing_at(socket, &acks.ids())?, Vec::<u64>::new(), "{}", socket.display());
    }
    // They count again: two of five may be lost.
    let two: Vec<usize> = all.iter().copied().filter(|node| *node != last).take(2).collect();
    cluster.kill(&two)?;
    cluster.connect(last, TIMEOUT)?.query_drop("CREATE DATABASE written_by_three")?;
    Ok(())
}
