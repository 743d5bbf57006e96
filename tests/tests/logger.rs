//! Two servers and a logger: any one of the three may be lost.

use anyhow::{Context, Error, Result};
use mysql::prelude::Queryable;
use quorate_lab::process::ProcessId;
use quorate_lab::server::secret_in;
use quorate_live::{SecretOptions, Security};
use quorate_tests::cluster::{command_path, shown};
use quorate_tests::program::beside;
use quorate_tests::writers::{self, create_table, missing};
use quorate_tests::TestCluster;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

struct Logger {
    process: Child,
    port: u16,
    security: Security,
}

impl Logger {
    /// A member of the cluster's group, on a port after those of the cluster's nodes.
    fn start(cluster: &TestCluster, dir: &Path) -> Result<Logger> {
        let port = cluster.base_port + 10 * (cluster.nodes + 1) + 1;
        let all = cluster.all().into_iter();
        let join: Vec<String> = all.map(|node| cluster.group_address(node)).collect();
        let file = secret_in(&cluster.dir).context("the cluster has no secret")?;
        let process = beside(&command_path())
            .args(["logger", "--name", "log1", "--cluster-name", "quorate"])
            .args(["--address", &format!("127.0.0.1:{port}"), "--join", &join.join(",")])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .arg("--log-dir")
            .arg(dir)
            .arg("--secret-file")
            .arg(&file)
            .stderr(Stdio::inherit())
            .spawn()
            .context("starting the logger")?;
        let security = Security::Secret(SecretOptions { file, dynamic: false });
        let logger = Logger { process, port, security };
        logger.wait_for_vote()?;
        Ok(logger)
    }

    fn status(&self) -> Result<Vec<(String, String)>> {
        Ok(quorate_live::query_status(&format!("127.0.0.1:{}", self.port), &self.security)?)
    }

