//! Power cuts of all nodes at once, with `innodb_flush_log_at_trx_commit=0`: every acknowledged row
//! is there afterwards. `make power-rounds` runs many more.

use anyhow::Result;
use quorate_lab::cluster::System;
use quorate_lab::random::Random;
use quorate_tests::power::{quorate, PowerRounds};
use quorate_tests::sized;

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

/// The alarm works: Galera at its usual settings loses rows here.
#[test]
fn a_system_that_loses_rows_is_noticed() -> Result<()> {
    let mut rounds = PowerRounds::new(System::galera()?, Random::fresh())?;
    let round = rounds.round()?;
    println!("{round:?}");
    assert!(round.lost > 0, "nothing was lost: {round:?}");
    Ok(())
}
