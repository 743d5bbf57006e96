//! Streaming transactions through views: what ends on one server ends on all, what goes on goes on
//! everywhere.

use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_tests::TestCluster;
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// Each row is a fragment.
const STREAM: &str = "SET SESSION wsrep_trx_fragment_size = 1";
const SUSPECT_SOON: &str = "evs.suspect_timeout=PT1S";
const NON_PRIMARY_SOON: &str = "quorate.primary_timeout=PT1S";

/// A server that was stopped for so long that it left the view does not know that the others have
/// rolled its open transactions back. It must not commit them, nor go on with them.
#[test]
fn a_member_that_was_dropped_alive_loses_what_it_had_open() -> Result<()> {
    let cluster = with_table(SUSPECT_SOON)?;
    let victim = cluster.followers()?[0];
    let others: Vec<u16> = cluster.all().into_iter().filter(|node| *node != victim).collect();

    let begin = |row: u16| -> Result<Conn> {
        let mut session = streaming(&cluster, victim)?;
        insert(&mut session, row, victim)?;
        Ok(session)
    };
    let mut commits = begin(1)?;
    let mut goes_on = begin(2)?;
    wait_for(&cluster, others[0], "2 open transactions", FRAGMENTS, |count| count == 2)?;

    cluster.signal(victim, Signal::STOP)?;
    for node in &others {
        wait_for(&cluster, *node, "a view of two", SIZE, |size| size == 2)?;
        wait_for(&cluster, *node, "no fragments", FRAGMENTS, |count| count == 0)?;
    }
    // The locks are gone, too.
    insert(&mut cluster.connect(others[0])?, 1, others[0])?;

    cluster.signal(victim, Signal::CONT)?;
    let committed = commits.query_drop("COMMIT");
    let inserted = insert(&mut goes_on, 3, victim);
    ensure!(committed.is_err(), "the COMMIT passed on node{victim} alone");
    ensure!(
        inserted.is_err() || goes_on.query_drop("COMMIT").is_err(),
        "a transaction went on that had ended elsewhere"
    );

    for node in cluster.all() {
        wait_for(&cluster, node, "a view of three", SIZE, |size| size == 3)?;
        wait_for(&cluster, node, "no fragments", FRAGMENTS, |count| count == 0)?;
    }
    // Until the victim's server has heard of that view, it aborts whatever streams.
    cluster.wait_level(&cluster.all(), LIMIT)?;
    // And it streams anew.
    let mut again = begin(4)?;
    insert(&mut again, 5, victim)?;
    again.query_drop("COMMIT")?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    let expected = [(1, others[0]), (4, victim), (5, victim)];
    for node in cluster.all() {
        ensure!(rows(&cluster, node)? == expected, "node{node}: {:?}", rows(&cluster, node)?);
        let log = cluster.error_log(node)?;
        ensure!(!log.contains("Could not find applier context"), "node{node} missed a rollback");
    }
    cluster.passed()
}

/// The quorum is lost while a COMMIT is under way, for so long that the server is non-Primary, and
/// comes back. Whatever the session is told, all servers have the whole transaction, or none of it.
#[test]
fn a_commit_through_a_loss_of_quorum_is_the_same_everywhere() -> Result<()> {
    let cluster = with_table(NON_PRIMARY_SOON)?;
    let origin = cluster.leader()?;
    let others = cluster.followers()?;

    let mut session = streaming(&cluster, origin)?;
    (1..=3).try_for_each(|row| insert(&mut session, row, origin))?;
    let committed =
        without_quorum(&cluster, origin, &others, || session.query_drop("COMMIT"), |_| Ok(()))?;

    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        wait_for(&cluster, node, "no fragments", FRAGMENTS, |count| count == 0)?;
    }
    let found = rows(&cluster, origin)?;
    ensure!(found.is_empty() || found.len() == 3, "a part of a transaction: {found:?}");
    ensure!(committed.is_err() || found.len() == 3, "acknowledged and lost");
    for node in others {
        ensure!(rows(&cluster, node)? == found, "node{node} has other rows than {found:?}");
    }
    cluster.passed()
}

