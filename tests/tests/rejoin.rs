//! A node that was away catches up from logs, without a script; an emptied one by state transfer.

use anyhow::{ensure, Result};
use mysql::prelude::Queryable;
use quorate_tests::sysbench::{self, Load, Tables};
use quorate_tests::writers::{self, create_table, missing};
use quorate_tests::{sized, TestCluster};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const SCRIPT: &str = "Running: 'wsrep_sst_";
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_node_killed_under_load_needs_no_state_transfer() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    let away = cluster.followers()?[0];
    let others: Vec<u16> = cluster.all().into_iter().filter(|node| *node != away).collect();
    let writers = writers::start(&cluster, &others, 4, 1);
    thread::sleep(Duration::from_secs(2));
    cluster.quorate(&["kill", &away.to_string()])?;
    let before = cluster.error_log(away)?.len();
    thread::sleep(Duration::from_secs(sized(10, 30)));
    cluster.quorate(&["start", &away.to_string()])?;
    let acks = writers.stop();

    let log = cluster.error_log(away)?.split_off(before);
    assert!(!log.contains(SCRIPT), "a state transfer script ran:\n{log}");
    assert_eq!(cluster.node_status(away)?["state"], "Synced");
    for node in cluster.all() {
        assert_eq!(missing(&cluster, node, &acks.ids())?, Vec::<u64>::new());
    }
    cluster.passed()
}

#[test]
fn an_emptied_node_is_filled_by_mariabackup_and_by_rsync() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let tables = Tables { count: 4, rows: 5_000 };
    sysbench::prepare(&cluster, tables, 1)?;
    let node = cluster.followers()?[0];
    let name = node.to_string();
    for (method, encrypts) in
        [("mariabackup", "Decrypting with cert='"), ("rsync", "Using stunnel for SSL encryption")]
    {
        cluster.set_extra(&format!("wsrep_sst_method = {method}"))?;
        for other in cluster.all() {
            cluster.sql(other, &format!("SET GLOBAL wsrep_sst_method = '{method}'"))?;
        }
        cluster.quorate(&["stop", &name])?;
        fs::remove_dir_all(cluster.node_dir(node).join("data"))?;
        if method == "mariabackup" {
            // The other method finds the old log still there.
            let log = cluster.node_dir(node).join("log");
            if log.exists() {
                fs::remove_dir_all(log)?;
            }
        }
        let before = cluster.error_log(node)?.len();
        cluster.quorate(&["start", &name])?;
        let log = cluster.error_log(node)?.split_off(before);
        assert!(log.contains(&format!("{SCRIPT}{method}")), "no {method} in:\n{log}");
        assert!(log.contains(encrypts), "the state came in the clear:\n{log}");

        let nodes = cluster.all();
        let load = Load { script: "oltp_write_only", clients: 6, seconds: 3, nodes: &nodes };
        sysbench::run(&cluster, tables, &load)?;
        sysbench::compare(&cluster, tables)?;
    }
    cluster.passed()
}

/// The donor's script sleeps ten seconds before it sends, whoever listens then.
#[test]
fn a_joiner_killed_in_its_transfer_and_started_again_comes_up_by_itself() -> Result<()> {
    let cluster = TestCluster::up(3, "wsrep_sst_method = mariabackup")?;
    let node = cluster.followers()?[0];
    during_transfer(&cluster, node, |_| cluster.quorate(&["kill", &node.to_string()]))?;
    let before = cluster.error_log(node)?.len();
    start_when_scripts_have_ended(&cluster, node)?;
    let log = cluster.error_log(node)?.split_off(before);
    assert!(log.contains(&format!("{SCRIPT}mariabackup")), "no transfer in:\n{log}");
    assert!(log.contains("may still be sending the state"), "{log}");
    cluster.passed()
}

/// By a signal, for which a service manager starts a server again; and the next start succeeds.
#[test]
fn a_joiner_whose_donor_dies_asks_for_another_start() -> Result<()> {
    let cluster = TestCluster::up(3, "wsrep_sst_method = mariabackup")?;
    let node = cluster.followers()?[0];
    let (donor, said) = during_transfer(&cluster, node, |donor| {
        // Somebody cannot wait for the end of the transfer with a DDL.
        cluster
            .sql(donor, "SET GLOBAL wsrep_provider_options = 'quorate.transfer_holds_ddl=no'")?;
        cluster.sql(donor, "CREATE DATABASE test_now")?;
        assert_eq!(cluster.node_status(donor)?["state"], "Donor/Desynced");
        cluster.quorate(&["kill", &donor.to_string()])?;
        Ok(donor)
    })?;
    assert!(said.contains("SIGABRT"), "{said}");
    start_when_scripts_have_ended(&cluster, node)?;
    start_when_scripts_have_ended(&cluster, donor)?;
    cluster.passed()
}

