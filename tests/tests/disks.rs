//! A disk in trouble under one node: a follower's costs the others nothing; a leader's makes it
//! give leadership up, and the others go on. Mended, the node comes back. The same where only the
//! data directory is on that disk: the server then hangs in the middle of its commits.

use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_lab::cluster::{Cluster, Plan};
use quorate_lab::disk::{Disk, Faults};
use quorate_lab::process::Activity;
use quorate_lab::server::error_log;
use quorate_tests::power::quorate;
use quorate_tests::sized;
use quorate_tests::writers::{self, create_table_at, missing_at, Acks};
use std::collections::HashSet;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const CALM: Duration = Duration::from_secs(2);
const LEVEL_LIMIT: Duration = Duration::from_secs(120);
const CLIENTS_PER_NODE: usize = 4;
/// For another node to lead when the leader's disk fails.
const HANDOVER_LIMIT: Duration = Duration::from_secs(2);
/// The same when its server hangs, which takes five seconds to be believed.
const HANG_LIMIT: Duration = Duration::from_secs(9);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

fn troubles() -> [(&'static str, Faults); 3] {
    let healthy = Faults::default();
    [
        ("frozen", Faults { frozen: true, ..healthy }),
        ("full", Faults { full: true, ..healthy }),
        ("sync fails", Faults { sync_fails: true, ..healthy }),
    ]
}

struct Lab {
    cluster: Cluster,
    acked: HashSet<u64>,
    runs: u64,
    /// What the troubled node's log says from here on concerns its trouble.
    log_start: u64,
}

impl Lab {
    fn start() -> Result<Lab> {
        let cluster = Cluster::start(&Plan::new(quorate()))?;
        create_table_at(&cluster.socket(0))?;
        Ok(Lab { cluster, acked: HashSet::new(), runs: 0, log_start: 0 })
    }

    fn leader(&self) -> Result<usize> {
        self.cluster.leader().context("nobody leads")
    }

    fn others(&self, node: usize) -> Vec<usize> {
        self.cluster.nodes().filter(|other| *other != node).collect()
    }

    fn all(&self) -> Vec<usize> {
        self.cluster.nodes().collect()
    }

    /// Puts the node's data directory, but not its log, on a disk of its own.
    fn move_data(&self, node: usize, disk: &Disk) -> Result<()> {
        self.cluster.stop(node, STOP_LIMIT)?;
        let (from, to) = (self.cluster.disk(node).path().join("data"), disk.path().join("data"));
        let moved = Command::new("mv").args([&from, &to]).status()?;
        ensure!(moved.success(), "mv {} failed", from.display());
        symlink(&to, &from)?;
        self.cluster.start_node(node)?;
        self.cluster.wait_level(&self.all(), LEVEL_LIMIT)
    }

    fn make_leader(&self, node: usize) -> Result<()> {
        let leader = self.leader()?;
        let order =
            format!("SET GLOBAL wsrep_provider_options = 'quorate.switchover=node{}'", node + 1);
        if leader != node {
            self.cluster.connect(leader, CLIENT_TIMEOUT)?.query_drop(order)?;
        }
        ensure!(self.leader()? == node, "node{} does not lead", node + 1);
        Ok(())
    }

    /// Writes through the other nodes while `node`'s disk is in trouble; what `watch` says.
    fn trouble<T>(
        &mut self,
        node: usize,
        faults: Faults,
        watch: impl FnOnce(&Cluster) -> T,
    ) -> Result<(Acks, T)> {
        self.runs += 1;
        self.log_start = error_log::length(&self.cluster.error_log(node));
        let sockets: Vec<PathBuf> =
            self.others(node).into_iter().map(|other| self.cluster.socket(other)).collect();
        let writers = writers::start_at(&sockets, CLIENTS_PER_NODE, self.runs);
        thread::sleep(CALM);
        self.cluster.disk(node).set_faults(faults);
        let seen = watch(&self.cluster);
        let acks = writers.stop();
        self.acked.extend(acks.ids());
        Ok((acks, seen))
    }

    /// What the node says of its trouble.
    fn words(&self, node: usize) -> String {
        let lines = error_log::errors_since(&self.cluster.error_log(node), self.log_start);
        lines.join("\n    ")
    }

    /// Mends the disk, starts the server if it has ended, or anew if it does not go on by itself,
    /// and looks whether anything is lost.
    fn mend(&self, node: usize) -> Result<&'static str> {
        const BY_ITSELF: Duration = Duration::from_secs(15);
        let all = self.all();
        self.cluster.disk(node).set_faults(Faults::default());
        let ended = self.cluster.activity(node) == Activity::Gone;
        let how = match () {
            () if ended => "its server had ended; started again",
            () if self.cluster.wait_level(&all, BY_ITSELF).is_ok() => "went on by itself",
            () if self.cluster.activity(node) == Activity::Gone => {
                "its server ended; started again"
            }
            () => {
                self.cluster.kill(&[node])?;
                "killed and started again"
            }
        };
        if self.cluster.activity(node) == Activity::Gone {
            self.cluster.start_node(node)?;
        }
        self.cluster.wait_level(&all, LEVEL_LIMIT)?;
        for node in all {
            let missing = missing_at(&self.cluster.socket(node), &self.acked)?;
            ensure!(missing.is_empty(), "node{} lacks {} rows", node + 1, missing.len());
        }
        Ok(how)
    }
}

