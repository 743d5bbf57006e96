//! Orders by SQL on real servers: who may give them, what each session is told, and what all nodes show.

use anyhow::{bail, Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use quorate_lab::server::sql::order;
use quorate_tests::{await_that, TestCluster};
use std::thread;
use std::time::{Duration, Instant};

/// Of a session, by its own status.
fn told(session: &mut Conn, variable: &str) -> Result<String> {
    let shown: Option<(String, String)> =
        session.query_first(format!("SHOW STATUS LIKE 'wsrep_quorate_last_{variable}'"))?;
    Ok(shown.context("the provider has this variable")?.1)
}

/// A session by TCP, of an account that is no administrator unless it is granted that.
fn by_tcp(cluster: &TestCluster, node: u16, user: &str) -> Result<Conn> {
    let port = cluster.base_port + 10 * node;
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some(user))
        .pass(Some("secret"))
        .prefer_socket(false);
    Ok(Conn::new(options)?)
}

fn make_account(cluster: &TestCluster, node: u16, user: &str, privileges: &str) -> Result<()> {
    cluster.sql(node, &format!("CREATE USER {user}@127.0.0.1 IDENTIFIED BY 'secret'"))?;
    cluster.sql(node, &format!("GRANT {privileges} ON *.* TO {user}@127.0.0.1"))
}

/// Each node's last order has all of these words in it.
fn await_last_order(cluster: &TestCluster, words: &[&str]) -> Result<()> {
    for node in cluster.all() {
        await_that(&format!("node{node} shows {words:?}"), || {
            let shown = told(&mut cluster.connect(node)?, "order")?;
            Ok(words.iter().all(|word| shown.contains(word)))
        })?;
    }
    Ok(())
}

#[test]
fn each_session_is_told_its_own_and_every_node_shows_the_last() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let leader = cluster.leader()?;
    make_account(&cluster, leader, "dba", "SUPER")?;
    let mut by_socket = cluster.connect(leader)?;
    let mut by_network = by_tcp(&cluster, leader, "dba")?;
    thread::scope(|scope| -> Result<()> {
        let rules = scope.spawn(|| order(&mut by_socket, "quorate.rules", "priorities=optimistic"));
        let refused = order(&mut by_network, "quorate.member_remove", "nobody");
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("no member is called nobody"), "{refused}");
        let answer = rules.join().expect("no panic")?;
        assert!(answer.contains("priorities=optimistic"), "{answer}");
        Ok(())
    })?;
    assert!(told(&mut by_socket, "answer")?.contains("priorities=optimistic"));
    assert_eq!(told(&mut by_socket, "refusal")?, "");
    assert!(told(&mut by_network, "refusal")?.contains("no member is called nobody"));
    assert_eq!(told(&mut by_network, "answer")?, "");
    assert_eq!(told(&mut cluster.connect(leader)?, "answer")?, "", "another session has none");

    // A refusal says why, beside the server's own words.
    let told_nothing = "SET GLOBAL wsrep_provider_options = 'quorate.member_remove=nobody'";
    let error = by_network.query_drop(told_nothing).unwrap_err().to_string();
    assert!(error.contains("1210"), "{error}");
    let warnings: Vec<(String, u16, String)> = by_network.query("SHOW WARNINGS")?;
    let says_why = |(level, _, text): &(String, u16, String)| {
        level == "Warning" && text.contains("no member is called nobody")
    };
    assert!(warnings.iter().any(says_why), "{warnings:?}");

    let by =
        ["by=\"dba@127.0.0.1\"", "from=\"127.0.0.1\"", "what=\"member remove nobody\"", "done=no"];
    await_last_order(&cluster, &by)?;
    let next = cluster.followers()?[0];
    let logs: Vec<String> =
        cluster.all().into_iter().map(|node| cluster.error_log(node)).collect::<Result<_>>()?;
    order(&mut by_socket, "quorate.switchover", &format!("node{next}"))?;
    assert_eq!(told(&mut by_socket, "answer")?, format!("node{next} leads"));
    let what = format!("what=\"switchover to node{next}\"");
    let taken = format!("node=\"node{leader}\"");
    await_last_order(&cluster, &["from=\"socket\"", &what, &taken, "done=yes"])?;
    for (node, before) in cluster.all().into_iter().zip(logs) {
        let mut log = cluster.error_log(node)?;
        let noted = log.lines().filter(|line| line.contains("order: noted ")).count();
        assert!(noted >= 4, "node{node} has a line for each: {noted}");
        assert_eq!(log.contains("order: begins "), node == leader);
        let since = log.split_off(before.len());
        let misses = since.contains("knows of no leader at present");
        assert!(!misses, "a switchover is planned: node{node}");
    }
    cluster.quorate(&["restart", &format!("node{next}")])?;
    await_last_order(&cluster, &["from=\"socket\"", &what, "done=yes"])?;
    cluster.passed()
}