/// Statements whose fragments are under way then fail, as on Galera, and nothing of them stays.
#[test]
fn fragments_given_up_end_everywhere() -> Result<()> {
    let cluster = with_table(NON_PRIMARY_SOON)?;
    let origin = cluster.leader()?;
    let others = cluster.followers()?;

    let mut begun = streaming(&cluster, origin)?;
    let mut new = streaming(&cluster, origin)?;
    insert(&mut begun, 1, origin)?;
    let both = || {
        thread::scope(|scope| {
            let second = scope.spawn(|| insert(&mut begun, 2, origin));
            let first = insert(&mut new, 3, origin);
            (first, second.join().expect("the session's thread"))
        })
    };
    // They end while there is no quorum.
    let (first, second) = without_quorum(&cluster, origin, &others, both, |statements| {
        let end = Instant::now() + LIMIT;
        while !statements.is_finished() {
            ensure!(Instant::now() < end, "the statements wait for the quorum");
            thread::sleep(POLL);
        }
        Ok(())
    })?;
    ensure!(first.is_err() && second.is_err(), "fragments without a quorum: {first:?} {second:?}");
    for row in 1..=3 {
        let mut conn = cluster.connect(others[0])?;
        let end = Instant::now() + LIMIT;
        while let Err(error) = insert(&mut conn, row, others[0]) {
            ensure!(Instant::now() < end, "row {row} stays locked: {error}");
            thread::sleep(POLL);
        }
    }
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        wait_for(&cluster, node, "no fragments", FRAGMENTS, |count| count == 0)?;
        let expected = [1, 2, 3].map(|row| (row, others[0]));
        ensure!(rows(&cluster, node)? == expected, "node{node}: {:?}", rows(&cluster, node)?);
    }
    cluster.passed()
}

/// A server that restarts takes up again what others have open.
#[test]
fn a_member_that_restarts_goes_on_with_what_others_have_open() -> Result<()> {
    let cluster = with_table(SUSPECT_SOON)?;
    let origin = cluster.leader()?;
    let victims = cluster.followers()?;

    let mut session = streaming(&cluster, origin)?;
    insert(&mut session, 1, origin)?;
    for (turn, victim) in victims.iter().enumerate() {
        wait_for(&cluster, *victim, "the transaction", FRAGMENTS, |count| count == 1)?;
        cluster.quorate(&["kill", &victim.to_string()])?;
        insert(&mut session, 10 + turn as u16, origin)?;
        if turn == 0 {
            wait_for(&cluster, origin, "a view without it", SIZE, |size| size == 2)?;
        }
        cluster.quorate(&["start", &victim.to_string()])?;
        insert(&mut session, 20 + turn as u16, origin)?;
    }
    session.query_drop("COMMIT")?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        let ids: Vec<u16> = rows(&cluster, node)?.into_iter().map(|(id, _)| id).collect();
        ensure!(ids == [1, 10, 11, 20, 21], "node{node} has {ids:?}");
        wait_for(&cluster, node, "no fragments", FRAGMENTS, |count| count == 0)?;
    }
    cluster.passed()
}

/// DDL ended a streaming transaction, and a crash right after it has undone that, but not the DDL. The node is
/// left as such a crash leaves it: with the fragment, and with its note of the DDL, which is not repeated.
#[test]
fn what_ddl_ended_does_not_come_back_with_a_crash() -> Result<()> {
    let cluster = with_table(SUSPECT_SOON)?;
    let origin = cluster.leader()?;
    let [victim, other] = cluster.followers()?[..] else { bail!("not two followers") };

    let mut session = streaming(&cluster, origin)?;
    insert(&mut session, 1, origin)?;
    wait_for(&cluster, victim, "the transaction", FRAGMENTS, |count| count == 1)?;
    let mut watch = cluster.connect(victim)?;
    let (process, transaction): (String, u64) = watch
        .query_first("SELECT node_uuid, trx_id FROM mysql.wsrep_streaming_log")?
        .context("no fragment")?;
    watch.query_drop("FLUSH ENGINE LOGS")?;
    cluster.quorate(&["kill", &victim.to_string()])?;
    wait_for(&cluster, other, "a view without it", SIZE, |size| size == 2)?;

    let mut conn = cluster.connect(other)?;
    // The size of the group is told a moment before the position has the view that says so.
    conn.query_drop("SET SESSION wsrep_sync_wait = 1")?;
    let last: String = conn.query_first(LAST_COMMITTED)?.context("no position")?;
    let seqno = last.parse::<i64>()? + 1;
    conn.query_drop("ALTER TABLE test_stream.t COMMENT = 'changed'")?;
    insert(&mut conn, 1, other)?;
    ensure!(session.query_drop("COMMIT").is_err(), "the DDL did not end the transaction");
    // As long as its process is there it might go on, as far as the log says.
    cluster.quorate(&["kill", &origin.to_string()])?;
    cluster.quorate(&["start", &origin.to_string()])?;

    let history: String = conn.query_first(HISTORY)?.context("no history")?;
    let (history, process) = (history.replace('-', ""), process.replace('-', ""));
    let notes =
        format!("{history} {seqno} severs {process}:{transaction:x}\n{history} {seqno} done\n");
    let data_dir = cluster.node_dir(victim).join("data");
    let mut file = OpenOptions::new().append(true).open(data_dir.join("quorate_isolated.dat"))?;
    file.write_all(notes.as_bytes())?;
    drop(file);
    cluster.quorate(&["start", &victim.to_string()])?;
    cluster.wait_level(&cluster.all(), LIMIT)?;

    let log = cluster.error_log(victim)?;
    let passed_over = format!("The DDL of seqno {seqno} was executed before the restart");
    ensure!(log.contains(&passed_over), "node{victim} has repeated the DDL");
    ensure!(!log.contains("requesting a state transfer"), "nobody else's state is needed");
    for node in cluster.all() {
        wait_for(&cluster, node, "no fragments", FRAGMENTS, |count| count == 0)?;
        ensure!(rows(&cluster, node)? == [(1, other)], "node{node}: {:?}", rows(&cluster, node)?);
    }
    cluster.passed()
}

