//! A cluster that is made for one test and gone after it, however the test ends.

use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::{FromValue, Queryable};
use mysql::Conn;
use quorate_cli::server::ProcessId;
use quorate_lab::leftovers::clear;
use rustix::process::{geteuid, Signal};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Between polls of what cannot be awaited.
const POLL: Duration = Duration::from_millis(50);
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);
/// Below the ports that the kernel hands out.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const PORTS_PER_CLUSTER: u16 = 100;
const ERROR_LINES_SHOWN: usize = 25;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Nodes are counted from 1, as their names are.
pub struct TestCluster {
    pub dir: PathBuf,
    pub nodes: u16,
    pub base_port: u16,
    /// None: the command's own default.
    pub provider: Option<PathBuf>,
    passed: AtomicBool,
}

impl TestCluster {
    /// Makes and starts a cluster; `extra` are server options for its extra.cnf.
    pub fn up(nodes: u16, extra: &str) -> Result<TestCluster> {
        let cluster = TestCluster::unstarted(nodes, None)?;
        cluster.start(extra, &[])?;
        Ok(cluster)
    }

    /// Only chooses a place and ports.
    pub fn unstarted(nodes: u16, provider: Option<&Path>) -> Result<TestCluster> {
        let parent = std::env::var_os("QUORATE_TEST_DIR").unwrap_or_else(|| "/var/tmp".into());
        let parent = PathBuf::from(parent);
        clear_leftovers(&parent)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("quorate-test-{}-{count}", std::process::id()));
        Ok(TestCluster {
            dir,
            nodes,
            base_port: free_ports(count as u16)?,
            provider: provider.map(Path::to_owned),
            passed: AtomicBool::new(false),
        })
    }

    /// `quorate up` with options of the cluster's own.
    pub fn start(&self, extra: &str, arguments: &[&str]) -> Result<()> {
        let output = self.try_start(extra, arguments)?;
        ensure!(output.status.success(), "quorate up failed:\n{}", shown(&output));
        Ok(())
    }

    pub fn try_start(&self, extra: &str, arguments: &[&str]) -> Result<Output> {
        if !extra.is_empty() {
            self.set_extra(extra)?;
        }
        let nodes = self.nodes.to_string();
        let port = self.base_port.to_string();
        let mut all = vec!["up", "--nodes", &nodes, "--base-port", &port, "--timeout", "120"];
        let provider = self.provider.as_ref().map(|path| path.display().to_string());
        if let Some(path) = &provider {
            all.extend(["--provider", path]);
        }
        all.extend(arguments);
        self.try_quorate(&all)
    }

    /// Server options that every node reads last; they count from its next start.
    pub fn set_extra(&self, options: &str) -> Result<()> {
        fs::create_dir_all(&self.dir)?;
        let path = self.dir.join("extra.cnf");
        fs::write(&path, format!("[mariadbd]\n{options}\n"))
            .with_context(|| format!("writing {}", path.display()))
    }

    /// Runs the command on this cluster; an error if it fails.
    pub fn quorate(&self, arguments: &[&str]) -> Result<String> {
        let output = self.try_quorate(arguments)?;
        ensure!(output.status.success(), "quorate {arguments:?} failed:\n{}", shown(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub fn try_quorate(&self, arguments: &[&str]) -> Result<Output> {
        let program = command_path();
        Command::new(&program)
            .env("QUORATE_DIR", &self.dir)
            .args(arguments)
            .output()
            .with_context(|| format!("running {}", program.display()))
    }

    /// The JSON of `quorate status`.
    pub fn status(&self) -> Result<Value> {
        let output = self.try_quorate(&["status", "--json"])?;
        serde_json::from_slice(&output.stdout).with_context(|| shown(&output))
    }

    /// One node's entry of [`TestCluster::status`].
    pub fn node_status(&self, node: u16) -> Result<Value> {
        Ok(self.status()?["nodes"][usize::from(node) - 1].clone())
    }

    pub fn connect(&self, node: u16) -> mysql::Result<Conn> {
        quorate_cli::sql::connect(&self.socket(node), "root", CLIENT_TIMEOUT)
    }

    /// A status variable of a node.
    pub fn variable<T: FromValue>(&self, node: u16, name: &str) -> Result<T> {
        let query = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let row: Option<(String, T)> = self.connect(node)?.query_first(query)?;
        Ok(row.with_context(|| format!("node{node} has no {name}"))?.1)
    }

    /// Runs one statement on a node.
    pub fn sql(&self, node: u16, statement: &str) -> Result<()> {
        let mut connection =
            self.connect(node).with_context(|| format!("connecting to node{node}"))?;
        connection.query_drop(statement).with_context(|| format!("node{node}: {statement}"))
    }

    pub fn node_dir(&self, node: u16) -> PathBuf {
        self.dir.join(format!("node{node}"))
    }

    /// Where a node's member listens.
    pub fn group_address(&self, node: u16) -> String {
        format!("127.0.0.1:{}", self.base_port + 10 * node + 1)
    }

    pub fn socket(&self, node: u16) -> PathBuf {
        self.node_dir(node).join("mariadb.sock")
    }

    pub fn all(&self) -> Vec<u16> {
        (1..=self.nodes).collect()
    }

    /// The leader; node 1 where the provider has no leader.
    pub fn leader(&self) -> Result<u16> {
        let status = self.status()?;
        let nodes = status["nodes"].as_array().context("status lists no nodes")?;
        let leader = nodes.iter().position(|node| node["role"] == "Leader");
        Ok(leader.unwrap_or(0) as u16 + 1)
    }

    pub fn followers(&self) -> Result<Vec<u16>> {
        let leader = self.leader()?;
        Ok(self.all().into_iter().filter(|node| *node != leader).collect())
    }

    pub fn signal(&self, node: u16, signal: Signal) -> Result<()> {
        let pid = self.node_status(node)?["pid"].as_u64();
        let pid = pid.with_context(|| format!("node{node} does not run"))?;
        ensure!(ProcessId::of(pid as u32)?.signal(signal)?, "node{node} is gone");
        Ok(())
    }

    /// The whole error log of a node.
    pub fn error_log(&self, node: u16) -> Result<String> {
        let path = self.node_dir(node).join("error.log");
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until all given nodes are Synced, have committed the same, and take statements.
    pub fn wait_level(&self, nodes: &[u16], limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            let status = self.status()?;
            let of = |node: &u16| &status["nodes"][usize::from(*node) - 1];
            let seqno = &of(&nodes[0])["seqno"];
            let is_level =
                |node: &u16| of(node)["state"] == "Synced" && of(node)["seqno"] == *seqno;
            if nodes.iter().all(|node| is_level(node) && self.is_ready(*node)) {
                return Ok(());
            }
            if Instant::now() >= end {
                bail!("nodes {nodes:?} did not become level within {limit:?}: {status:#}");
            }
            std::thread::sleep(POLL);
        }
    }

    /// The server says so itself: it hears a moment later than its member that there is a majority.
    fn is_ready(&self, node: u16) -> bool {
        let status = quorate_cli::sql::wsrep_status(&self.socket(node), "root");
        status.is_ok_and(|status| status.is_ready())
    }

    /// The end of a test: without it, the nodes' error logs are shown.
    pub fn passed(&self) -> Result<()> {
        self.passed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn show_logs(&self) {
        for node in self.all() {
            let Ok(log) = self.error_log(node) else { continue };
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(ERROR_LINES_SHOWN)..];
            eprintln!("--- end of node{node}/error.log\n{}", last.join("\n"));
        }
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        if !self.passed.load(Ordering::Relaxed) {
            self.show_logs();
        }
        if std::env::var_os("QUORATE_TEST_KEEP").is_some() {
            eprintln!("kept: {}", self.dir.display());
            return;
        }
        if let Err(error) = remove(&self.dir) {
            eprintln!("clearing {}: {error:#}", self.dir.display());
        }
    }
}

/// The command under test.
pub fn command_path() -> PathBuf {
    match std::env::var_os("QUORATE_BIN") {
        Some(path) => path.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/quorate"),
    }
}

/// The library beside it, however the tests themselves are built.
pub fn library_path() -> PathBuf {
    command_path().with_file_name("libquorate.so")
}

pub fn shown(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Kills what runs in a test's directory and deletes it. The test is over: nothing need be saved.
fn remove(dir: &Path) -> Result<()> {
    if dir.join("quorate.json").exists() {
        let down = ["down", "--wipe", "--yes", "--force", "--timeout", "0"];
        let output = Command::new(command_path()).env("QUORATE_DIR", dir).args(down).output()?;
        ensure!(output.status.success(), "{}", shown(&output));
    }
    clear(dir)
}

/// Removes clusters of test programs that were killed before they could.
fn clear_leftovers(parent: &Path) -> Result<()> {
    for entry in fs::read_dir(parent).with_context(|| format!("reading {}", parent.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix("quorate-test-").and_then(|rest| rest.split('-').next());
        if let Some(pid) = pid {
            if Path::new("/proc").join(pid).exists() {
                continue;
            }
            // Gone: another test program has removed it.
            let Ok(meta) = entry.metadata() else { continue };
            match geteuid().is_root() || meta.uid() == geteuid().as_raw() {
                true => remove(&entry.path())?,
                false => println!("{} was left by another account", entry.path().display()),
            }
        }
    }
    Ok(())
}

/// A base port such that the ports of a cluster from there on are free.
fn free_ports(count: u16) -> Result<u16> {
    let blocks = (PORTS.end - PORTS.start) / PORTS_PER_CLUSTER;
    let first = (std::process::id() as u16).wrapping_mul(7).wrapping_add(count) % blocks;
    (0..blocks)
        .map(|step| PORTS.start + (first + step) % blocks * PORTS_PER_CLUSTER)
        .find(|base| {
            (*base..base + PORTS_PER_CLUSTER)
                .all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        })
        .context("no free block of ports")
}
