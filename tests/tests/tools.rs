//! The checks of load balancers, operators and exporters, in every state that a node can be asked
//! in. `QUORATE_PROVIDER` runs the same with Galera: the table is what these tools see there. mysqld_exporter is there
//! itself, as Debian has it; clustercheck is in no package of Debian.
//!
//! Joining and Joined are not among them: the server takes no connection before it is Synced, with
//! either provider, so a node that fetches its state or catches up is down to all tools.

use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_tests::program::Program;
use quorate_tests::tools::{ask, exporter, Verdicts};
use quorate_tests::TestCluster;
use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// ProxySQL, MaxScale, clustercheck without and with donors, ready, alive, MySQLTuner content.
const SYNCED: [bool; 7] = [true; 7];
const DESYNCED: [bool; 7] = [false, false, false, true, false, true, false];
const OUT: [bool; 7] = [false; 7];

/// Status variables (`wsrep_...`) that dashboards and alerts read.
const READ: [&str; 32] = [
    "ready",
    "connected",
    "cluster_status",
    "cluster_conf_id",
    "local_state",
    "desync_count",
    "flow_control_paused",
    "flow_control_paused_ns",
    "flow_control_sent",
    "flow_control_recv",
    "local_recv_queue",
    "local_recv_queue_avg",
    "local_recv_queue_max",
    "local_send_queue",
    "local_send_queue_avg",
    "local_send_queue_max",
    "local_cert_failures",
    "local_bf_aborts",
    "cert_deps_distance",
    "replicated",
    "replicated_bytes",
    "received",
    "received_bytes",
    "last_committed",
    "local_cached_downto",
    "local_commits",
    "cert_index_size",
    "cert_interval",
    "apply_window",
    "commit_window",
    "thread_count",
    "cluster_weight",
];

/// All answers, taken while the node was in one state: (wsrep_local_state, verdicts).
fn asked(cluster: &TestCluster, node: u16) -> Result<(String, Verdicts)> {
    let mut conn = cluster.connect(node)?;
    let state = "SHOW STATUS LIKE 'wsrep_local_state'";
    loop {
        let before: Option<(String, String)> = conn.query_first(state)?;
        let verdicts = ask(&mut conn)?;
        let after = conn.query_first(state)?;
        if before == after {
            return Ok((before.context("no wsrep_local_state")?.1, verdicts));
        }
    }
}

fn await_state(cluster: &TestCluster, node: u16, state: &str) -> Result<Verdicts> {
    let end = Instant::now() + LIMIT;
    loop {
        let (found, verdicts) = asked(cluster, node)?;
        if found == state {
            return Ok(verdicts);
        }
        if Instant::now() > end {
            bail!("node {node} is in state {found}, not in {state}: {verdicts:?}");
        }
        thread::sleep(POLL);
    }
}

fn metric(cluster: &TestCluster, node: u16, name: &str) -> Result<f64> {
    let metrics = exporter(&mut cluster.connect(node)?)?;
    metrics.get(name).copied().with_context(|| format!("mysqld_exporter has no {name}"))
}