/// Three servers with the given provider options, and an empty table on each.
fn with_table(options: &str) -> Result<TestCluster> {
    let cluster = TestCluster::unstarted(3, None)?;
    cluster.start("", &["--provider-options", options])?;
    cluster.sql(1, "CREATE DATABASE test_stream")?;
    cluster.sql(1, "CREATE TABLE test_stream.t (id INT PRIMARY KEY, node INT)")?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    Ok(cluster)
}

/// A session in a streaming transaction.
fn streaming(cluster: &TestCluster, node: u16) -> Result<Conn> {
    let mut session = cluster.connect(node)?;
    session.query_drop(STREAM)?;
    session.query_drop("START TRANSACTION")?;
    Ok(session)
}

/// Runs `statements` on `origin` after the `others` were stopped, and lets these go on when `origin`
/// is non-Primary and `then` has ended.
fn without_quorum<T: Send>(
    cluster: &TestCluster,
    origin: u16,
    others: &[u16],
    statements: impl FnOnce() -> T + Send,
    then: impl FnOnce(&thread::ScopedJoinHandle<'_, T>) -> Result<()>,
) -> Result<T> {
    let mut watch = cluster.connect(origin)?;
    watch.query_drop("SET SESSION wsrep_sync_wait = 0, wsrep_dirty_reads = ON")?;
    others.iter().try_for_each(|node| cluster.signal(*node, Signal::STOP))?;
    thread::scope(|scope| {
        let running = scope.spawn(statements);
        let end = Instant::now() + LIMIT;
        let noticed = loop {
            match watch.query_first::<String, _>(STATUS) {
                Ok(Some(status)) if status == "non-Primary" => break Ok(()),
                Err(error) => break Err(error.into()),
                Ok(_) if Instant::now() >= end => {
                    break Err(anyhow::anyhow!("node{origin} does not notice that it is alone"))
                }
                Ok(_) => thread::sleep(POLL),
            }
        };
        let done = noticed.and_then(|()| then(&running));
        others.iter().try_for_each(|node| cluster.signal(*node, Signal::CONT))?;
        done?;
        Ok(running.join().expect("the statements' thread"))
    })
}

const FRAGMENTS: &str = "SELECT COUNT(DISTINCT trx_id) FROM mysql.wsrep_streaming_log";
const SIZE: &str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                    WHERE VARIABLE_NAME = 'wsrep_cluster_size'";

const LAST_COMMITTED: &str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                              WHERE VARIABLE_NAME = 'wsrep_last_committed'";

const HISTORY: &str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                       WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid'";

const STATUS: &str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                      WHERE VARIABLE_NAME = 'wsrep_cluster_status'";

fn insert(session: &mut Conn, row: u16, node: u16) -> mysql::Result<()> {
    session.query_drop(format!("INSERT INTO test_stream.t (id, node) VALUES ({row}, {node})"))
}

fn rows(cluster: &TestCluster, node: u16) -> Result<Vec<(u16, u16)>> {
    Ok(cluster.connect(node)?.query("SELECT id, node FROM test_stream.t ORDER BY id")?)
}

/// Waits until `query` on a node gives a number as wanted.
fn wait_for(
    cluster: &TestCluster,
    node: u16,
    what: &str,
    query: &str,
    wanted: impl Fn(u64) -> bool,
) -> Result<()> {
    let end = Instant::now() + LIMIT;
    let mut conn = cluster.connect(node)?;
    loop {
        let text: String = conn.query_first(query)?.context("no row")?;
        let number = text.parse().with_context(|| format!("{what}: {text}"))?;
        if wanted(number) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "node{node} has not {what}, but {number}");
        thread::sleep(POLL);
    }
}
