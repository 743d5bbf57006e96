//! Sessions that lose the quorum while what they proposed may be in some log: what they are told,
//! and what it does to those that come after them.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_tests::TestCluster;
use rustix::process::Signal;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
const NON_PRIMARY_SOON: &str = "quorate.primary_timeout=PT3S";
/// `ER_ERROR_DURING_COMMIT`: see docs/guarantees.md.
const UNKNOWN: u16 = 1180;

/// The row counts transactions. One is given up, and is in the log of the node that leads when the
/// quorum is back, while that node's only applier is busy: the next one on the row does not see it.
#[test]
fn what_was_given_up_is_not_overwritten() -> Result<()> {
    let cluster = with_table(NON_PRIMARY_SOON)?;
    let origin = cluster.leader()?;
    let others = cluster.followers()?;

    hold_applier(&cluster, origin)?;
    cluster.sql(others[0], "INSERT INTO test.slow VALUES (1)")?;
    await_number(&cluster, origin, "a busy applier", SLEEPING, |count| count == 1)?;

    let mut session = cluster.connect(origin)?;
    let first = "UPDATE test.t SET n = n + 1, first = 1";
    let told = without_quorum(&cluster, origin, &mut session, first, || Ok(()))?;
    ensure!(told == Some(UNKNOWN), "the one that was given up was told {told:?}");

    let second = || -> Result<()> {
        let end = Instant::now() + LIMIT;
        while let Err(error) = cluster.sql(origin, "UPDATE test.t SET n = n + 10") {
            ensure!(Instant::now() < end, "the second one never passes: {error:#}");
            thread::sleep(POLL);
        }
        Ok(())
    };
    let observe = || await_number(&cluster, others[0], "the first", ROW, |n| n != 0);
    thread::scope(|scope| {
        let second = scope.spawn(second);
        // It either waits for its turn behind the first one, or was refused.
        let first = observe()?;
        let end = Instant::now() + LIMIT;
        loop {
            let refused = number(&mut cluster.connect(origin)?, REFUSED)? > 0;
            let passed = number(&mut cluster.connect(others[0])?, ROW)? != first;
            if refused || passed {
                break;
            }
            ensure!(Instant::now() < end, "the second one is nowhere");
            thread::sleep(POLL);
        }
        let_applier_go_on(&cluster, origin)?;
        second.join().expect("the second session's thread")
    })?;

    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        let row: Option<(u64, u64)> =
            cluster.connect(node)?.query_first("SELECT n, first FROM test.t")?;
        ensure!(row == Some((11, 1)), "node{node}: (counted, first is there) = {row:?}");
    }
    cluster.passed()
}

/// An applier aborts it, too, before it is given up: still nobody knows what becomes of it.
#[test]
fn a_commit_that_is_aborted_while_there_is_no_quorum_is_told_as_unknown() -> Result<()> {
    let cluster = with_table("quorate.primary_timeout=PT5S")?;
    let origin = cluster.leader()?;
    let other = cluster.followers()?[0];
    hold_applier(&cluster, origin)?;
    let mut remote = cluster.connect(other)?;
    remote.query_drop("START TRANSACTION")?;
    remote.query_drop("INSERT INTO test.slow VALUES (1)")?;
    remote.query_drop("UPDATE test.t SET n = n + 1")?;
    remote.query_drop("COMMIT")?;
    await_number(&cluster, origin, "a busy applier", SLEEPING, |count| count == 1)?;

    let mut session = cluster.connect(origin)?;
    session.query_drop("START TRANSACTION")?;
    session.query_drop("UPDATE test.t SET n = n + 10")?;
    let told = without_quorum(&cluster, origin, &mut session, "COMMIT", || {
        await_number(&cluster, origin, "a proposal", PROPOSED, |count| count == 1)?;
        let_applier_go_on(&cluster, origin)?;
        await_number(&cluster, origin, "an abort", ABORTED, |count| count > 0)?;
        Ok(())
    })?;
    ensure!(told == Some(UNKNOWN), "told {told:?}");
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        let n = number(&mut cluster.connect(node)?, ROW)?;
        ensure!(n == 1, "node{node} counted {n}");
    }
    cluster.passed()
}