#[test]
fn each_state_is_what_the_tools_take_it_for() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;

    // Synced.
    for node in cluster.all() {
        let verdicts = await_state(&cluster, node, "4")?;
        assert_eq!(verdicts.row(), SYNCED, "node {node}: {verdicts:?}");
        assert_eq!(metric(&cluster, node, "wsrep_cluster_size")?, 3.0);
    }
    let indexes: Vec<f64> = cluster
        .all()
        .into_iter()
        .map(|node| metric(&cluster, node, "wsrep_local_index"))
        .collect::<Result<_>>()?;
    assert_eq!(indexes.iter().sum::<f64>(), 3.0, "MaxScale's master has the lowest: {indexes:?}");

    let metrics = exporter(&mut cluster.connect(1)?)?;
    assert_eq!(metrics["galera_gcache_size"], 128.0);
    assert_eq!(metrics["evs_repl_latency_parts"], 5.0);
    for name in READ {
        ensure!(metrics.contains_key(&format!("wsrep_{name}")), "no wsrep_{name} in {metrics:?}");
    }

    // Desynced, by hand. It goes on, and comes back.
    cluster.sql(2, "SET GLOBAL wsrep_desync = ON")?;
    let verdicts = await_state(&cluster, 2, "2")?;
    assert_eq!(verdicts.row(), DESYNCED, "{verdicts:?}");
    assert_eq!(verdicts.proxysql, "wsrep_desync=YES");
    assert_eq!(metric(&cluster, 2, "wsrep_desync_count")?, 1.0);
    cluster.sql(2, "INSERT INTO t.t VALUES (2)")?;
    cluster.sql(2, "SET GLOBAL wsrep_desync = OFF")?;
    assert_eq!(await_state(&cluster, 2, "4")?.row(), SYNCED);

    // Taken out by its operator.
    cluster.sql(3, "SET GLOBAL wsrep_reject_queries = ALL_KILL").ok();
    let rejecting = cluster.connect(3).and_then(|mut conn| conn.query_drop("SELECT 1 FROM t.t"));
    assert!(rejecting.is_err());
    cluster.sql(3, "SET GLOBAL wsrep_reject_queries = NONE")?;
    cluster.sql(3, "SET GLOBAL read_only = ON")?;
    let (_, verdicts) = asked(&cluster, 3)?;
    assert!(!verdicts.clustercheck && verdicts.proxysql.is_empty(), "a reader: {verdicts:?}");
    cluster.sql(3, "SET GLOBAL read_only = OFF")?;

    // Out of the cluster by its own will, and back.
    let address: String =
        cluster.connect(3)?.query_first("SELECT @@wsrep_cluster_address")?.context("address")?;
    cluster.sql(3, "SET GLOBAL wsrep_cluster_address = ''")?;
    let verdicts = await_state(&cluster, 3, "0")?;
    assert_eq!(verdicts.row(), OUT, "{verdicts:?}");
    assert_eq!(metric(&cluster, 3, "wsrep_connected")?, 0.0);
    cluster.sql(3, &format!("SET GLOBAL wsrep_cluster_address = '{address}'"))?;
    assert_eq!(await_state(&cluster, 3, "4")?.row(), SYNCED);

    // No majority.
    cluster.quorate(&["kill", "2"])?;
    cluster.quorate(&["kill", "3"])?;
    let verdicts = await_state(&cluster, 1, "0")?;
    assert_eq!(verdicts.row(), OUT, "{verdicts:?}");
    assert_eq!(verdicts.proxysql, "primary_partition=NO");
    assert_eq!(metric(&cluster, 1, "wsrep_cluster_status")?, 0.0);
    assert_eq!(metric(&cluster, 1, "wsrep_ready")?, 0.0);
    assert!(cluster.sql(1, "INSERT INTO t.t VALUES (3)").is_err());
    cluster.quorate(&["up"])?;
    for node in cluster.all() {
        assert_eq!(await_state(&cluster, node, "4")?.row(), SYNCED, "node {node}");
    }
    cluster.passed()
}

#[test]
fn a_donor_is_out_for_writers_and_alive_for_its_operator() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.quorate(&["stop", "3"])?;
    fs::remove_dir_all(cluster.node_dir(3).join("data"))?;
    let donor = thread::scope(|scope| -> Result<Verdicts> {
        let joiner = scope.spawn(|| cluster.quorate(&["start", "3"]));
        let mut seen = None;
        while seen.is_none() && !joiner.is_finished() {
            for node in [1, 2] {
                let (state, verdicts) = asked(&cluster, node)?;
                if state == "2" {
                    seen = Some(verdicts);
                    ensure!(cluster.connect(3).is_err(), "to all tools, who joins is down");
                }
            }
            thread::sleep(POLL);
        }
        joiner.join().expect("no panic")?;
        seen.context("nobody was seen as a donor")
    })?;
    assert_eq!(donor.row(), DESYNCED, "{donor:?}");
    assert_eq!(donor.proxysql, "wsrep_local_state=2");
    for node in cluster.all() {
        assert_eq!(await_state(&cluster, node, "4")?.row(), SYNCED, "node {node}");
    }
    cluster.passed()
}

