//! Roles, priorities and a lost majority, ordered by the command on real servers.

use anyhow::Result;
use mysql::prelude::Queryable;
use quorate_tests::cluster::shown;
use quorate_tests::{await_that, TestCluster};
use rustix::process::Signal;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn weights_move_leadership_and_roles_change_online() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let list = cluster.quorate(&["member", "list"])?;
    assert_eq!(list.matches(" voter ").count(), 3, "{list}");

    let first_choice = cluster.followers()?[1];
    cluster.quorate(&["member", "set", &format!("node{first_choice}"), "--priority", "90"])?;
    await_that("that it leads", || Ok(cluster.leader()? == first_choice))?;

    let learner = cluster.followers()?[0];
    let name = format!("node{learner}");
    let list = cluster.quorate(&["member", "set", &name, "--role", "learner"])?;
    assert_eq!(list.matches(" voter ").count(), 2, "{list}");
    cluster.sql(learner, "CREATE DATABASE by_learner")?;
    // It comes back as what it is.
    cluster.quorate(&["restart", &name])?;
    let list = cluster.quorate(&["member", "list"])?;
    assert_eq!(
        (list.matches(" voter ").count(), list.matches(" learner ").count()),
        (2, 1),
        "{list}"
    );
    let list = cluster.quorate(&["member", "set-role", &name, "voter"])?;
    assert!(list.matches(" voter ").count() == 3 || list.contains("joining"), "{list}");

    let list = cluster.quorate(&["member", "add", "--role", "learner"])?;
    assert!(list.contains("node4") && list.matches(" learner ").count() == 1, "{list}");
    let status = cluster.status()?;
    assert_eq!(
        (&status["nodes"][3]["role"], &status["health"]),
        (&"Learner".into(), &"synced".into())
    );

    let unknown = cluster.try_quorate(&["member", "set", "node9", "--priority", "1"])?;
    assert_eq!(unknown.status.code(), Some(64), "{}", shown(&unknown));
    assert!(shown(&unknown).contains("node9"), "{}", shown(&unknown));
    let alive = cluster.try_quorate(&["member", "force-quorum", "--keep", "1"])?;
    assert_eq!(alive.status.code(), Some(1), "{}", shown(&alive));
    assert!(shown(&alive).contains("refused"), "{}", shown(&alive));
    assert!(!shown(&alive).contains("--reason"), "it is no next step: {}", shown(&alive));
    cluster.passed()
}

#[test]
fn one_of_three_goes_on_by_an_operators_word() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    cluster.sql(1, "INSERT INTO t.t VALUES (1)")?;
    cluster.wait_level(&cluster.all(), LIMIT)?;
    let kept = cluster.followers()?[0];
    for other in cluster.all().into_iter().filter(|node| *node != kept) {
        cluster.quorate(&["kill", &other.to_string()])?;
    }
    await_that("non-Primary", || Ok(cluster.node_status(kept)?["state"] == "Non-primary"))?;
    let name = format!("node{kept}");
    let plan = cluster.quorate(&["member", "force-quorum", "--keep", &name])?;
    assert!(plan.contains("gives up") && plan.contains("Nothing was changed"), "{plan}");
    cluster.quorate(&["member", "force-quorum", "--keep", &name, "--reason", "a test"])?;
    cluster.wait_level(&[kept], LIMIT)?;
    cluster.sql(kept, "INSERT INTO t.t VALUES (2)")?;
    let rows: Option<u32> = cluster.connect(kept)?.query_first("SELECT COUNT(*) FROM t.t")?;
    assert_eq!(rows, Some(2));
    cluster.passed()
}

/// A voter that is away for long costs the others no vote, and has its own again when it is back:
/// whether it was dead or only held up, and whoever led.
#[test]
fn who_was_expelled_is_admitted_again() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    cluster.start("", &["--provider-options", "quorate.expel_timeout=PT2S"])?;
    cluster.sql(1, "CREATE DATABASE t")?;
    cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    // One that has yet to catch up has no vote: without it, another loss would be one too many.
    let voters = |wanted| {
        await_that(&format!("{wanted} voters"), || {
            let list = cluster.quorate(&["member", "list"])?;
            Ok(list.matches(" voter ").count() == wanted && !list.contains("joining"))
        })
    };
    voters(3)?;
    for (row, held_up) in [(1, true), (2, false)] {
        let away = if held_up { cluster.followers()?[0] } else { cluster.leader()? };
        let other = cluster.all().into_iter().find(|node| *node != away).expect("three nodes");
        match held_up {
            true => cluster.signal(away, Signal::STOP)?,
            false => cluster.quorate(&["kill", &away.to_string()]).map(drop)?,
        }
        voters(2)?;
        cluster.sql(other, &format!("INSERT INTO t.t VALUES ({row})"))?;
        match held_up {
            true => cluster.signal(away, Signal::CONT)?,
            false => cluster.quorate(&["start", &away.to_string()]).map(drop)?,
        }
        voters(3)?;
        cluster.wait_level(&cluster.all(), LIMIT)?;
        let rows: Option<u32> = cluster.connect(away)?.query_first("SELECT COUNT(*) FROM t.t")?;
        assert_eq!(rows, Some(row), "node{away}");
    }
    cluster.passed()
}