#[test]
fn a_ddl_without_a_quorum_is_told_as_unknown() -> Result<()> {
    let cluster = with_table(NON_PRIMARY_SOON)?;
    let origin = cluster.leader()?;
    let ddl = "CREATE TABLE test.other (id INT PRIMARY KEY)";
    let mut session = cluster.connect(origin)?;
    let told = without_quorum(&cluster, origin, &mut session, ddl, || Ok(()))?;
    ensure!(told == Some(UNKNOWN), "told {told:?}");
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        cluster.sql(node, &format!("INSERT INTO test.other VALUES ({node})"))?;
    }
    cluster.passed()
}

/// Three servers with one applier each, a row that counts, and a table that holds the applier of
/// whoever is told to (see [`hold_applier`]).
fn with_table(options: &str) -> Result<TestCluster> {
    let cluster = TestCluster::unstarted(3, None)?;
    let extra = "wsrep_slave_threads = 1\nslave_run_triggers_for_rbr = ENFORCE";
    cluster.start(extra, &["--provider-options", options])?;
    cluster.sql(1, "CREATE DATABASE IF NOT EXISTS test")?;
    cluster.sql(1, "CREATE TABLE test.t (id INT PRIMARY KEY, n INT, first INT)")?;
    cluster.sql(1, "INSERT INTO test.t VALUES (1, 0, 0)")?;
    cluster.sql(1, "CREATE TABLE test.slow (id INT PRIMARY KEY)")?;
    let wait = "CREATE TRIGGER test.wait BEFORE INSERT ON test.slow FOR EACH ROW BEGIN \
                WHILE @@GLOBAL.long_query_time = 77 DO DO SLEEP(0.02); END WHILE; END";
    cluster.sql(1, wait)?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    Ok(cluster)
}

/// From now on the node does not get past an insert into `test.slow`.
fn hold_applier(cluster: &TestCluster, node: u16) -> Result<()> {
    cluster.sql(node, "SET GLOBAL long_query_time = 77")
}

fn let_applier_go_on(cluster: &TestCluster, node: u16) -> Result<()> {
    cluster.sql(node, "SET GLOBAL long_query_time = 10")
}

/// Runs `statement` on the leader `origin` while the others are stopped, `meanwhile` beside it, and lets
/// the others go on when it has ended. The error that it was told, if any.
fn without_quorum(
    cluster: &TestCluster,
    origin: u16,
    session: &mut Conn,
    statement: &str,
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<Option<u16>> {
    let others: Vec<u16> = cluster.all().into_iter().filter(|node| *node != origin).collect();
    others.iter().try_for_each(|node| cluster.signal(*node, Signal::STOP))?;
    let ended = thread::scope(|scope| {
        let running = scope.spawn(|| session.query_drop(statement));
        meanwhile()?;
        Ok::<_, anyhow::Error>(running.join().expect("the session's thread"))
    });
    others.iter().try_for_each(|node| cluster.signal(*node, Signal::CONT))?;
    Ok(match ended? {
        Ok(()) => None,
        Err(mysql::Error::MySqlError(error)) => {
            println!("{error}");
            Some(error.code)
        }
        Err(other) => return Err(other.into()),
    })
}

const ROW: &str = "SELECT n FROM test.t";
const SLEEPING: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                        WHERE STATE = 'User sleep'";
const PROPOSED: &str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                        WHERE VARIABLE_NAME = 'wsrep_quorate_pending'";
const ABORTED: &str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                       WHERE VARIABLE_NAME = 'wsrep_local_bf_aborts'";
const REFUSED: &str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                       WHERE VARIABLE_NAME = 'wsrep_local_cert_failures'";

fn number(conn: &mut Conn, query: &str) -> Result<u64> {
    let text: String = conn.query_first(query)?.context("no row")?;
    text.parse().with_context(|| format!("{query}: {text}"))
}

/// Waits until `query` on a node gives a number as wanted, and returns it.
fn await_number(
    cluster: &TestCluster,
    node: u16,
    what: &str,
    query: &str,
    wanted: impl Fn(u64) -> bool,
) -> Result<u64> {
    let end = Instant::now() + LIMIT;
    let mut conn = cluster.connect(node)?;
    conn.query_drop("SET SESSION wsrep_dirty_reads = ON")?;
    loop {
        let now = number(&mut conn, query)?;
        if wanted(now) {
            return Ok(now);
        }
        ensure!(Instant::now() < end, "node{node} has not {what}, but {now}");
        thread::sleep(POLL);
    }
}
