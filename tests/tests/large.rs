//! Transactions of hundreds of megabytes beside small ones. They take their time, and small ones
//! behind them in the order of commits wait for it; but no connection is cut, nobody is elected, and
//! nobody's transaction fails.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use quorate_cli::server::ProcessId;
use quorate_tests::writers::{create_table, door, missing, Client, Writers};
use quorate_tests::{await_that, sized, TestCluster};
use rustix::process::Signal;
use std::thread;
use std::time::{Duration, Instant};

/// What a node says when its connections or the group are in trouble.
const TROUBLE: [&str; 4] = [
    "leads the group now",
    "knows of no leader at present",
    "connection to member",
    "could not be proposed",
];
const CALM: Duration = Duration::from_secs(2);
const WRITERS_PER_NODE: usize = 4;
/// Of a small one that waits behind the largest, on a slow disk.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn large_transactions_disturb_nobody() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    cluster.sql(1, "CREATE TABLE written.large (id INT PRIMARY KEY, filler LONGBLOB NOT NULL)")?;
    let (leader, followers) = (cluster.leader()?, cluster.followers()?);
    let before = trouble(&cluster)?;
    uncompressed(&cluster)?;
    // From the node that forwards its proposals, and from the one that leads.
    let from = [followers[1], leader];
    let sizes = sized(&[150][..], &[100, 300, 700]);
    let large = sizes.iter().flat_map(|megabytes| from.map(|node| (*megabytes, node)));
    for (run, (megabytes, node)) in large.enumerate() {
        let writers = start_small(&cluster, &[leader, followers[0]], run as u64 + 1);
        thread::sleep(CALM);
        let begun = Instant::now();
        let inserted = insert(&cluster, node, run, megabytes);
        let took = begun.elapsed();
        let arrived = inserted.and_then(|()| {
            for node in cluster.all() {
                await_that(&format!("the rows on node{node}"), || {
                    rows(&cluster, node, run, megabytes)
                })?;
            }
            Ok(())
        });
        let acks = writers.stop();
        println!(
            "{megabytes} MB on node{node} took {took:.1?}; small ones: {} failed, longest gap {:.1?}, in \
             each second {:?}",
            acks.failed.len(),
            acks.longest_gap(),
            acks.per_second()
        );
        arrived?;
        assert!(acks.failed.is_empty(), "small ones failed: {:?}", acks.failed);
        assert_eq!(missing(&cluster, node, &acks.ids())?, [0; 0]);
    }
    let new: Vec<String> =
        trouble(&cluster)?.into_iter().filter(|line| !before.contains(line)).collect();
    assert!(new.is_empty(), "trouble:\n{}", new.join("\n"));
    cluster.passed()
}

/// The parts of a transaction are in the log when a member is killed: it goes on where its own server lives, and
/// leaves nothing behind where that one is dead.
#[test]
fn a_kill_in_the_middle_leaves_a_large_transaction_whole_or_nowhere() -> Result<()> {
    const MEGABYTES: usize = 200;
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    cluster.sql(1, "CREATE TABLE written.large (id INT PRIMARY KEY, filler LONGBLOB NOT NULL)")?;
    for run in 0..sized(4, 20) {
        let (leader, followers) = (cluster.leader()?, cluster.followers()?);
        let (origin, victim) = match run % 4 {
            0 => (followers[0], followers[0]),
            1 => (followers[0], leader),
            2 => (leader, followers[1]),
            _ => (leader, leader),
        };
        let survivors: Vec<u16> =
            cluster.all().into_iter().filter(|node| *node != victim).collect();
        let watched = if victim == leader { followers[1] } else { leader };
        let parts = 5 + 7 * run as u64 % 60;
        // Those that were started again compress.
        uncompressed(&cluster)?;
        let pid = cluster.node_status(victim)?["pid"].as_u64().context("the victim runs")?;
        let victims_process = ProcessId::of(pid as u32)?;
        let last_index = || cluster.variable::<u64>(watched, "wsrep_quorate_last_index");
        let small = start_small(&cluster, &survivors, run as u64 + 1);
        let from = last_index()?;
        let inserted = thread::scope(|scope| {
            let insert = scope.spawn(|| insert(&cluster, origin, run, MEGABYTES));
            let killed = await_that(&format!("{parts} parts in the log"), || {
                Ok(last_index()? >= from + parts)
            });
            let killed = killed.and_then(|_| victims_process.signal(Signal::KILL));
            killed.map(|_| insert.join().expect("the client panicked"))
        })?;
        let acks = small.stop();
        println!(
            "node{victim} was killed, node{origin} wrote: {inserted:?}; small ones on the others: {} failed, \
             longest gap {:.1?}",
            acks.failed.len(),
            acks.longest_gap()
        );
        assert!(acks.failed.is_empty(), "small ones failed: {:?}", acks.failed);
        assert_eq!(inserted.is_ok(), victim != origin, "{inserted:?}");
        cluster.quorate(&["up", "--timeout", "120"])?;
        cluster.wait_level(&cluster.all(), PATIENCE)?;
        for node in cluster.all() {
            let expected = if inserted.is_ok() { MEGABYTES } else { 0 };
            assert!(rows(&cluster, node, run, expected)?, "node{node} has other rows");
            assert_eq!(missing(&cluster, node, &acks.ids())?, [0; 0]);
        }
    }
    cluster.passed()
}

/// All of a transaction travels: compressed, these rows would be a part or two.
fn uncompressed(cluster: &TestCluster) -> Result<()> {
    let set = "SET GLOBAL wsrep_provider_options = 'quorate.compress=none'";
    cluster.all().into_iter().try_for_each(|node| cluster.sql(node, set))
}

fn start_small(cluster: &TestCluster, nodes: &[u16], run: u64) -> Writers {
    let patient = |node| Client { timeout: PATIENCE, ..Client::of(door(&cluster.socket(node))) };
    let clients = nodes.iter().flat_map(|node| vec![patient(*node); WRITERS_PER_NODE]);
    Writers::start(clients.collect(), run)
}

/// One transaction of so many rows of a megabyte.
fn insert(cluster: &TestCluster, node: u16, run: usize, megabytes: usize) -> Result<()> {
    let statement = format!(
        "INSERT INTO written.large SELECT {run} * 10000 + seq, REPEAT('x', 1000000) FROM \
         written.seq_1_to_{megabytes}"
    );
    cluster.sql(node, &statement)
}

fn rows(cluster: &TestCluster, node: u16, run: usize, expected: usize) -> Result<bool> {
    let select = format!("SELECT COUNT(*) FROM written.large WHERE id DIV 10000 = {run}");
    let count: Option<usize> = cluster.connect(node)?.query_first(select)?;
    Ok(count.context("a count")? == expected)
}

/// Lines of all error logs that tell of trouble.
fn trouble(cluster: &TestCluster) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for node in cluster.all() {
        let log = cluster.error_log(node)?;
        let told = log.lines().filter(|line| TROUBLE.iter().any(|sign| line.contains(sign)));
        found.extend(told.map(|line| format!("node{node}: {line}")));
    }
    Ok(found)
}