/// The program itself, unchanged. It says what the server's status says, and what [`exporter`], which the other tests
/// use in its place, makes of it.
#[test]
fn mysqld_exporter_itself_says_what_the_status_says() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE USER exporter@'127.0.0.1' IDENTIFIED BY 'seen'")?;
    let rights = "PROCESS, REPLICATION CLIENT, SLAVE MONITOR, SELECT";
    cluster.sql(1, &format!("GRANT {rights} ON *.* TO exporter@'127.0.0.1'"))?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        let (server, port) = (cluster.base_port + 10 * node, cluster.base_port + 99);
        let program = Program::start("prometheus-mysqld-exporter", port, |command| {
            let source = format!("exporter:seen@(127.0.0.1:{server})/");
            command
                .env("DATA_SOURCE_NAME", source)
                .arg("--log.level=warn")
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        })?;
        says_the_status(&cluster, node, &program)?;
        cluster.sql(node, "SET GLOBAL wsrep_desync = ON")?;
        await_state(&cluster, node, "2")?;
        let said = says_the_status(&cluster, node, &program)?;
        assert_eq!(said["mysql_global_status_wsrep_local_state"], 2.0);
        cluster.sql(node, "SET GLOBAL wsrep_desync = OFF")?;
    }
    cluster.passed()
}

/// All that mysqld_exporter says, by series.
fn says_the_status(
    cluster: &TestCluster,
    node: u16,
    program: &Program,
) -> Result<BTreeMap<String, f64>> {
    let mut conn = cluster.connect(node)?;
    let before = exporter(&mut conn)?;
    let text = program.get("/metrics")?;
    let after = exporter(&mut conn)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.filter_map(|line| line.rsplit_once(' '));
    let said: BTreeMap<String, f64> =
        series.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect();

    // What changed meanwhile may be either.
    let stood = before.iter().filter(|(name, value)| after.get(*name) == Some(value));
    let ours: BTreeMap<&str, f64> =
        stood.filter_map(|(name, value)| Some((name.strip_prefix("wsrep_")?, *value))).collect();
    for (name, value) in &ours {
        let theirs = said.get(&format!("mysql_global_status_wsrep_{name}"));
        assert_eq!(theirs, Some(value), "wsrep_{name} of node {node}");
    }
    for name in READ {
        ensure!(ours.contains_key(name), "wsrep_{name} of node {node} does not stand still");
    }
    let latency = ["min_seconds", "avg_seconds", "max_seconds", "stdev", "sample_size"];
    for name in latency.map(|part| format!("mysql_galera_evs_repl_latency_{part}")) {
        ensure!(said.contains_key(&name), "no {name} of node {node}");
    }
    assert_eq!(said["mysql_galera_gcache_size_bytes"], f64::from(128 << 20));
    let group: Option<(String, String)> =
        conn.query_first("SHOW STATUS LIKE 'wsrep_cluster_state_uuid'")?;
    let label = format!("wsrep_cluster_state_uuid=\"{}\"", group.context("no group")?.1);
    let info = said.keys().find(|name| name.starts_with("mysql_galera_status_info"));
    ensure!(info.is_some_and(|info| info.contains(&label)), "{label} is not in {info:?}");
    Ok(said)
}

/// The server leaves the host out where `wsrep_node_address` is an IPv6 address without brackets.
#[test]
fn clients_are_told_where_a_node_with_an_ipv6_address_is() -> Result<()> {
    let extra =
        "wsrep_node_address = ::1\nwsrep_node_incoming_address = AUTO\nbind-address = 0.0.0.0";
    let cluster = TestCluster::up(1, extra)?;
    let mut conn = cluster.connect(1)?;
    let port: Option<u16> = conn.query_first("SELECT @@port")?;
    let told: Option<(String, String)> =
        conn.query_first("SHOW STATUS LIKE 'wsrep_incoming_addresses'")?;
    assert_eq!(told.context("a status")?.1, format!("[::1]:{}", port.context("a port")?));
    cluster.passed()
}