#[test]
fn an_account_without_the_privilege_gives_no_orders() -> Result<()> {
    let cluster = TestCluster::up(1, "")?;
    make_account(&cluster, 1, "reader", "SELECT, PROCESS, RELOAD, CONNECTION ADMIN, BINLOG ADMIN")?;
    let mut session = by_tcp(&cluster, 1, "reader")?;
    let order = "SET GLOBAL wsrep_provider_options = 'quorate.rules=priorities=forced'";
    let error = session.query_drop(order).unwrap_err().to_string();
    assert!(error.contains("1227") && error.contains("SUPER"), "{error}");
    assert_eq!(told(&mut session, "order")?, "", "nothing was given");
    assert!(!cluster.quorate(&["member", "rules"])?.contains("forced"));
    cluster.passed()
}

/// The server lets nobody log in while an option is set. An order that has to wait for other nodes goes on without it.
#[test]
fn an_order_that_waits_keeps_nobody_from_logging_in_for_long() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let leader = cluster.leader()?;
    let [gone, kept] = cluster.followers()?[..] else { bail!("three nodes have two followers") };
    cluster.quorate(&["kill", &gone.to_string()])?;
    await_that("the leader to know that one is gone", || {
        Ok(cluster.variable::<u32>(leader, "wsrep_cluster_size")? == 2)
    })?;
    let mut operator = cluster.connect(leader)?;
    // The leader alone could commit nothing after this.
    let change = format!("node{kept} role=learner");
    let (refused, took, longest_login) = thread::scope(|scope| -> Result<_> {
        let began = Instant::now();
        let set = format!("SET GLOBAL wsrep_provider_options = 'quorate.member_set={change}'");
        let session = &mut operator;
        let ordered = scope.spawn(move || (session.query_drop(set), told(session, "refusal")));
        let mut longest = Duration::ZERO;
        while !ordered.is_finished() {
            let asked = Instant::now();
            drop(cluster.connect(leader)?);
            longest = longest.max(asked.elapsed());
        }
        let took = began.elapsed();
        let (set, refused) = ordered.join().expect("no panic");
        assert!(set.unwrap_err().to_string().contains("1210"));
        Ok((refused?, took, longest))
    })?;
    assert!(refused.contains(&change) && refused.contains("goes on"), "{refused}");
    let bearable = Duration::from_secs(5);
    assert!(took < bearable && longest_login < bearable, "{took:?}, a login {longest_login:?}");
    cluster.quorate(&["start", &format!("node{gone}")])?;
    // Where the node takes long to start, the order gives up first, and that is told in the same way.
    let outcome = format!("quorate.member_set={change}: ");
    await_that("that the order has ended and its session is told", || {
        let (answer, refusal) = (told(&mut operator, "answer")?, told(&mut operator, "refusal")?);
        let done = answer.starts_with(&outcome) && answer.contains("role=learner");
        assert!(!done || refusal.is_empty(), "{refusal}");
        Ok(done || refusal.starts_with(&outcome))
    })?;
    cluster.passed()
}
