//! What is measured is what happened: sysbench's report beside the servers' own count, and the meter beside
//! what can be known.

mod common;

use common::{alone, start};
use mysql::prelude::Queryable;
use quorate_bench::drive::sysbench::{prepare, run, Load, Tables, SCRIPTS};
use quorate_bench::meter::{machine, measure, Meter};
use quorate_lab::net::Topology;
use std::fs;
use std::time::Duration;

const TABLES: Tables = Tables { count: 2, rows: 1000 };
const LIMIT: Duration = Duration::from_secs(120);

/// Runs each script, and compares what it reports with how far the members have come.
fn assert_counted(name: &str, scripts: &[&str]) {
    let fleet = start(name, 3);
    prepare(&fleet, TABLES).unwrap();
    let meter = Meter::new(&fleet);
    let primary = fleet.primary().unwrap();
    let mut connection = fleet.connect(primary).unwrap();
    let rows: Option<(u32, u32)> =
        connection.query_first("SELECT COUNT(*), MAX(id) FROM sbtest.sbtest2").unwrap();
    assert_eq!(rows, Some((TABLES.rows, TABLES.rows)));

    for script in scripts {
        let load = Load { script, clients: 4, seconds: 3, members: &[primary] };
        let before = fleet.applied(primary).unwrap();
        let outcome = run(&fleet, &meter, TABLES, &load).unwrap();
        fleet.wait_level(LIMIT).unwrap();
        let counted = (fleet.applied(primary).unwrap() - before) as f64;
        let (report, used) = (&outcome.report, &outcome.used);
        println!("{name} {script}: {counted} counted; {outcome:?}");
        assert!(report.curve.len() >= 2, "{outcome:?}");
        assert!(used.cpu_s.clone().unwrap() > 0.0 && used.bytes > 0.0 && used.lab_cpu_s > 0.0);
        if *script == "oltp_read_only" {
            assert_eq!(counted, 0.0);
            continue;
        }
        assert_eq!(counted, outcome.warm_up + report.transactions, "{name} {script}");
        assert!(used.bytes / report.transactions > 100.0, "{outcome:?}");
    }
}

#[test]
fn sysbench_reports_what_quorate_counts() {
    let _alone = alone();
    assert_counted("quorate", &SCRIPTS);
}

#[test]
fn sysbench_reports_what_the_peers_count() {
    let _alone = alone();
    for peer in ["galera", "async", "semisync"] {
        assert_counted(peer, &["oltp_write_only"]);
    }
}

#[test]
#[ignore = "needs MySQL: QUORATE_MYSQL_ROOT names its folder"]
fn sysbench_reports_what_group_replication_counts() {
    let _alone = alone();
    assert_counted("gr-eventual", &["oltp_write_only"]);
}

/// A lone server that syncs both logs at each commit of its only client.
#[test]
fn syncs_are_counted_by_commit() {
    let _alone = alone();
    let fleet = start("standalone", 1);
    let meter = Meter::new(&fleet);
    let mut connection = fleet.connect(0).unwrap();
    connection.query_drop("CREATE DATABASE t").unwrap();
    connection.query_drop("CREATE TABLE t.t (id INT PRIMARY KEY)").unwrap();
    let before = meter.read().unwrap();
    for row in 0..200 {
        connection.query_drop(format!("INSERT INTO t.t VALUES ({row})")).unwrap();
    }
    let used = before.until(&meter.read().unwrap());
    let per_commit = used.syncs.clone().unwrap() / 200.0;
    assert!((1.9..3.5).contains(&per_commit), "{used:?}");
    let before = meter.read().unwrap();
    fleet.stop(0, LIMIT).unwrap();
    fleet.start_again(0).unwrap();
    fleet.wait_up(&[0]).unwrap();
    let used = before.until(&meter.read().unwrap());
    assert!(used.syncs.is_err() && used.cpu_s.is_err(), "{used:?}");
    drop(meter);
    drop(fleet);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let own = format!("quorate-lab-{}.", std::process::id());
    assert!(!mounts.contains(&own), "{mounts}");
}

#[test]
fn the_machine_and_its_networks_are_measured() {
    let _alone = alone();
    let machine = machine().unwrap();
    println!("{machine:?}");
    assert!(machine.processors > 0 && machine.memory_bytes > 1 << 28 && machine.sync_us > 1.0);
    assert!(!machine.kernel.is_empty() && !machine.disk.is_empty());
    let measured = measure(Topology::TenMs).unwrap();
    println!("{measured:?}");
    for (made, found) in measured.round_trips_ms.into_iter().zip(measured.measured_ms) {
        assert_eq!(made, 10.0);
        assert!(found >= made && found < made * 1.5, "{measured:?}");
    }
    assert!(measured.packet_cost_us > 0.0);
}
