//! An operator with a credential of its own, on the group's port: every verb, against every kind of member, with
//! the leader gone, a member hung, no quorum, and without permission.

use anyhow::{ensure, Context, Result};
use quorate_lab::server::secret_in;
use quorate_tests::cluster::shown;
use quorate_tests::TestCluster;
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
/// Five seconds for who answers, five for who does not, and the command's own start.
const STATUS_MAX: Duration = Duration::from_secs(12);

/// Two servers and a logger, and the credentials for them.
struct Desk {
    cluster: TestCluster,
    ann: PathBuf,
    eve: PathBuf,
}

impl Desk {
    fn open() -> Result<Desk> {
        let cluster = TestCluster::unstarted(2, None)?;
        cluster.start("", &["--loggers", "1"])?;
        let secret = secret_in(&cluster.dir).context("the cluster has no secret")?;
        let [ann, eve] = ["ann", "eve"].map(|name| cluster.dir.join(format!("{name}.operator")));
        let text = |path: &PathBuf| path.display().to_string();
        let new = ["operator", "new", "--secret-file", &text(&secret), "--out"];
        cluster.quorate(&[&new[..], &[&text(&ann), "ann"]].concat())?;
        cluster.quorate(&[&new[..], &[&text(&eve), "eve", "--read-only"]].concat())?;
        Ok(Desk { cluster, ann, eve })
    }

    fn seed(&self, node: u16) -> String {
        self.cluster.group_address(node)
    }

    /// Asks this member first.
    fn ask(&self, credential: &Path, node: u16, arguments: &[&str]) -> Result<Output> {
        let (seed, file) = (self.seed(node), credential.display().to_string());
        let who = ["--seed", &seed, "--operator-file", &file];
        self.cluster.try_quorate(&[&who[..], arguments].concat())
    }

    fn json(&self, node: u16, arguments: &[&str]) -> Result<Value> {
        let output = self.ask(&self.ann, node, &[arguments, &["--json"]].concat())?;
        serde_json::from_slice(&output.stdout).with_context(|| shown(&output))
    }