    /// It counts for a majority from then on.
    fn wait_for_vote(&self) -> Result<()> {
        let end = Instant::now() + LIMIT;
        loop {
            let status = self.status().unwrap_or_default();
            let value = |name| status.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
            if let (Some(member), Some(voters)) = (value("member"), value("voters")) {
                if voters.split(',').any(|voter| voter == member) {
                    return Ok(());
                }
            }
            anyhow::ensure!(Instant::now() < end, "the logger got no vote: {status:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn end(&mut self, signal: Signal) -> Result<()> {
        ProcessId::of(self.process.id())?.signal(signal)?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        // It may have ended already.
        let _killed = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Lets clients write to the first of `servers` that serves them while `harm` is done.
fn writes_go_on(
    cluster: &TestCluster,
    servers: &[u16],
    run: u64,
    known: &mut HashSet<u64>,
    harm: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let writers = writers::start_failing_over(cluster, servers, 4, run);
    writers.wait_acked(Instant::now(), LIMIT)?;
    thread::sleep(Duration::from_secs(1));
    harm()?;
    writers.wait_acked(Instant::now(), LIMIT).context("writes stopped")?;
    // Also when all have noticed.
    thread::sleep(Duration::from_secs(4));
    writers.wait_acked(Instant::now(), LIMIT).context("writes stopped later")?;
    let acks = writers.stop();
    println!("acknowledged {}, longest pause {:?}", acks.len(), acks.longest_gap());
    known.extend(acks.ids());
    Ok(())
}

fn nothing_is_missing(cluster: &TestCluster, acked: &HashSet<u64>) -> Result<()> {
    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        assert_eq!(missing(cluster, node, acked)?, Vec::<u64>::new(), "node{node}");
    }
    Ok(())
}

/// Processes whose command line names the directory.
fn processes_of(dir: &Path) -> Result<Vec<String>> {
    let dir = dir.to_string_lossy();
    let lines = fs::read_dir("/proc")?.flatten().filter_map(|process| {
        // Whoever has ended meanwhile is none.
        let line = fs::read(process.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    Ok(lines.filter(|line| line.contains(&*dir)).collect())
}

#[test]
fn any_one_of_two_servers_and_a_logger_may_be_lost() -> Result<()> {
    let cluster = TestCluster::up(2, "")?;
    create_table(&cluster)?;
    let dir = cluster.dir.join("log1");
    let mut logger = Logger::start(&cluster, &dir)?;
    let mut acked = HashSet::new();

    // Each server in turn, the one that leads among them.
    for (run, victim) in [(1, cluster.leader()?), (2, cluster.followers()?[0])] {
        let servers = [victim, 3 - victim];
        let kill = || cluster.signal(victim, Signal::KILL);
        writes_go_on(&cluster, &servers, run, &mut acked, kill)?;
        cluster.quorate(&["start", &victim.to_string()])?;
        cluster.wait_level(&cluster.all(), LIMIT)?;
    }

    // The logger, by a crash and by a clean stop.
    for (run, signal) in [(3, Signal::KILL), (4, Signal::TERM)] {
        writes_go_on(&cluster, &[1, 2], run, &mut acked, || logger.end(signal))?;
        logger = Logger::start(&cluster, &dir)?;
    }

    nothing_is_missing(&cluster, &acked)?;
    // It is a member, and no server: clients and tools see two.
    let members = cluster.status()?["nodes"].as_array().map(Vec::len);
    assert_eq!(members, Some(3));
    let mut client = cluster.connect(1)?;

    let size: Option<(String, u32)> =
        client.query_first("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'")?;
    assert_eq!(size.map(|(_, size)| size), Some(2));
    logger.end(Signal::TERM)?;
    cluster.passed()
}

#[test]
fn the_command_runs_a_logger_as_a_node() -> Result<()> {
    let cluster = TestCluster::unstarted(2, None)?;
    cluster.start("", &["--loggers", "1"])?;
    create_table(&cluster)?;
    let table = cluster.quorate(&["status"])?;
    let row = table.lines().find(|line| line.starts_with("node3")).unwrap_or_default();
    assert!(row.contains("Logger") && row.contains("Synced"), "{table}");
    let status = cluster.status()?;
    let (server, logger) = (&status["nodes"][0], &status["nodes"][2]);
    assert_eq!((&status["health"], &logger["role"]), (&"synced".into(), &"Logger".into()));
    assert!(logger["log_bytes"].as_u64() > Some(0) && logger["address"].is_null(), "{logger}");
    let owner =
        |node: &Value| Ok::<_, Error>(fs::metadata(format!("/proc/{}", node["pid"]))?.uid());
    assert_eq!(owner(server)?, owner(logger)?, "it runs as the servers do");
    for foreign in [&["sql", "3"][..], &["member", "set-role", "node3", "voter"]] {
        let refused = cluster.try_quorate(foreign)?;
        assert!(!refused.status.success(), "{foreign:?}");
        assert!(shown(&refused).contains("node3 is a logger"), "{}", shown(&refused));
    }

    // The leading server, then the logger.
    let mut acked = HashSet::new();
    let victim = cluster.leader()?;
    let servers = [victim, 3 - victim];
    let kill = || cluster.signal(victim, Signal::KILL);
    writes_go_on(&cluster, &servers, 1, &mut acked, kill)?;
    cluster.quorate(&["start", &victim.to_string()])?;
    let kill = || cluster.quorate(&["kill", "node3"]).map(drop);
    writes_go_on(&cluster, &[1, 2], 2, &mut acked, kill)?;
    let down = cluster.status()?;
    assert_eq!((&down["nodes"][2]["state"], &down["health"]), (&"Down".into(), &"degraded".into()));
    let again = cluster.try_quorate(&["kill", "3"])?;
    assert!(shown(&again).contains("node3 does not run"), "{}", shown(&again));

    // Back, by each of the ways.
    cluster.quorate(&["start", "node3"])?;
    assert_eq!(cluster.status()?["health"], "synced");
    cluster.quorate(&["restart", "3"])?;
    assert_eq!(cluster.node_status(3)?["state"], "Synced");
    cluster.quorate(&["kill", "1", "2", "3"])?;
    cluster.quorate(&["up"])?;
    nothing_is_missing(&cluster, &acked)?;

    cluster.quorate(&["down"])?;
    assert_eq!(processes_of(&cluster.dir)?, Vec::<String>::new());
    cluster.quorate(&["up"])?;
    assert_eq!(cluster.status()?["health"], "synced");
    cluster.quorate(&["down", "--wipe", "--yes"])?;
    assert_eq!(processes_of(&cluster.dir)?, Vec::<String>::new());
    assert!(!cluster.dir.exists());
    cluster.passed()
}
