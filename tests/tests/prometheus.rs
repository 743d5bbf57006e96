//! A real Prometheus scrapes the agents of a group in trouble: the alerts of monitoring/quorate.rules.yml fire for the
//! trouble that there is, and for nothing else. The rules are those that are shipped, with their times: it takes
//! minutes. `make monitoring-test` runs it.

use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_lab::disk::{Disk, Faults, Options};
use quorate_lab::server::Account;
use quorate_tests::agent::Agent;
use quorate_tests::program::Program;
use quorate_tests::{await_that, TestCluster};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../monitoring/quorate.rules.yml");
/// QuorateServerLags takes a lag of half a minute, for a minute.
const PATIENCE: Duration = Duration::from_secs(180);
/// An alert is pending as soon as what it looks for is there, so this need not be as long as alerts wait.
const QUIET: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(200);

struct Watched {
    prometheus: Program,
    cluster: TestCluster,
    agents: Vec<Agent>,
}

#[test]
#[ignore = "takes minutes, and Prometheus 300 MB: make monitoring-test"]
fn alerts_fire_for_what_is_wrong_and_for_nothing_else() -> Result<()> {
    // Unmounted behind the server that uses it.
    let disk = Disk::new(Options::default())?;
    let watched = Watched::start(&disk)?;
    let (cluster, followers) = (&watched.cluster, watched.cluster.followers()?);
    let full = cluster.nodes;
    let other = *followers.iter().find(|node| **node != full).context("another follower")?;
    let leader = cluster.leader()?;
    cluster.sql(leader, "CREATE DATABASE t")?;
    cluster.sql(leader, "CREATE TABLE t.t (id INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB)")?;
    let mut client = cluster.connect(leader)?;
    let mut write = || Ok(client.query_drop("INSERT INTO t.t (b) VALUES (REPEAT('x', 500000))")?);
    watched.is_quiet(&[])?;

    disk.set_faults(Faults { full: true, ..Faults::default() });
    watched.fires(&[("QuorateLogDisk", Some(full))], &[], &mut write)?;
    disk.set_faults(Faults::default());
    // The sync that waited for room is among those of the last five minutes until the end.
    let slow = [("QuorateSlowSyncs", Some(full))];
    watched.is_quiet(&slow)?;

    // As a backup does that hangs.
    let mut lock = cluster.connect(other)?;
    lock.query_drop("FLUSH TABLES WITH READ LOCK")?;
    watched.fires(&[("QuorateServerLags", Some(other))], &[], &mut write)?;
    drop(lock);
    watched.is_quiet(&slow)?;

    let disconnected = ["QuorateMemberDisconnected"];
    cluster.quorate(&["kill", &other.to_string()])?;
    watched.fires(&[("QuorateMemberSilent", Some(other))], &disconnected, &mut write)?;
    cluster.quorate(&["start", &other.to_string()])?;
    watched.is_quiet(&slow)?;

    cluster.quorate(&["kill", &leader.to_string(), &other.to_string()])?;
    let silent = [leader, other].map(|node| ("QuorateMemberSilent", Some(node)));
    let lost = [("QuorateNoQuorum", None), ("QuorateNoPrimary", None), silent[0], silent[1]];
    watched.fires(&lost, &disconnected, &mut || Ok(()))?;
    cluster.quorate(&["up"])?;
    watched.is_quiet(&slow)?;
    cluster.passed()
}

