//! Writes do not stop for seconds while a node that does not lead is killed, is stopped, or comes back.

use anyhow::Result;
use quorate_tests::writers::{self, create_table};
use quorate_tests::{sized, TestCluster};
use rustix::process::Signal;
use std::thread;
use std::time::{Duration, Instant};

/// More than a busy disk takes, and less than it takes to give up a node that is silent.
const GAP: Duration = Duration::from_secs(3);

#[test]
fn a_follower_in_trouble_does_not_stop_writes() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    let leader = cluster.leader()?;
    let followers = cluster.followers()?;
    let calm = Duration::from_secs(sized(3, 10));
    let trouble = Duration::from_secs(sized(8, 20));

    let writers = writers::start(&cluster, &[leader], 8, 1);
    writers.wait_acked(Instant::now(), Duration::from_secs(60))?;
    let begun = Instant::now();
    thread::sleep(calm);
    cluster.quorate(&["kill", &followers[0].to_string()])?;
    thread::sleep(trouble);
    cluster.quorate(&["start", &followers[0].to_string()])?;
    thread::sleep(calm);
    cluster.signal(followers[1], Signal::STOP)?;
    thread::sleep(trouble);
    cluster.signal(followers[1], Signal::CONT)?;
    thread::sleep(calm);
    let ended = Instant::now();
    let acks = writers.stop();

    let gap = acks.longest_gap_in(begun, ended);
    println!("rows per second: {:?}", acks.per_second());
    println!("longest time without an acknowledgement: {gap:?}");
    assert!(gap < GAP, "{gap:?} without a row: {:?}", acks.per_second());
    cluster.wait_level(&cluster.all(), Duration::from_secs(60))?;
    cluster.passed()
}
