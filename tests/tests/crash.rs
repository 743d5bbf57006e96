//! kill -9 under load: every acknowledged row is there afterwards, on every node.
//! `make crash-rounds` runs many more rounds.

use anyhow::Result;
use quorate_tests::crash::CrashRounds;
use quorate_tests::{sized, TestCluster};

fn rounds(victims: &[usize]) -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let mut rounds = CrashRounds::new(&cluster)?;
    for count in victims {
        let round = rounds.round(*count)?;
        println!("{round:?}");
        assert!(round.lost.is_empty(), "acknowledged rows are lost: {round:?}");
    }
    cluster.passed()
}

#[test]
fn all_nodes_at_once() -> Result<()> {
    rounds(&vec![3; sized(4, 20)])
}

#[test]
fn one_or_two_nodes() -> Result<()> {
    let counts: Vec<usize> = (0..sized(4, 50)).map(|round| 1 + round % 2).collect();
    rounds(&counts)
}

/// The first position of a new cluster is not on disk yet: its content stands for seqno 0.
#[test]
fn all_nodes_right_after_birth() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    cluster.quorate(&["kill", "1", "2", "3"])?;
    cluster.quorate(&["up"])?;
    for node in cluster.all() {
        cluster.sql(node, &format!("INSERT INTO t.t VALUES ({node})"))?;
    }
    cluster.passed()
}