#[test]
fn a_followers_disk_costs_the_others_nothing() -> Result<()> {
    let mut lab = Lab::start()?;
    for (name, faults) in troubles() {
        let leader = lab.leader()?;
        let follower = lab.others(leader)[0];
        let (acks, ()) = lab.trouble(follower, faults, |_| {
            thread::sleep(Duration::from_secs(sized(6, 20)));
        })?;
        println!(
            "follower's disk {name}: rows per second {:?}, longest gap {:?}",
            acks.per_second(),
            acks.longest_gap()
        );
        assert!(acks.per_second().iter().all(|count| *count > 0), "{name}");
        println!("    it says: {}", lab.words(follower));
        assert!(!lab.words(follower).is_empty(), "{name}");
        println!("    then: {}", lab.mend(follower)?);
    }
    Ok(())
}

#[test]
fn a_leader_whose_disk_fails_gives_leadership_up() -> Result<()> {
    let mut lab = Lab::start()?;
    for (name, faults) in troubles() {
        let leader = lab.leader()?;
        let others = lab.others(leader);
        let (acks, handover) = lab.trouble(leader, faults, |cluster| {
            let handover = await_successor(cluster, &others, HANDOVER_LIMIT * 5);
            thread::sleep(CALM);
            handover
        })?;
        println!(
            "leader's disk {name}: another led after {handover:?}; rows per second {:?}, \
             longest gap {:?}",
            acks.per_second(),
            acks.longest_gap()
        );
        println!("    it says: {}", lab.words(leader));
        assert!(!lab.words(leader).is_empty(), "{name}");
        println!("    then: {}", lab.mend(leader)?);
        assert!(handover < HANDOVER_LIMIT, "{name}");
        assert!(acks.longest_gap() < HANDOVER_LIMIT, "{name}");
    }
    Ok(())
}

#[test]
fn a_leader_whose_server_hangs_gives_leadership_up() -> Result<()> {
    let mut lab = Lab::start()?;
    let (node, data) = (0, Disk::new(Plan::new(quorate()).disk)?);
    let others = lab.others(node);
    lab.move_data(node, &data)?;
    lab.make_leader(node)?;
    let mut own = lab.cluster.connect(node, CLIENT_TIMEOUT)?;
    // Else a commit leaves it to later to reach the disk.
    own.query_drop("SET GLOBAL innodb_flush_log_at_trx_commit = 1")?;

    let hanging = writers::start_at(&[lab.cluster.socket(node)], CLIENTS_PER_NODE, 100);
    let (acks, handover) = lab.trouble(node, Faults::default(), |cluster| {
        data.set_faults(Faults { frozen: true, ..Faults::default() });
        let handover = await_successor(cluster, &others, HANG_LIMIT * 2);
        thread::sleep(CALM);
        data.set_faults(Faults::default());
        handover
    })?;
    lab.acked.extend(hanging.stop().ids());
    println!(
        "another led after {handover:?}; rows per second through the others {:?}, longest gap {:?}",
        acks.per_second(),
        acks.longest_gap()
    );
    println!("    then: {}", lab.mend(node)?);
    let log = lab.cluster.error_log(node);
    assert!(error_log::says_since(&log, lab.log_start, "in the middle of committing"));
    assert!(handover < HANG_LIMIT);
    assert!(acks.longest_gap() < HANDOVER_LIMIT);
    Ok(())
}

/// Wherever the statement was given: the node whose disk refuses it leaves, and has the table when it is back.
#[test]
fn ddl_that_a_full_disk_refuses_is_not_missing_afterwards() -> Result<()> {
    let lab = Lab::start()?;
    let (node, other, data) = (2, 0, Disk::new(Plan::new(quorate()).disk)?);
    lab.move_data(node, &data)?;
    let tables = |at| -> Result<Vec<String>> {
        let mut connection = lab.cluster.connect(at, CLIENT_TIMEOUT)?;
        Ok(connection.query("SHOW TABLES FROM ddl")?)
    };
    lab.cluster.connect(other, CLIENT_TIMEOUT)?.query_drop("CREATE DATABASE ddl")?;
    lab.cluster.wait_level(&lab.all(), LEVEL_LIMIT)?;
    let given_at_and_at_the_end =
        [(other, vec!["t0"]), (node, vec!["t0", "t2"]), (other, vec!["t0", "t2", "t0_again"])];
    for (at, expected) in given_at_and_at_the_end {
        let table = expected.last().context("a table")?;
        let mut connection = lab.cluster.connect(at, CLIENT_TIMEOUT)?;
        data.set_faults(Faults { full: true, ..Faults::default() });
        let result =
            connection.query_drop(format!("CREATE TABLE ddl.{table} (id INT PRIMARY KEY)"));
        ensure!(result.is_err() == (at == node), "{table}: {result:?}");
        await_members(&lab.cluster, other, lab.others(node).len())?;
        data.set_faults(Faults::default());
        lab.cluster.kill(&[node])?;
        lab.cluster.start_node(node)?;
        lab.cluster.wait_level(&lab.all(), LEVEL_LIMIT)?;
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.sort_unstable();
        for at in lab.all() {
            let found = tables(at)?;
            ensure!(found == expected, "node{} has {found:?}", at + 1);
        }
    }
    Ok(())
}

fn await_members(cluster: &Cluster, node: usize, members: usize) -> Result<()> {
    let end = Instant::now() + LEVEL_LIMIT;
    loop {
        let size = cluster.status(node)?.number("wsrep_cluster_size");
        if size == Some(members as i64) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "node{} sees {size:?} members", node + 1);
        thread::sleep(POLL);
    }
}

/// How long it took until one of these led.
fn await_successor(cluster: &Cluster, others: &[usize], limit: Duration) -> Duration {
    let begin = Instant::now();
    let leads = |node: &usize| cluster.status(*node).is_ok_and(|status| status.leads());
    while !others.iter().any(leads) && begin.elapsed() < limit {
        thread::sleep(POLL);
    }
    begin.elapsed()
}
