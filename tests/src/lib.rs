//! Tools for tests on clusters of real servers. A test sees a cluster as a user does: it runs the
//! `quorate` command, connects clients, kills processes and reads error logs.
//!
//! * [`agent`]: an agent beside a node.
//! * [`cluster`]: a cluster that is made for one test and gone after it.
//! * [`writers`]: clients that insert and remember what was acknowledged, and when.
//! * [`crash`]: kill under load, start again, count what is lost.
//! * [`power`]: power cuts of all servers under load, on disks that forget what was not synced.
//! * [`failover`]: one fault under load; how long nothing was acknowledged.
//! * [`sysbench`]: the standard load, and comparing all nodes' tables after it.
//! * [`tools`]: what load balancers, probes and exporters ask a node, and conclude.
//! * [`program`]: a balancer, an exporter, Prometheus beside a cluster.
//! * [`probe`]: what the machine itself takes for a sync or a network round trip.
//! * [`standalone`]: a server without replication, to compare with.
//! * [`mtr`]: MariaDB's own test suites, with this provider and with Galera.
//!
//! Environment: `QUORATE_BIN` the command under test (default: the release build);
//! `QUORATE_PROVIDER` another provider than its own; `QUORATE_TEST_DIR` where clusters are made
//! (default /var/tmp); `QUORATE_TEST_FULL=1` full sizes; `QUORATE_TEST_KEEP=1` keep directories.

pub mod agent;
pub mod cluster;
pub mod crash;
pub mod failover;
pub mod mtr;
pub mod power;
pub mod probe;
pub mod program;
pub mod standalone;
pub mod sysbench;
pub mod tools;
pub mod writers;

pub use cluster::TestCluster;

use anyhow::{ensure, Result};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Waits until it is `done`, and says how long that took; a minute is too long.
pub fn await_that(what: &str, mut done: impl FnMut() -> Result<bool>) -> Result<Duration> {
    let begin = Instant::now();
    while !done()? {
        ensure!(begin.elapsed() < PATIENCE, "{what} did not happen");
        thread::sleep(POLL);
    }
    println!("{what}: after {:?}", begin.elapsed());
    Ok(begin.elapsed())
}

/// `small` normally, `full` when asked for full sizes.
pub fn sized<T>(small: T, full: T) -> T {
    if std::env::var_os("QUORATE_TEST_FULL").is_some() {
        full
    } else {
        small
    }
}
