//! Clients that are told of their commits once other servers have applied them, too; and clients that are slowed down
//! while a server falls behind.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_tests::sysbench::{self, Load, Tables};
use quorate_tests::{await_that, TestCluster};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

const TABLES: Tables = Tables { count: 4, rows: 2_000 };
/// Longer than a commit takes that waits for nobody, by far.
const AT_ONCE: Duration = Duration::from_secs(1);
/// A server that says nothing is in the view for longer than this.
const IN_VIEW: Duration = Duration::from_secs(3);

fn set(cluster: &TestCluster, node: u16, options: &str) -> Result<()> {
    cluster.sql(node, &format!("SET GLOBAL wsrep_provider_options = '{options}'"))
}

/// Three servers with a table; the leader, and another.
fn cluster() -> Result<(TestCluster, u16, u16)> {
    let cluster = TestCluster::up(3, "")?;
    let leader = cluster.leader()?;
    let other = cluster.followers()?[0];
    cluster.sql(leader, "CREATE DATABASE shop")?;
    cluster.sql(leader, "CREATE TABLE shop.t (id INT PRIMARY KEY)")?;
    cluster.wait_level(&cluster.all(), Duration::from_secs(30))?;
    Ok((cluster, leader, other))
}

/// Inserts on a thread of its own; what it is told comes with the warnings.
fn insert(mut connection: Conn, id: u32) -> Receiver<mysql::Result<Vec<String>>> {
    let (told, answer) = channel();
    thread::spawn(move || {
        let warnings = |connection: &mut Conn| {
            let rows: Vec<(String, u32, String)> = connection.query("SHOW WARNINGS")?;
            Ok(rows.into_iter().map(|(_, _, text)| text).collect())
        };
        let inserted = connection.query_drop(format!("INSERT INTO shop.t VALUES ({id})"));
        // Nobody listens if the test has failed meanwhile.
        let _ = told.send(inserted.and_then(|()| warnings(&mut connection)));
    });
    answer
}

fn count(cluster: &TestCluster, node: u16) -> Result<u32> {
    let count = cluster.connect(node)?.query_first("SELECT COUNT(*) FROM shop.t")?;
    count.context("no count")
}

#[test]
fn a_client_is_told_of_its_commit_when_all_can_read_it() -> Result<()> {
    let (cluster, leader, other) = cluster()?;
    cluster.signal(other, Signal::STOP)?;
    let at_once = insert(cluster.connect(leader)?, 1).recv_timeout(AT_ONCE)??;
    assert_eq!(at_once, Vec::<String>::new(), "by default nobody is waited for");

    set(&cluster, leader, "quorate.consistency=after:2")?;
    insert(cluster.connect(leader)?, 2).recv_timeout(AT_ONCE)?.context("two have it")?;
    set(&cluster, leader, "quorate.consistency=after")?;
    let waits = insert(cluster.connect(leader)?, 3);
    assert_eq!(waits.recv_timeout(AT_ONCE).err(), Some(RecvTimeoutError::Timeout));
    // It is in force on its own server all the same, and in the way of nothing.
    set(&cluster, leader, "quorate.consistency=eventual")?;
    assert_eq!(count(&cluster, leader)?, 3);
    insert(cluster.connect(leader)?, 4).recv_timeout(AT_ONCE)??;
    cluster.signal(other, Signal::CONT)?;
    assert_eq!(waits.recv_timeout(IN_VIEW)??, Vec::<String>::new());
    assert!(count(&cluster, other)? >= 3);
    cluster.passed()
}

#[test]
fn with_the_groups_rule_no_read_after_a_commit_is_stale_anywhere() -> Result<()> {
    let (cluster, leader, other) = cluster()?;
    let rules = cluster.quorate(&["member", "rules", "--consistency", "after"])?;
    assert!(rules.contains("consistency=after"), "{rules}");
    await_that("the rule everywhere", || {
        let shown =
            |node| Ok(cluster.variable::<String>(node, "wsrep_quorate_rules")?.contains("after"));
        Ok(cluster.all().into_iter().map(shown).collect::<Result<Vec<_>>>()?.iter().all(|is| *is))
    })?;
    let mut connections = cluster
        .all()
        .into_iter()
        .map(|node| cluster.connect(node))
        .collect::<mysql::Result<Vec<_>>>()?;
    for id in 0..300 {
        let writer = id as usize % connections.len();
        connections[writer].query_drop(format!("INSERT INTO shop.t VALUES ({id})"))?;
        for (reader, connection) in connections.iter_mut().enumerate() {
            let read: Option<u32> =
                connection.query_first(format!("SELECT id FROM shop.t WHERE id = {id}"))?;
            assert_eq!(read, Some(id), "written by {writer}, read by {reader}");
        }
    }
    cluster.sql(other, "CREATE TABLE shop.u (id INT PRIMARY KEY)")?;
    connections[leader as usize % 3].query_drop("INSERT INTO shop.u VALUES (1)")?;

    // A server whose process ends leaves the view at once.
    let began = Instant::now();
    cluster.signal(other, Signal::KILL)?;
    insert(cluster.connect(leader)?, 1000).recv_timeout(IN_VIEW)??;
    println!("told {:?} after the kill of another server", began.elapsed());
    assert_eq!(cluster.variable::<String>(leader, "wsrep_quorate_not_applied")?, "0");
    cluster.passed()
}

