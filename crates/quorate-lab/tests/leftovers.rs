//! What a run leaves that is ended from outside: nothing, at the latest when the next one begins.

use quorate_lab::disk::{Disk, Faults, Options};
use quorate_lab::leftovers::sweep;
use quorate_lab::net::{Network, Topology};
use quorate_lab::process::{CallCount, Functions, Probe, Process, ProcessId, Record};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// For a program that this test binary runs as.
const RUN: &str = "QUORATE_LAB_TEST_RUN";
const LIMIT: Duration = Duration::from_secs(20);

/// Not a test by itself: a run that makes one of everything and waits for its end.
#[test]
fn run() {
    if std::env::var_os(RUN).is_none() {
        return;
    }
    let network = Network::new(2, Topology::Lan).unwrap();
    let disk = Disk::new(Options::default()).unwrap();
    fs::create_dir(disk.path().join("data")).unwrap();
    let host = &network.hosts()[0];
    let sleeper = Process::start(host, Command::new("sleep").arg("1000")).unwrap();
    // None where the kernel has no tracing.
    let count = CallCount::new(&["fsync"]).ok();
    if let Some(count) = &count {
        count.follow(sleeper.pid()).unwrap();
    }
    let record = count.as_ref().map(|_| record());
    if let Some(record) = &record {
        record.follow(sleeper.pid()).unwrap();
    }
    // One that waits for the disk cannot be killed before the disk is gone.
    disk.set_faults(Faults { frozen: true, ..Faults::default() });
    let path = disk.path().join("file");
    let stuck = Process::start(host, Command::new("touch").arg(path)).unwrap();
    println!("\nmade {} {} {} {}", host.name(), disk.path().display(), sleeper.pid(), stuck.pid());
    std::thread::sleep(Duration::from_secs(1000));
}

/// With a probe in a function.
fn record() -> Record {
    probed();
    let file = std::env::current_exe().unwrap();
    let offset = Functions::of(&file).unwrap().find(&["leftovers", "6probed"]).unwrap();
    let probe = Probe { name: "probed", file: &file, offset, at_return: false };
    Record::new(&["sched/sched_waking"], &[probe]).unwrap()
}

#[inline(never)]
fn probed() {
    std::hint::black_box(());
}

struct Made {
    run: Child,
    namespace: String,
    disk: PathBuf,
    processes: Vec<ProcessId>,
}

impl Made {
    fn start() -> Made {
        let mut run = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "run", "--nocapture"])
            .env(RUN, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
        let made = lines.find_map(|line| Some(line.unwrap().strip_prefix("made ")?.to_owned()));
        let made = made.unwrap();
        let words: Vec<&str> = made.split(' ').collect();
        let processes =
            words[2..].iter().map(|pid| ProcessId::of(pid.parse().unwrap()).unwrap()).collect();
        Made { run, namespace: words[0].to_owned(), disk: words[1].into(), processes }
    }

    fn assert_gone(&self) {
        for process in &self.processes {
            assert!(process.wait_gone(LIMIT).unwrap(), "process {} is left", process.pid);
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.disk.to_str().unwrap()));
        assert!(!self.disk.exists());
        assert!(!Path::new("/run/netns").join(&self.namespace).exists());
        // `quorate-lab-<mark>-<number>`
        let (mark, _) = self.namespace.rsplit_once('-').unwrap();
        for groups in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"] {
            let Ok(entries) = fs::read_dir(groups) else { continue };
            let left = entries.flatten().any(|e| e.file_name().to_str().unwrap().contains(mark));
            assert!(!left, "a control group is left");
        }
        assert!(!mounts.contains(mark), "tracing is left mounted");
        let (instances, probes) = tracing();
        assert!(!instances.contains(mark), "{instances}");
        assert!(!probes.contains(&mark.replace(['-', '.'], "_")), "{probes}");
    }
}

/// All instances and all probes of the machine.
fn tracing() -> (String, String) {
    let script = "d=$(mktemp -d) && mount -t tracefs none $d && ls $d/instances && echo ---; \
                  cat $d/uprobe_events; umount $d; rmdir $d";
    let listed = Command::new("unshare").args(["--mount", "sh", "-c", script]).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let (instances, probes) = text.split_once("---").unwrap_or((&text, ""));
    (instances.to_owned(), probes.to_owned())
}

#[test]
fn a_signal_removes_everything() {
    let mut made = Made::start();
    let status = Command::new("kill").arg(made.run.id().to_string()).status().unwrap();
    assert!(status.success());
    assert!(!made.run.wait().unwrap().success());
    made.assert_gone();
}

#[test]
fn the_next_run_removes_what_a_killed_one_left() {
    let mut made = Made::start();
    made.run.kill().unwrap();
    made.run.wait().unwrap();
    assert!(made.processes[0].is_alive());
    sweep().unwrap();
    made.assert_gone();
}