    fn wait(&self, what: &str, done: impl Fn() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + LIMIT;
        while !done()? {
            ensure!(Instant::now() < end, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn is(output: &Output, code: i32, part: &str) -> Result<()> {
    let fits = output.status.code() == Some(code) && shown(output).contains(part);
    ensure!(fits, "not {code} with {part:?}: {}", shown(output));
    Ok(())
}

#[test]
fn every_member_is_asked_without_sql_a_logger_too() -> Result<()> {
    let desk = Desk::open()?;
    desk.cluster.sql(1, "CREATE DATABASE t")?;
    for node in 1..=3 {
        let status = desk.json(node, &["status"])?;
        ensure!(
            status["health"] == "synced" && status["troubles"] == Value::Array(vec![]),
            "{status}"
        );
        let nodes = status["nodes"].as_array().context("nodes")?;
        ensure!(nodes.len() == 3, "{status}");
        let logger = nodes.iter().find(|node| node["role"] == "Logger").context("the logger")?;
        ensure!(logger["state"] == "Synced" && logger["seqno"].is_null(), "{logger}");
        let servers = nodes.iter().filter(|node| node["ready"] == true);
        ensure!(servers.clone().count() == 2, "{status}");
        ensure!(servers.clone().all(|node| node["seqno"].as_i64() > Some(0)), "{status}");
        ensure!(
            servers.clone().all(|node| node["own"]["log"]["bytes"].as_u64() > Some(0)),
            "{status}"
        );
    }
    is(&desk.ask(&desk.eve, 3, &["status"])?, 0, "Nothing is wrong.")?;
    desk.cluster.passed()
}

#[test]
fn orders_are_taken_anywhere_and_carried_to_the_leader() -> Result<()> {
    let desk = Desk::open()?;
    for node in 1..=3 {
        let leader = desk.cluster.leader()?;
        let other = 3 - leader;
        let handed = desk.json(node, &["switchover", "--to", &format!("node{other}")])?;
        ensure!(handed["leader"] == format!("node{other}"), "{handed}");
        ensure!(desk.cluster.leader()? == other);
        is(
            &desk.ask(
                &desk.ann,
                node,
                &["member", "set", "node1", "--zone", &format!("z{node}")],
            )?,
            0,
            &format!("z{node}"),
        )?;
    }
    is(&desk.ask(&desk.ann, 3, &["member", "rules", "--primary-failover", "wait"])?, 0, "wait")?;
    is(&desk.ask(&desk.ann, 3, &["pause"])?, 0, "paused=yes")?;
    is(&desk.ask(&desk.eve, 3, &["status"])?, 0, "The group is paused")?;
    is(&desk.ask(&desk.eve, 3, &["resume"])?, 77, "may only look")?;
    is(&desk.cluster.try_quorate(&["resume"])?, 0, "leader_follows_writes")?;
    is(&desk.ask(&desk.ann, 3, &["member", "list"])?, 0, "logger")?;
    is(&desk.ask(&desk.ann, 3, &["member", "remove", "nobody"])?, 64, "knows no member nobody")?;
    let told = desk.cluster.error_log(desk.cluster.leader()?)?;
    let who = "by=\"ann\" from=\"127.0.0.1\" what=\"member set node1 zone=z3\"";
    ensure!(told.contains(who), "the log does not say who ordered it");
    desk.cluster.passed()
}

#[test]
fn without_permission_nothing_is_done() -> Result<()> {
    let desk = Desk::open()?;
    let leader = desk.cluster.leader()?;
    for node in 1..=3 {
        is(&desk.ask(&desk.eve, node, &["switchover"])?, 77, "may only look")?;
    }
    ensure!(desk.cluster.leader()? == leader);
    let only_ann = "SET GLOBAL wsrep_provider_options = 'quorate.operators=ann:read'";
    desk.cluster.sql(leader, only_ann)?;
    is(&desk.ask(&desk.eve, leader, &["status"])?, 77, "quorate.operators")?;
    is(&desk.ask(&desk.ann, leader, &["switchover"])?, 77, "may only look")?;
    is(&desk.ask(&desk.ann, leader, &["status"])?, 0, "Nothing is wrong.")?;
    desk.cluster.passed()
}

#[test]
fn a_member_is_cut_off_and_fetches_its_data_anew() -> Result<()> {
    const FETCHED: &str = "State transfer complete";
    let desk = Desk::open()?;
    desk.cluster.sql(1, "CREATE DATABASE t")?;
    let leader = desk.cluster.leader()?;
    let other = 3 - leader;
    let [leads, follows] = [leader, other].map(|node| format!("node{node}"));
    // No service starts the server again.
    let reinit = |who: &Path, name: &str| {
        desk.ask(who, 3, &["member", "reinit", name, "--yes", "--no-wait"])
    };
    is(&reinit(&desk.eve, &follows)?, 77, "may only look")?;
    is(&reinit(&desk.ann, &leads)?, 1, "hand leadership over first")?;
    is(&reinit(&desk.ann, "node3")?, 1, "it has no database")?;

    let isolate = ["member", "isolate", &follows];
    is(&desk.ask(&desk.ann, 3, &isolate)?, 0, "is cut off from the others")?;
    let state = || -> Result<String> {
        let status = desk.json(3, &["status"])?;
        let nodes = status["nodes"].as_array().context("nodes")?;
        let node = nodes.iter().find(|node| node["name"] == follows).context("the node")?;
        Ok(node["state"].to_string())
    };
    desk.wait("a node that is cut off", || Ok(state()?.contains("Isolated")))?;
    is(&reinit(&desk.ann, &follows)?, 1, "keeps its data")?;
    is(&desk.ask(&desk.ann, other, &[&isolate[..], &["--end"]].concat())?, 0, "no longer cut off")?;
    desk.cluster.wait_level(&[1, 2], LIMIT)?;

    is(&reinit(&desk.ann, &follows)?, 0, "has given its data up")?;
    desk.wait("the end of its server", || Ok(desk.cluster.connect(other).is_err()))?;
    desk.wait("its new start", || {
        Ok(desk.cluster.try_quorate(&["start", &follows])?.status.success())
    })?;
    desk.cluster.wait_level(&[1, 2], LIMIT)?;
    let log = desk.cluster.error_log(other)?;
    ensure!(
        log.contains("Operator ann (127.0.0.1) ordered"),
        "the log does not say who ordered it"
    );
    let fetched = |log: &str| log.matches(FETCHED).count();
    let before = fetched(&log);
    ensure!(before > 0, "it has not fetched the state");

    // On the cluster of this machine, start included.
    let refused = desk.cluster.try_quorate(&["member", "reinit", &leads, "--yes"])?;
    is(&refused, 1, "hand leadership over first")?;
    let unasked = desk.cluster.try_quorate(&["member", "reinit", &follows])?;
    is(&unasked, 64, "--yes goes ahead")?;
    desk.cluster.quorate(&["member", "reinit", &follows, "--yes"])?;
    desk.cluster.wait_level(&[1, 2], LIMIT)?;
    ensure!(fetched(&desk.cluster.error_log(other)?) == before + 1);
    desk.cluster.passed()
}

#[test]
fn a_leader_that_is_gone_and_a_member_that_hangs_hold_nobody_up() -> Result<()> {
    let desk = Desk::open()?;
    let leader = desk.cluster.leader()?;
    let other = 3 - leader;
    desk.cluster.quorate(&["kill", &leader.to_string()])?;
    desk.wait("another leader", || {
        Ok(desk.json(other, &["status"])?["leader"] == format!("node{other}"))
    })?;
    let began = Instant::now();
    let seeds = format!("{},{},{}", desk.seed(leader), desk.seed(3), desk.seed(other));
    let file = desk.ann.display().to_string();
    let status =
        desk.cluster.try_quorate(&["status", "--seed", &seeds, "--operator-file", &file])?;
    is(&status, 1, &format!("node{leader} does not answer"))?;
    ensure!(began.elapsed() < STATUS_MAX, "{:?}", began.elapsed());
    desk.cluster.quorate(&["start", &leader.to_string()])?;

    // The logger is stopped: it takes connections, and says nothing.
    desk.cluster.signal(3, Signal::STOP)?;
    let began = Instant::now();
    let seeds = format!("{},{}", desk.seed(3), desk.seed(1));
    let all = ["--seed", &seeds, "--operator-file", &file];
    is(&desk.cluster.try_quorate(&[&all[..], &["status"]].concat())?, 1, "node3 does not answer")?;
    ensure!(began.elapsed() < STATUS_MAX, "{:?}", began.elapsed());
    is(&desk.cluster.try_quorate(&[&all[..], &["switchover"]].concat())?, 0, "leads now")?;
    desk.cluster.signal(3, Signal::CONT)?;
    desk.cluster.passed()
}

#[test]
fn without_a_quorum_the_last_one_says_so_and_goes_on_by_order() -> Result<()> {
    let desk = Desk::open()?;
    desk.cluster.sql(1, "CREATE DATABASE t")?;
    desk.cluster.wait_level(&desk.cluster.all(), LIMIT)?;
    desk.cluster.quorate(&["kill", "2", "3"])?;
    desk.wait("no leader", || Ok(desk.json(1, &["status"])?["leader"].is_null()))?;
    is(&desk.ask(&desk.ann, 1, &["status"])?, 2, "members with 1 of 3 votes answer")?;
    is(&desk.ask(&desk.ann, 1, &["switchover"])?, 1, "no leader")?;
    let force = ["member", "force-quorum", "--keep", "node1"];
    is(&desk.ask(&desk.eve, 1, &force)?, 0, "Nothing was changed")?;
    let really = [&force[..], &["--reason", "a test"]].concat();
    is(&desk.ask(&desk.eve, 1, &really)?, 77, "may only look")?;
    is(&desk.ask(&desk.ann, 1, &really)?, 0, "done: keeps node1")?;
    desk.cluster.wait_level(&[1], LIMIT)?;
    desk.cluster.sql(1, "CREATE TABLE t.t (id INT PRIMARY KEY)")?;
    desk.cluster.passed()
}
