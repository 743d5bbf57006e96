//! Two servers and a logger: any one of the three may be lost.

use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use quorate_lab::process::ProcessId;
use quorate_tests::writers::{create_table, missing, Acks, Writers};
use quorate_tests::TestCluster;
use rustix::process::Signal;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

struct Logger {
    process: Child,
    port: u16,
}

impl Logger {
    /// A member of the cluster's group, on a port after those of the cluster's nodes.
    fn start(cluster: &TestCluster, dir: &Path) -> Result<Logger> {
        let port = cluster.base_port + 10 * (cluster.nodes + 1) + 1;
        let join = cluster.all().into_iter().map(|node| cluster.base_port + 10 * node + 1);
        let join: Vec<String> = join.map(|port| format!("127.0.0.1:{port}")).collect();
        let process = Command::new(quorate_tests::cluster::command_path())
            .args(["logger", "--name", "log1", "--cluster-name", "quorate"])
            .args(["--address", &format!("127.0.0.1:{port}"), "--join", &join.join(",")])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .arg("--log-dir")
            .arg(dir)
            .stderr(Stdio::inherit())
            .spawn()
            .context("starting the logger")?;
        let logger = Logger { process, port };
        logger.wait_for_vote()?;
        Ok(logger)
    }

    fn status(&self) -> Result<Vec<(String, String)>> {
        Ok(quorate_group::query_status(&format!("127.0.0.1:{}", self.port), None)?)
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

fn writes_go_on(acks: &Acks, known: &mut HashSet<u64>) {
    println!("acknowledged {}, longest pause {:?}", acks.len(), acks.longest_gap());
    assert!(acks.rate(Duration::from_secs(4), Duration::from_secs(5)) > 0.0, "writes stopped");
    known.extend(acks.ids());
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
        let other = 3 - victim;
        let writers = Writers::start_failing_over(&cluster, &[victim, other], 4, run);
        thread::sleep(Duration::from_secs(2));
        cluster.signal(victim, Signal::KILL)?;
        thread::sleep(Duration::from_secs(4));
        writes_go_on(&writers.stop(), &mut acked);
        cluster.quorate(&["start", &victim.to_string()])?;
        cluster.wait_level(&cluster.all(), LIMIT)?;
    }

    // The logger, by a crash and by a clean stop.
    for (run, signal) in [(3, Signal::KILL), (4, Signal::TERM)] {
        let writers = Writers::start_failing_over(&cluster, &[1, 2], 4, run);
        thread::sleep(Duration::from_secs(2));
        logger.end(signal)?;
        thread::sleep(Duration::from_secs(4));
        writes_go_on(&writers.stop(), &mut acked);
        logger = Logger::start(&cluster, &dir)?;
    }

    cluster.wait_level(&cluster.all(), LIMIT)?;
    for node in cluster.all() {
        assert_eq!(missing(&cluster, node, &acked)?, Vec::<u64>::new(), "node{node}");
    }
    // It is no server: clients and tools see two.
    let view = cluster.status()?["nodes"].as_array().map(Vec::len);
    assert_eq!(view, Some(2));
    let mut client = cluster.connect(1)?;

    let size: Option<(String, u32)> =
        client.query_first("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'")?;
    assert_eq!(size.map(|(_, size)| size), Some(2));
    logger.end(Signal::TERM)?;
    cluster.passed()
}
