//! Power cuts of all nodes at once, with `innodb_flush_log_at_trx_commit=0`: every acknowledged row
//! is there afterwards. `make power-rounds` runs many more, and then the same with Galera, which loses
//! rows: the alarm works.

use anyhow::Result;
use quorate_lab::disk::Loss;
use quorate_lab::random::Random;
use quorate_tests::power::{quorate, PowerRounds};
use quorate_tests::sized;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn nothing_acknowledged_is_lost() -> Result<()> {
    let mut rounds = PowerRounds::new(quorate(), Random::fresh())?;
    for _ in 0..sized(3, 50) {
        let round = rounds.round()?;
        println!("{round:?}");
        assert_eq!(round.lost, 0, "acknowledged rows are lost: {round:?}");
    }
    Ok(())
}

/// The transfer scripts do not sync what they write.
#[test]
fn a_node_that_was_just_filled_by_state_transfer_comes_back() -> Result<()> {
    let mut rounds = PowerRounds::new(quorate(), Random::fresh())?;
    rounds.round()?;
    let cluster = &rounds.cluster;
    cluster.kill(&[2])?;
    cluster.wipe(2)?;
    cluster.start_node(2)?;
    cluster.wait_synced(&[2], LIMIT)?;
    let lost = cluster.cut_power(&[2], Loss::All)?;
    println!("{lost:?}");
    cluster.start_node(2)?;
    let all: Vec<usize> = cluster.nodes().collect();
    cluster.wait_level(&all, LIMIT)?;
    let round = rounds.round()?;
    assert_eq!(round.lost, 0, "acknowledged rows are lost: {round:?}");
    Ok(())
}
