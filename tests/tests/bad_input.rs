//! What can be wrong with a node's files, ports and options: one clear error that names it and
//! says what to do, no acknowledged row lost, no other node disturbed.

use anyhow::{ensure, Context, Result};
use quorate_tests::cluster::shown;
use quorate_tests::writers::{self, create_table, missing, Acks, Writers};
use quorate_tests::TestCluster;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// The node that gets into trouble; writers work on the others.
const VICTIM: u16 = 3;
const OTHERS: [u16; 2] = [1, 2];
/// So far into the first segment that intact records follow.
const DAMAGE_AT: u64 = 64 << 10;

/// A cluster that was written to, with its victim killed, and writers on the others.
struct Scene {
    cluster: TestCluster,
    before: Acks,
    writers: Writers,
}

impl Scene {
    fn with_victim_killed() -> Result<Scene> {
        let cluster = TestCluster::up(3, "")?;
        create_table(&cluster)?;
        let writers = writers::start(&cluster, &cluster.all(), 4, 1);
        thread::sleep(Duration::from_secs(3));
        let before = writers.stop();
        cluster.quorate(&["kill", &VICTIM.to_string()])?;
        // Where the victim led, another is elected before the others are watched.
        cluster.sql(1, "CREATE DATABASE elected")?;
        let writers = writers::start(&cluster, &OTHERS, 2, 2);
        Ok(Scene { cluster, before, writers })
    }

    fn start_victim(&self) -> Result<Output> {
        self.cluster.try_quorate(&["start", &VICTIM.to_string(), "--timeout", "60"])
    }

    /// Checks that the others never paused, and that no row is lost on `nodes`.
    fn end(self, nodes: &[u16]) -> Result<()> {
        let during = self.writers.stop();
        ensure!(
            during.per_second().iter().all(|count| *count > 0),
            "the others were disturbed: {:?} rows per second",
            during.per_second()
        );
        for acks in [&self.before, &during] {
            for node in nodes {
                let lost = missing(&self.cluster, *node, &acks.ids())?;
                ensure!(lost.is_empty(), "node{node} lost {} rows", lost.len());
            }
        }
        self.cluster.passed()
    }
}

