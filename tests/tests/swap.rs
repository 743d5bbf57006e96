//! Galera to Quorate and back with one line of configuration changed (`wsrep_provider`): the same
//! history, the same data, and no state transfer where none is due.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_tests::cluster::{library_path, shown};
use quorate_tests::sysbench::{self, Load, Tables};
use quorate_tests::TestCluster;
use std::fs;
use std::path::Path;

const GALERA: &str = "/usr/lib/galera/libgalera_smm.so";
/// In the log of a node that fetches its data from another.
const TRANSFER: &str = "--role 'joiner'";
const TABLES: Tables = Tables { count: 2, rows: 2_000 };
/// A cluster of Galera's begins with a transfer to each node; the other method's donor sleeps ten seconds first.
const QUICK: &str = "wsrep_sst_method = rsync";

struct GraState {
    uuid: String,
    seqno: i64,
    safe: bool,
}

fn grastate(cluster: &TestCluster, node: u16) -> Result<GraState> {
    let text = fs::read_to_string(cluster.node_dir(node).join("data/grastate.dat"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned()).with_context(|| format!("no {name} in {text}"))
    };
    let safe = field("safe_to_bootstrap:")? == "1";
    Ok(GraState { uuid: field("uuid:")?, seqno: field("seqno:")?.parse()?, safe })
}

/// By the book: one after the other, node1 last.
fn stop(cluster: &TestCluster) -> Result<Vec<GraState>> {
    for node in cluster.all().into_iter().rev() {
        cluster.quorate(&["stop", &node.to_string()])?;
    }
    let states: Vec<_> =
        cluster.all().into_iter().map(|n| grastate(cluster, n)).collect::<Result<_>>()?;
    let safe: Vec<bool> = states.iter().map(|state| state.safe).collect();
    assert_eq!(safe, [true, false, false], "only the last one may begin the cluster again");
    assert!(states.iter().all(|state| state.uuid == states[0].uuid));
    Ok(states)
}

fn ours() -> Result<String> {
    Ok(library_path().to_str().context("the provider's path")?.to_owned())
}

/// As `galera_new_cluster` on node1 and a plain start of the others. Returns what the nodes'
/// error logs have got since.
fn start(cluster: &TestCluster, provider: &str) -> Result<Vec<String>> {
    let lengths: Vec<usize> =
        cluster.all().iter().map(|n| Ok(cluster.error_log(*n)?.len())).collect::<Result<_>>()?;
    cluster.quorate(&["up", "--provider", provider, "--new-cluster-on", "node1"])?;
    let logs = cluster.all().into_iter().zip(lengths);
    logs.map(|(node, length)| Ok(cluster.error_log(node)?.split_off(length))).collect()
}

fn write_everywhere(cluster: &TestCluster) -> Result<()> {
    let nodes = cluster.all();
    // Its tables were made on node1: the others have them once they have applied that.
    for node in &nodes {
        let waits = "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT COUNT(*) FROM sbtest.sbtest1";
        cluster.sql(*node, waits)?;
    }
    let load = Load { script: "oltp_write_only", clients: 4, seconds: 2, nodes: &nodes };
    sysbench::run(cluster, TABLES, &load)?;
    Ok(())
}

fn position(cluster: &TestCluster) -> Result<(String, i64)> {
    let mut conn = cluster.connect(1)?;
    let query = "SELECT GROUP_CONCAT(VARIABLE_VALUE ORDER BY VARIABLE_NAME SEPARATOR ' ') \
        FROM information_schema.GLOBAL_STATUS \
        WHERE VARIABLE_NAME IN ('WSREP_CLUSTER_STATE_UUID', 'WSREP_LAST_COMMITTED')";
    let text: String = conn.query_first(query)?.context("no position")?;
    let (uuid, seqno) = text.split_once(' ').context("no position")?;
    Ok((uuid.to_owned(), seqno.parse()?))
}

