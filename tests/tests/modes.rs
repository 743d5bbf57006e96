//! Single-primary mode: only the leader takes writes, and servers, clients and tools know which
//! node that is. A new primary that applies its backlog first. Leadership that follows the writes.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use quorate_tests::tools::{writer, Writer};
use quorate_tests::{await_that, TestCluster};
use rustix::process::Signal;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

const PRIMARY: Writer = Writer { proxysql: true, maxscale: true, clustercheck: true };
const SECONDARY: Writer = Writer { proxysql: false, maxscale: false, clustercheck: false };

/// `ER_OPTION_PREVENTS_STATEMENT`: what read_only says to a user without READ_ONLY ADMIN.
const READ_ONLY: u16 = 1290;
const DEADLOCK: u16 = 1213;

/// A user as applications are: it obeys read_only.
fn client(cluster: &TestCluster, node: u16) -> Result<Conn> {
    let socket = cluster.socket(node);
    let options = OptsBuilder::new().socket(Some(socket.display().to_string())).user(Some("app"));
    Ok(Conn::new(options)?)
}

fn refusal(result: mysql::Result<()>) -> Result<(u16, String)> {
    match result {
        Err(mysql::Error::MySqlError(error)) => Ok((error.code, error.message)),
        other => anyhow::bail!("a refusal was expected, not {other:?}"),
    }
}

fn takes_tools_for(cluster: &TestCluster, node: u16, wanted: Writer) -> Result<Duration> {
    await_that(&format!("node{node} as {wanted:?}"), || {
        Ok(writer(&mut cluster.connect(node)?)? == wanted)
    })
}

fn with_a_table(cluster: &TestCluster) -> Result<()> {
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    cluster.sql(1, "CREATE USER app@localhost")?;
    cluster.sql(1, "GRANT ALL ON t.* TO app@localhost")?;
    cluster.wait_level(&cluster.all(), LIMIT)
}

#[test]
fn only_the_leader_takes_writes_with_a_single_primary() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    with_a_table(&cluster)?;
    let rules = cluster.quorate(&["member", "rules", "--primary-mode", "single"])?;
    assert!(rules.contains("primary_mode=single"), "{rules}");
    assert_eq!(cluster.quorate(&["member", "rules"])?, rules);

    let primary = cluster.leader()?;
    let followers = cluster.followers()?;
    takes_tools_for(&cluster, primary, PRIMARY)?;
    client(&cluster, primary)?.query_drop("INSERT INTO t.t VALUES (1)")?;
    for node in &followers {
        takes_tools_for(&cluster, *node, SECONDARY)?;
        let (code, _) = refusal(client(&cluster, *node)?.query_drop("INSERT INTO t.t VALUES (2)"))?;
        assert_eq!(code, READ_ONLY);
        // Who may ignore read_only is told where to go.
        let mut root = cluster.connect(*node)?;
        for statement in ["INSERT INTO t.t VALUES (3)", "CREATE TABLE t.other (id INT)"] {
            let (code, text) = refusal(root.query_drop(statement))?;
            assert_eq!(code, DEADLOCK, "{statement}: {text}");
            assert!(text.contains(&format!("the primary is node{primary}")), "{statement}: {text}");
        }
        let rows: Option<u32> = root.query_first("SELECT COUNT(*) FROM t.t")?;
        assert!(rows.is_some(), "it goes on reading");
    }

    // Transactions that are open when leadership goes fail, and are tried again elsewhere.
    let mut app = client(&cluster, primary)?;
    let mut root = cluster.connect(primary)?;
    for (conn, id) in [(&mut app, 4), (&mut root, 5)] {
        conn.query_drop("BEGIN")?;
        conn.query_drop(format!("INSERT INTO t.t VALUES ({id})"))?;
    }
    let next = followers[0];
    cluster.quorate(&["switchover", "--to", &format!("node{next}")])?;
    takes_tools_for(&cluster, next, PRIMARY)?;
    takes_tools_for(&cluster, primary, SECONDARY)?;
    assert_eq!(refusal(app.query_drop("COMMIT"))?.0, READ_ONLY);
    assert_eq!(refusal(root.query_drop("COMMIT"))?.0, DEADLOCK);
    client(&cluster, next)?.query_drop("INSERT INTO t.t VALUES (4), (5)")?;

    // The primary dies: another takes writes, and the old one comes back as a secondary.
    let rest: Vec<u16> = cluster.all().into_iter().filter(|node| *node != next).collect();
    let killed = Instant::now();
    cluster.signal(next, Signal::KILL)?;
    let mut conns = rest.iter().map(|node| client(&cluster, *node)).collect::<Result<Vec<_>>>()?;
    await_that("another primary", || {
        Ok(conns.iter_mut().any(|conn| conn.query_drop("INSERT INTO t.t VALUES (6)").is_ok()))
    })?;
    println!("writes went on {:?} after the kill", killed.elapsed());
    cluster.quorate(&["start", &next.to_string()])?;
    takes_tools_for(&cluster, next, SECONDARY)?;
    cluster.wait_level(&cluster.all(), LIMIT)?;

    // Every node takes writes again.
    cluster.quorate(&["member", "rules", "--primary-mode", "multi"])?;
    for node in cluster.all() {
        await_that("a writable node", || {
            let statement = format!("INSERT INTO t.t VALUES ({})", 10 + node);
            Ok(client(&cluster, node)?.query_drop(statement).is_ok())
        })?;
    }
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        let rows: Vec<u32> = cluster.connect(node)?.query("SELECT id FROM t.t ORDER BY id")?;
        assert_eq!(rows, [1, 4, 5, 6, 11, 12, 13], "node{node}");
    }
    cluster.passed()
}

