//! A leader that leaves, dies or hangs costs a short pause and no row.

use anyhow::Result;
use quorate_tests::failover::{Failover, Fault};
use quorate_tests::TestCluster;
use std::time::Duration;

/// Far above what `make failover` measures: the machine may be busy with other things.
const WORST: Duration = Duration::from_secs(6);

#[test]
fn writes_go_on_after_each_fault_of_the_leader() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let mut failover = Failover::new(&cluster)?;
    for fault in [Fault::LeaveLeader, Fault::KillLeader, Fault::StopLeader] {
        let outcome = failover.round(fault)?;
        println!("{}: {outcome:?}", fault.name());
        assert_eq!(outcome.lost, 0, "{}", fault.name());
        assert!(outcome.gap < WORST, "{}: {:?}", fault.name(), outcome.gap);
    }
    cluster.passed()
}