#[test]
fn a_galera_cluster_goes_over_and_back_as_one_history() -> Result<()> {
    let cluster = TestCluster::unstarted(3, Some(Path::new(GALERA)))?;
    cluster.start(QUICK, &[])?;
    sysbench::prepare(&cluster, TABLES, 1)?;
    write_everywhere(&cluster)?;
    let left = stop(&cluster)?;
    // Each goodbye of Galera's takes a seqno: equal data, but not equal numbers.
    assert_eq!(left[0].seqno - left[2].seqno, 2);

    let logs = start(&cluster, &ours()?)?;
    for (node, log) in cluster.all().into_iter().zip(&logs) {
        ensure!(
            !log.contains(TRANSFER),
            "node {node} had the same data, but got a transfer:\n{log}"
        );
    }
    let (uuid, seqno) = position(&cluster)?;
    assert_eq!(uuid, left[0].uuid, "the history goes on");
    assert!(seqno > left[0].seqno, "{seqno} after {}", left[0].seqno);
    sysbench::compare(&cluster, TABLES)?;
    write_everywhere(&cluster)?;
    sysbench::compare(&cluster, TABLES)?;

    // A crash of all, as ever: the logs go on from the genesis.
    for node in cluster.all() {
        cluster.quorate(&["kill", &node.to_string()])?;
    }
    cluster.quorate(&["up"])?;
    sysbench::compare(&cluster, TABLES)?;

    // The way back.
    let (_, seqno) = position(&cluster)?;
    let left = stop(&cluster)?;
    assert_eq!(left[0].uuid, uuid);
    assert!(left[0].seqno >= seqno);
    let logs = start(&cluster, GALERA)?;
    ensure!(!logs[0].contains(TRANSFER), "the node that stopped last has everything:\n{}", logs[0]);
    let (back, seqno) = position(&cluster)?;
    assert_eq!(back, uuid);
    assert!(seqno > left[0].seqno);
    write_everywhere(&cluster)?;
    sysbench::compare(&cluster, TABLES)?;

    // Galera wrote since: the logs of the former group are of another past.
    stop(&cluster)?;
    let refused = cluster.try_quorate(&["up", "--provider", &ours()?, "--timeout", "30"])?;
    ensure!(!refused.status.success(), "{}", shown(&refused));
    let log = cluster.error_log(1)?;
    ensure!(log.contains("was last written by another provider"), "{log}");
    for node in cluster.all() {
        let log = cluster.node_dir(node).join("log");
        fs::rename(&log, log.with_extension("former"))?;
    }
    let logs = start(&cluster, &ours()?)?;
    ensure!(logs.iter().all(|log| !log.contains(TRANSFER)), "{logs:#?}");
    assert_eq!(position(&cluster)?.0, uuid);
    sysbench::compare(&cluster, TABLES)?;
    cluster.passed()
}

#[test]
fn only_the_node_that_stopped_last_may_begin_and_nobody_loses_more_than_views() -> Result<()> {
    let cluster = TestCluster::unstarted(3, Some(Path::new(GALERA)))?;
    cluster.start(QUICK, &[])?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    // node3 misses a row, node2 only a goodbye.
    cluster.quorate(&["stop", "3"])?;
    cluster.sql(2, "INSERT INTO t.t VALUES (1)")?;
    cluster.quorate(&["stop", "2"])?;
    cluster.quorate(&["stop", "1"])?;

    let early = ["up", "--provider", &ours()?, "--new-cluster-on", "node2", "--timeout", "30"];
    let output = cluster.try_quorate(&early)?;
    let log = cluster.error_log(2)?;
    ensure!(log.contains("It may not be safe to bootstrap the cluster from this node"), "{log}");
    ensure!(!output.status.success(), "{}", shown(&output));
    cluster.quorate(&["down", "--force"])?;

    let logs = start(&cluster, &ours()?)?;
    let transfers: Vec<bool> = logs.iter().map(|log| log.contains(TRANSFER)).collect();
    assert_eq!(transfers, [false, false, true]);
    for node in cluster.all() {
        let mut conn = cluster.connect(node)?;
        conn.query_drop("SET SESSION wsrep_sync_wait = 15")?;
        assert_eq!(conn.query_first("SELECT COUNT(*) FROM t.t")?, Some(1), "node {node}");
    }
    cluster.passed()
}

#[test]
fn a_database_with_more_than_the_group_is_not_replaced() -> Result<()> {
    let cluster = TestCluster::unstarted(2, Some(Path::new(GALERA)))?;
    cluster.start(QUICK, &[])?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    cluster.quorate(&["stop", "1"])?;
    cluster.sql(2, "INSERT INTO t.t VALUES (1)")?;
    cluster.quorate(&["stop", "2"])?;
    // Somebody insists on the wrong node.
    let path = cluster.node_dir(1).join("data/grastate.dat");
    let text = fs::read_to_string(&path)?.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
    fs::write(&path, text)?;

    let wrong = ["up", "--provider", &ours()?, "--new-cluster-on", "node1", "--timeout", "30"];
    let output = cluster.try_quorate(&wrong)?;
    ensure!(!output.status.success(), "{}", shown(&output));
    let log = cluster.error_log(2)?;
    ensure!(log.contains("To give up what only this node has"), "{log}");
    // It never became a member, so the other one goes on.
    assert_eq!(cluster.node_status(1)?["state"], "Synced");
    cluster.sql(1, "INSERT INTO t.t VALUES (2)")?;

    // As the error says.
    fs::remove_file(cluster.node_dir(2).join("data/grastate.dat"))?;
    cluster.quorate(&["start", "2"])?;
    let id: Option<u32> = cluster.connect(2)?.query_first("SELECT GROUP_CONCAT(id) FROM t.t")?;
    assert_eq!(id, Some(2));
    cluster.passed()
}
