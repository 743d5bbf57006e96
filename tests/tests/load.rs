//! Sysbench on one node and on all: no error but conflicts, and equal tables everywhere after it.

use anyhow::Result;
use quorate_tests::sysbench::{self, Load, Tables};
use quorate_tests::{sized, TestCluster};

#[test]
fn tables_are_equal_after_load_on_one_node_and_on_all() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let tables = Tables { count: 4, rows: sized(10_000, 50_000) };
    sysbench::prepare(&cluster, tables, 1)?;
    let all = cluster.all();
    for nodes in [&all[..1], &all[..]] {
        for script in ["oltp_write_only", "oltp_read_write"] {
            let load = Load { script, clients: 16, seconds: sized(8, 60), nodes };
            let measured = sysbench::run(&cluster, tables, &load)?;
            println!(
                "{script} on {} node(s): {:.0} transactions/s, {} conflicts",
                nodes.len(),
                measured.tps,
                measured.conflicts
            );
            sysbench::compare(&cluster, tables)?;
        }
    }
    cluster.passed()
}