impl Watched {
    /// A group of three, the last of which does not lead and has its log on `disk`.
    fn start(disk: &Disk) -> Result<Watched> {
        let cluster = TestCluster::unstarted(3, None)?;
        // What fills the log here is as long as it looks, and fills a segment soon.
        let small = "quorate.segment_size=2M;quorate.compress=none";
        cluster.start("", &["--provider-options", small])?;
        let last = cluster.nodes.to_string();
        // It hands over, if it leads.
        cluster.quorate(&["stop", &last])?;
        move_log(&cluster.node_dir(cluster.nodes).join("log"), disk)?;
        cluster.quorate(&["start", &last])?;

        let of = |node| Agent::of(&cluster, node);
        let agents: Vec<Agent> = cluster.all().into_iter().map(of).collect::<Result<_>>()?;
        let folder = cluster.dir.join("prometheus");
        fs::create_dir(&folder)?;
        let addresses: Vec<&str> = agents.iter().map(|agent| &*agent.address).collect();
        let config = format!(
            "global: {{scrape_interval: 1s}}\nrule_files: [{RULES}]\n\
             scrape_configs:\n  - job_name: quorate\n    static_configs:\n      \
             - targets: {addresses:?}\n        labels: {{cluster: shop}}\n"
        );
        fs::write(folder.join("prometheus.yml"), config)?;
        // Of the last ones of the cluster's own block of ports.
        let port = cluster.base_port + 98;
        let prometheus = Program::start("prometheus", port, |command| {
            let data = folder.join("data");
            command
                .current_dir(&folder)
                .args(["--config.file=prometheus.yml", "--log.level=warn"])
                .arg(format!("--storage.tsdb.path={}", data.display()))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        })?;
        let watched = Watched { prometheus, cluster, agents };
        await_that("scrapes of all agents", || {
            // It listens before it answers.
            let answer = watched.ask("/api/v1/query?query=sum(quorate_up)");
            Ok(answer.is_ok_and(|answer| answer["result"][0]["value"][1] == "3"))
        })?;
        Ok(watched)
    }

    fn ask(&self, path: &str) -> Result<Value> {
        let answer: Value = serde_json::from_str(&self.prometheus.get(path)?)?;
        ensure!(answer["status"] == "success", "{answer}");
        Ok(answer["data"].clone())
    }

    /// Alerts, also those that wait whether it passes; with the node, if it is about one.
    fn alerts(&self) -> Result<Vec<Alert>> {
        let data = self.ask("/api/v1/alerts")?;
        let alerts = data["alerts"].as_array().context("a list")?.iter();
        let alert = |alert: &Value| {
            let word = |label: &str| alert["labels"][label].as_str();
            let at = |instance| self.agents.iter().position(|agent| agent.address == instance);
            Ok(Alert {
                name: word("alertname").context("a name")?.to_owned(),
                node: word("instance").and_then(at).map(|index| index as u16 + 1),
                fires: alert["state"] == "firing",
            })
        };
        alerts.map(alert).collect()
    }

    /// Nothing is even pending for some time, once what is over has passed, but for what `may` be.
    fn is_quiet(&self, may: &[(&str, Option<u16>)]) -> Result<()> {
        let (begin, mut quiet) = (Instant::now(), Instant::now());
        let may = |alert: &Alert| !alert.fires && may.contains(&(&*alert.name, alert.node));
        while quiet.elapsed() < QUIET {
            let mut alerts = self.alerts()?;
            alerts.retain(|alert| !may(alert));
            if !alerts.is_empty() {
                ensure!(begin.elapsed() < PATIENCE, "there is still {alerts:?}");
                quiet = Instant::now();
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// All of `wanted` fire, and nothing but them and what `may` fire, while there is `work`.
    fn fires(
        &self,
        wanted: &[(&str, Option<u16>)],
        may: &[&str],
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let begin = Instant::now();
        loop {
            work()?;
            let alerts = self.alerts()?;
            let firing: BTreeSet<(&str, Option<u16>)> = alerts
                .iter()
                .filter(|alert| alert.fires)
                .map(|alert| (&*alert.name, alert.node))
                .collect();
            let other = firing.iter().find(|each| !wanted.contains(each) && !may.contains(&each.0));
            ensure!(other.is_none(), "{other:?} fires, though it is {wanted:?} that should");
            if wanted.iter().all(|each| firing.contains(each)) {
                println!("{wanted:?}: after {:.1?}", begin.elapsed());
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                bail!("{wanted:?} do not fire, but {alerts:?}");
            }
            thread::sleep(POLL);
        }
    }
}

#[derive(Debug)]
struct Alert {
    name: String,
    node: Option<u16>,
    fires: bool,
}

/// The log of a server that does not run.
fn move_log(from: &Path, disk: &Disk) -> Result<()> {
    Account::choose()?.own(disk.path(), 0o700)?;
    let to = disk.path().join("log");
    let moved = Command::new("mv").args([from, &to]).status()?;
    ensure!(moved.success(), "moving {} needs root", from.display());
    Ok(symlink(&to, from)?)
}
