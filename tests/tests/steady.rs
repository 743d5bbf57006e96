//! The rate of writes is not zero in any second while a node that does not lead is killed, is
//! stopped, or comes back.

use anyhow::Result;
use quorate_tests::writers::{self, create_table};
use quorate_tests::{sized, TestCluster};
use rustix::process::Signal;
use std::thread;
use std::time::Duration;

#[test]
fn a_follower_in_trouble_does_not_stop_writes() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    let leader = cluster.leader()?;
    let followers = cluster.followers()?;
    let calm = Duration::from_secs(sized(3, 10));
    let trouble = Duration::from_secs(sized(8, 20));

    let writers = writers::start(&cluster, &[leader], 8, 1);
    thread::sleep(calm);
    cluster.quorate(&["kill", &followers[0].to_string()])?;
    thread::sleep(trouble);
    cluster.quorate(&["start", &followers[0].to_string()])?;
    thread::sleep(calm);
    cluster.signal(followers[1], Signal::STOP)?;
    thread::sleep(trouble);
    cluster.signal(followers[1], Signal::CONT)?;
    thread::sleep(calm);
    let acks = writers.stop();

    println!("rows per second: {:?}", acks.per_second());
    println!("longest time without an acknowledgement: {:?}", acks.longest_gap());
    assert!(acks.per_second().iter().all(|count| *count > 0));
    cluster.wait_level(&cluster.all(), Duration::from_secs(60))?;
    cluster.passed()
}
