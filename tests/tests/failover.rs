//! A leader that leaves, dies or hangs costs a short pause and no row.

use anyhow::Result;
use quorate_lab::cluster::{Cluster, Plan};
use quorate_lab::net::Topology;
use quorate_tests::failover::{Failover, Fault};
use quorate_tests::{power, sized};
use std::sync::Arc;
use std::time::Duration;

/// Far above what `make failover` measures: the machine may be busy with other things.
const WORST: Duration = Duration::from_secs(6);

#[test]
fn writes_go_on_after_each_fault_of_the_leader() -> Result<()> {
    let cluster = Cluster::start(&Plan::new(power::quorate()))?;
    let mut failover = Failover::new(Arc::new(cluster), Topology::Lan)?;
    let faults = [
        Fault::LeaveLeader,
        Fault::KillLeader,
        Fault::StopLeader,
        Fault::PartitionLeader,
        Fault::PowerLeader,
        Fault::Switchover,
    ];
    for fault in &faults[..sized(4, faults.len())] {
        let outcome = failover.round(*fault)?;
        println!("{}: {outcome:?}", fault.name());
        assert_eq!(outcome.lost, 0, "{}", fault.name());
        assert!(outcome.gap < WORST, "{}: {:?}", fault.name(), outcome.gap);
    }
    Ok(())
}