/// The command failed, and what it printed contains all of `words`.
fn assert_says(output: &Output, words: &[&str]) {
    let text = shown(output);
    assert!(!output.status.success(), "it should have failed: {text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// Segments of the victim's log, oldest first.
fn segments(cluster: &TestCluster) -> Result<Vec<PathBuf>> {
    let dir = cluster.node_dir(VICTIM).join("log");
    let mut found: Vec<PathBuf> = fs::read_dir(&dir)
        .with_context(|| format!("reading {}", dir.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    found.retain(|path| file_name(path).starts_with("log-"));
    found.sort();
    ensure!(!found.is_empty(), "no segments in {}", dir.display());
    Ok(found)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[test]
fn a_flipped_bit_in_the_log() -> Result<()> {
    let scene = Scene::with_victim_killed()?;
    let segment = segments(&scene.cluster)?.remove(0);
    let file = File::options().read(true).write(true).open(&segment)?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, DAMAGE_AT)?;
    file.write_all_at(&[byte[0] ^ 0x10], DAMAGE_AT)?;

    let output = scene.start_victim()?;
    assert_says(&output, &["node3", &file_name(&segment), "is damaged at byte", "Empty"]);

    // As the message says.
    let log = scene.cluster.node_dir(VICTIM).join("log");
    let copy = log.with_extension("damaged");
    fs::create_dir(&copy)?;
    for entry in fs::read_dir(&log)? {
        let entry = entry?;
        fs::rename(entry.path(), copy.join(entry.file_name()))?;
    }
    scene.cluster.quorate(&["start", &VICTIM.to_string()])?;
    scene.end(&[1, 2, 3])
}

#[test]
fn a_truncated_log() -> Result<()> {
    let scene = Scene::with_victim_killed()?;
    let segment = segments(&scene.cluster)?.remove(0);
    File::options().write(true).open(&segment)?.set_len(DAMAGE_AT)?;
    let output = scene.start_victim()?;
    assert_says(&output, &["node3", &file_name(&segment)]);
    scene.end(&OTHERS)
}

#[test]
fn the_log_directory_of_another_group() -> Result<()> {
    let scene = Scene::with_victim_killed()?;
    let foreign = TestCluster::up(1, "")?;
    foreign.quorate(&["down"])?;
    let log = scene.cluster.node_dir(VICTIM).join("log");
    fs::remove_dir_all(&log)?;
    copy_folder(&foreign.node_dir(1).join("log"), &log)?;
    let output = scene.start_victim()?;
    assert_says(&output, &["node3", &log.display().to_string()]);
    foreign.passed()?;
    scene.end(&OTHERS)
}

#[test]
fn two_nodes_on_one_log_directory() -> Result<()> {
    let cluster = TestCluster::up(1, "")?;
    let log = cluster.node_dir(1).join("log").display().to_string();
    let second = TestCluster::unstarted(1, None)?;
    let option = format!("quorate.dir={log}");
    let output = second.try_start("", &["--provider-options", &option])?;
    assert_says(&output, &["node1", &log, "in use by process"]);
    cluster.sql(1, "CREATE DATABASE still_here")?;
    second.passed()?;
    cluster.passed()
}

#[test]
fn a_full_disk_under_the_log() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    let victim = VICTIM.to_string();
    cluster.quorate(&["stop", &victim])?;
    let log = cluster.node_dir(VICTIM).join("log");
    // For two segments and as many in reserve; somebody else takes the rest.
    let disk = SmallDisk::mount(&log, "size=280m,mode=0777")?;
    cluster.quorate(&["start", &victim])?;
    disk.fill()?;

    cluster.sql(1, "CREATE TABLE written.big (id INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB)")?;
    // What fills the disk here is as long as it looks.
    for node in [1, VICTIM] {
        cluster.sql(node, "SET GLOBAL wsrep_provider_options = 'quorate.compress=none'")?;
    }
    let writers = writers::start(&cluster, &OTHERS, 2, 1);
    let end = Instant::now() + Duration::from_secs(120);
    // Where the disk is full, what would have to be kept until it is committed does not take the reserve.
    let large = "INSERT INTO written.big (b) VALUES (REPEAT('x', 8000000))";
    while cluster.sql(VICTIM, large).is_ok() {
        ensure!(Instant::now() < end, "a large transaction goes on beside a full disk");
    }
    let text = cluster.error_log(VICTIM)?;
    assert!(text.contains("because the disk of this node's log has no room"), "{text}");
    cluster.sql(VICTIM, "INSERT INTO written.big (b) VALUES ('x')")?;
    while !cluster.error_log(VICTIM)?.contains("the log stands still: no space to") {
        ensure!(Instant::now() < end, "the disk never filled");
        cluster.sql(1, "INSERT INTO written.big (b) VALUES (REPEAT('x', 4000000))")?;
    }
    thread::sleep(Duration::from_secs(2));
    let acks = writers.stop();
    assert!(acks.per_second().iter().all(|count| *count > 0), "{:?}", acks.per_second());
    let text = cluster.error_log(VICTIM)?;
    assert!(text.contains(&format!("on the file system of {}", log.display())), "{text}");

    // Before, it warned, and used its reserve.
    assert!(text.contains("is full, 2 segments are in reserve"), "{text}");

    let begun = text.len();
    disk.grow()?;
    let end = Instant::now() + Duration::from_secs(60);
    while !cluster.error_log(VICTIM)?[begun..].contains("there is room again for the log") {
        ensure!(Instant::now() < end, "it does not go on by itself");
        thread::sleep(Duration::from_millis(100));
    }
    for node in cluster.all() {
        assert_eq!(missing(&cluster, node, &acks.ids())?, Vec::<u64>::new());
    }
    cluster.passed()?;
    // Unmounting needs the server gone; deleting the directory needs it unmounted.
    cluster.quorate(&["down"])?;
    drop(disk);
    Ok(())
}

#[test]
fn a_port_in_use() -> Result<()> {
    let scene = Scene::with_victim_killed()?;
    let port = scene.cluster.base_port + 10 * VICTIM + 1;
    let holder = TcpListener::bind(("127.0.0.1", port))?;
    let output = scene.start_victim()?;
    let pid = format!("pid {}", std::process::id());
    assert_says(&output, &["node3", &format!("port {port}"), &pid, "--base-port"]);
    drop(holder);
    scene.cluster.quorate(&["start", &VICTIM.to_string()])?;
    scene.end(&[1, 2, 3])
}

#[test]
fn garbage_on_the_group_port() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    let writers = writers::start(&cluster, &cluster.all(), 2, 1);
    let mut oversized = b"QRT\x01".to_vec();
    oversized.resize(64, 0xff);
    let noise: Vec<u8> =
        (0..1_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for node in cluster.all() {
        for message in
            [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &noise, &oversized, &[0; 100_000], b"Q"]
        {
            let port = cluster.base_port + 10 * node + 1;
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            // The node may hang up on us at any byte.
            let _ = stream.write_all(message);
        }
    }
    thread::sleep(Duration::from_secs(3));
    let acks = writers.stop();
    assert!(acks.per_second().iter().all(|count| *count > 0), "{:?}", acks.per_second());
    cluster.wait_level(&cluster.all(), Duration::from_secs(30))?;
    for node in cluster.all() {
        let log = cluster.error_log(node)?;
        assert!(
            log.contains("closed a connection from 127.0.0.1"),
            "node{node} says nothing of it: {log}"
        );
        assert_eq!(missing(&cluster, node, &acks.ids())?, Vec::<u64>::new());
    }
    cluster.passed()
}

#[test]
fn an_unknown_provider_option() -> Result<()> {
    let cluster = TestCluster::unstarted(1, None)?;
    let output = cluster.try_start("", &["--provider-options", "quorate.nonsense=1"])?;
    assert_says(&output, &["node1", "quorate.nonsense", "wsrep_provider_options"]);
    // The next attempt, without it, works.
    cluster.start("", &["--provider-options", ""])?;
    cluster.passed()
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").args([from, to]).status().context("running cp")?;
    ensure!(status.success(), "copying {} failed", from.display());
    Ok(())
}

/// A small file system of its own, mounted until dropped.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Mounts over `at` with what `at` holds.
    fn mount(at: &Path, options: &str) -> Result<SmallDisk> {
        let aside = at.with_extension("aside");
        fs::rename(at, &aside)?;
        fs::create_dir(at)?;
        let mount = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let status = Command::new("mount").args(mount).arg(at).status().context("running mount")?;
        ensure!(status.success(), "mounting needs root");
        let disk = SmallDisk { at: at.to_owned() };
        copy_folder(&aside.join("."), at)?;
        Ok(disk)
    }

    /// Leaves no room.
    fn fill(&self) -> Result<()> {
        let mut file = File::create(self.at.join("somebody's"))?;
        let full = loop {
            if let Err(error) = file.write_all(&[0; 4096]) {
                break error;
            }
        };
        ensure!(full.kind() == ErrorKind::StorageFull, "{full}");
        Ok(())
    }

    fn grow(&self) -> Result<()> {
        let mount = ["-o", "remount,size=2g"];
        let status = Command::new("mount").args(mount).arg(&self.at).status()?;
        ensure!(status.success(), "remounting {} failed", self.at.display());
        Ok(())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: where a test failed the server may still be there.
        if let Err(error) = Command::new("umount").arg("-l").arg(&self.at).status() {
            eprintln!("unmounting {}: {error}", self.at.display());
        }
    }
}