#[test]
fn past_its_time_a_client_is_told_where_its_commit_is_not_applied() -> Result<()> {
    let (cluster, leader, other) = cluster()?;
    set(&cluster, leader, "quorate.consistency=after;quorate.consistency_timeout=PT1S")?;
    cluster.signal(other, Signal::STOP)?;
    let began = Instant::now();
    let warnings = insert(cluster.connect(leader)?, 1).recv_timeout(IN_VIEW)??;
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    let name = format!("not on node{other}");
    assert!(warnings.iter().any(|warning| warning.contains(&name)), "{warnings:?}");
    assert_eq!(cluster.variable::<String>(leader, "wsrep_quorate_not_applied")?, "1");
    assert!(cluster.error_log(leader)?.contains(&name));

    // Who is desynced, as for a backup, is not waited for.
    cluster.signal(other, Signal::CONT)?;
    cluster.wait_level(&cluster.all(), Duration::from_secs(30))?;
    let mut lock = cluster.connect(other)?;
    lock.query_drop("FLUSH TABLES WITH READ LOCK")?;
    await_that("a commit that waits for nobody", || {
        let id = 100 + count(&cluster, leader)?;
        Ok(insert(cluster.connect(leader)?, id).recv_timeout(IN_VIEW)??.is_empty())
    })?;
    drop(lock);
    cluster.passed()
}

/// How much was committed in each second from the first one with any commit on, until `ended`.
fn each_second(cluster: &TestCluster, node: u16, ended: &AtomicBool) -> Result<Vec<u64>> {
    let committed = || cluster.variable::<u64>(node, "wsrep_last_committed");
    let (mut last, mut each) = (committed()?, Vec::new());
    while !ended.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_secs(1));
        let now = committed()?;
        each.push(now - last);
        last = now;
    }
    let idle = each.iter().take_while(|count| **count == 0).count();
    Ok(each.split_off(idle))
}

/// A server that gets a twentieth of the time falls behind, however slow the others are here; its writers are slowed down, and never stopped.
#[test]
fn writers_are_slowed_down_while_a_server_is_behind_and_never_stopped() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    sysbench::prepare(&cluster, TABLES, 1)?;
    let leader = cluster.leader()?;
    let slow = cluster.followers()?[0];
    let limit = "quorate.flow_control=yes;quorate.flow_control_applied=100;\
                 quorate.flow_control_certified=100";
    cluster.all().into_iter().try_for_each(|node| set(&cluster, node, limit))?;
    let ended = AtomicBool::new(false);
    let (measured, committed) = thread::scope(|threads| {
        let watch = threads.spawn(|| each_second(&cluster, leader, &ended));
        let starve = threads.spawn(|| -> Result<()> {
            while !ended.load(Ordering::SeqCst) {
                cluster.signal(slow, Signal::STOP)?;
                thread::sleep(Duration::from_millis(190));
                cluster.signal(slow, Signal::CONT)?;
                thread::sleep(Duration::from_millis(10));
            }
            Ok(())
        });
        let nodes = [leader];
        let load = Load { script: "oltp_write_only", clients: 8, seconds: 8, nodes: &nodes };
        let measured = sysbench::run(&cluster, TABLES, &load);
        ended.store(true, Ordering::SeqCst);
        starve.join().expect("no panic")?;
        anyhow::Ok((measured?, watch.join().expect("no panic")?))
    })?;
    let paused: f64 = cluster.variable::<String>(leader, "wsrep_flow_control_paused")?.parse()?;
    let (held, slowing) = (
        cluster.variable::<String>(leader, "wsrep_flow_control_recv")?,
        cluster.variable::<String>(slow, "wsrep_flow_control_sent")?,
    );
    println!(
        "{:.0} transactions a second; paused {paused}, {held} s; slow for {slowing} s",
        measured.tps
    );
    assert!(paused > 0.05 && held.parse::<u32>()? > 2, "paused {paused}, {held} s");
    // The load may have ended before the last of them.
    let (_, whole) = committed.split_last().context("not a second was watched")?;
    assert!(whole.len() > 3 && !whole.contains(&0), "committed in each second: {committed:?}");
    sysbench::compare(&cluster, TABLES)?;
    await_that("the end of the quota", || {
        Ok(cluster.variable::<String>(slow, "wsrep_flow_control_requested")? == "false")
    })?;
    cluster.passed()
}