#[test]
fn ddl_waits_on_the_donor_alone_and_does_not_keep_it_from_stopping() -> Result<()> {
    let cluster = TestCluster::up(3, "wsrep_sst_method = mariabackup")?;
    let node = cluster.followers()?[0];
    let tables = |at: u16| -> Result<Vec<String>> {
        let query = "SELECT table_name FROM information_schema.tables \
                     WHERE table_schema = 'test_ddl' ORDER BY 1";
        Ok(cluster.connect(at)?.query(query)?)
    };
    let (donor, said) = during_transfer(&cluster, node, |donor| {
        let others: Vec<u16> =
            cluster.all().into_iter().filter(|n| ![node, donor].contains(n)).collect();
        cluster.sql(others[0], "CREATE DATABASE test_ddl")?;
        cluster.sql(others[0], "CREATE TABLE test_ddl.a (id INT PRIMARY KEY)")?;
        cluster.sql(others[0], "INSERT INTO test_ddl.a VALUES (1)")?;
        thread::scope(|scope| -> Result<()> {
            // It may succeed or not, as its server ends meanwhile.
            scope.spawn(|| cluster.sql(donor, "CREATE DATABASE test_late"));
            let waiting = "SELECT COUNT(*) FROM information_schema.processlist \
                           WHERE info = 'CREATE DATABASE test_late'";
            let mut connection = cluster.connect(donor)?;
            let end = Instant::now() + LIMIT;
            while connection.query_first(waiting)? != Some(1) {
                ensure!(Instant::now() < end, "the DDL on the donor does not wait");
                thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(tables(donor)?, Vec::<String>::new());
            assert_eq!(cluster.node_status(donor)?["state"], "Donor/Desynced");
            cluster.quorate(&["stop", &donor.to_string()])?;
            Ok(())
        })?;
        Ok(donor)
    })?;
    assert!(said.contains("SIGABRT"), "{said}");
    // It died and has a vote still; the donor took leave.
    start_when_scripts_have_ended(&cluster, node)?;
    start_when_scripts_have_ended(&cluster, donor)?;
    for node in cluster.all() {
        assert_eq!(tables(node)?, ["a"], "node {node}");
    }
    cluster.passed()
}

/// Empties `node`, starts it, and does something when its donor has begun, before that one sends.
/// What that gave, and what the start of `node` said.
fn during_transfer<T>(
    cluster: &TestCluster,
    node: u16,
    act: impl FnOnce(u16) -> Result<T>,
) -> Result<(T, String)> {
    let name = node.to_string();
    cluster.quorate(&["stop", &name])?;
    for folder in ["data", "log"] {
        fs::remove_dir_all(cluster.node_dir(node).join(folder))?;
    }
    let others: Vec<u16> = cluster.all().into_iter().filter(|other| *other != node).collect();
    let donor = || -> Result<Option<u16>> {
        for other in &others {
            if cluster.error_log(*other)?.contains("Sleeping before data transfer") {
                return Ok(Some(*other));
            }
        }
        Ok(None)
    };
    thread::scope(|scope| {
        // Ends with an error, as its server does.
        let start = scope.spawn(|| cluster.try_quorate(&["start", &name]));
        let end = Instant::now() + LIMIT;
        let donor = loop {
            if let Some(donor) = donor()? {
                break donor;
            }
            ensure!(Instant::now() < end, "no donor began");
            thread::sleep(Duration::from_millis(20));
        };
        let result = act(donor)?;
        let output = start.join().expect("a starter panicked")?;
        Ok((result, String::from_utf8_lossy(&output.stderr).into_owned()))
    })
}

/// A script that moves the state ends a moment after its server.
fn start_when_scripts_have_ended(cluster: &TestCluster, node: u16) -> Result<()> {
    let end = Instant::now() + LIMIT;
    while let Err(error) = cluster.quorate(&["start", &node.to_string()]) {
        let text = format!("{error:#}");
        ensure!(text.contains("is in use by") && Instant::now() < end, "{text}");
    }
    Ok(())
}

#[test]
fn a_node_away_for_longer_than_the_log_fetches_the_state_by_itself() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    // What fills the log here is as long as it looks.
    let small = "quorate.log_retain=32M;quorate.segment_size=8M;quorate.compress=none";
    cluster.start("", &["--provider-options", small])?;
    cluster.sql(1, "CREATE DATABASE test_away")?;
    cluster.sql(1, "CREATE TABLE test_away.a (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)")?;
    let away = cluster.followers()?[0];
    let writer = cluster.leader()?;
    let had: u64 = cluster.variable(away, "wsrep_last_committed")?;
    cluster.quorate(&["kill", &away.to_string()])?;
    // The leader keeps its log for the killed one until it takes that to be gone, and lets it go with a later snapshot.
    let mut statements = 0;
    while cluster.variable::<u64>(writer, "wsrep_local_cached_downto")? <= had + 1 {
        assert!(statements < 600, "of a log of 32 MiB, {statements} times 3.6 MB are kept");
        // None of them in parts, which are kept a while for a server that loses its power.
        cluster.sql(
            writer,
            "INSERT INTO test_away.a (v) SELECT REPEAT('x', 900) FROM test_away.seq_1_to_4000",
        )?;
        statements += 1;
    }
    let before = cluster.error_log(away)?.len();
    cluster.quorate(&["start", &away.to_string()])?;
    let log = cluster.error_log(away)?.split_off(before);
    assert!(log.contains("away for longer than the group keeps its log"), "{log}");
    assert!(log.contains(SCRIPT), "no state transfer in:\n{log}");
    for node in cluster.all() {
        let mut conn = cluster.connect(node)?;
        conn.query_drop("SET SESSION wsrep_sync_wait = 15")?;
        let rows: Option<u64> = conn.query_first("SELECT COUNT(*) FROM test_away.a")?;
        assert_eq!(rows, Some(4_000 * statements), "node {node}");
    }
    cluster.passed()
}