#[test]
fn a_new_primary_applies_its_backlog_first_if_told_to() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    with_a_table(&cluster)?;
    let rules = ["member", "rules", "--primary-mode", "single", "--primary-failover", "wait"];
    cluster.quorate(&rules)?;
    let (primary, next) = (cluster.leader()?, cluster.followers()?[0]);
    takes_tools_for(&cluster, primary, PRIMARY)?;

    // It has the log, and applies nothing of it.
    let mut locker = cluster.connect(next)?;
    locker.query_drop("FLUSH TABLES WITH READ LOCK")?;
    client(&cluster, primary)?.query_drop("INSERT INTO t.t VALUES (1)")?;
    cluster.quorate(&["switchover", "--to", &format!("node{next}")])?;
    let (code, text) = refusal(cluster.connect(next)?.query_drop("CREATE TABLE t.other (id INT)"))
        .context("a write on a primary with a backlog")?;
    println!("{code}: {text}");
    let shown: Option<(String, String)> = locker.query_first("SHOW VARIABLES LIKE 'read_only'")?;
    assert_eq!(shown.context("read_only")?.1, "ON");
    assert_eq!(cluster.leader()?, next);

    locker.query_drop("UNLOCK TABLES")?;
    let waited = takes_tools_for(&cluster, next, PRIMARY)?;
    println!("it took writes {waited:?} after it could apply");
    let rows: Option<u32> = client(&cluster, next)?.query_first("SELECT COUNT(*) FROM t.t")?;
    assert_eq!(rows, Some(1));
    client(&cluster, next)?.query_drop("INSERT INTO t.t VALUES (2)")?;
    cluster.passed()
}

#[test]
fn leadership_follows_the_writes() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    with_a_table(&cluster)?;
    cluster.quorate(&["member", "rules", "--leader-follows-writes", "yes"])?;
    let source = cluster.followers()?[1];
    let mut conn = cluster.connect(source)?;
    let mut id = 0;
    let mut write = || {
        id += 1;
        conn.query_drop(format!("INSERT INTO t.t VALUES ({id})"))
    };
    let waited = await_that("leadership at the source", || {
        for _ in 0..10 {
            write()?;
            thread::sleep(POLL);
        }
        Ok(cluster.leader()? == source)
    })?;
    println!("leadership followed after {waited:?}");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        write()?;
    }
    assert_eq!(cluster.leader()?, source);
    cluster.passed()
}
