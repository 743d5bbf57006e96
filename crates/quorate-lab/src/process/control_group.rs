//! Control groups: how a process is starved of processor time, and how what it started is found
//! when it has died. Version 1 and 2.

use super::ProcessId;
use crate::leftovers;
use anyhow::{ensure, Context, Result};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const VERSION_1: &str = "/sys/fs/cgroup/cpu";
const VERSION_2: &str = "/sys/fs/cgroup";
/// Long enough for a server to do something, short enough that it never runs freely for long.
const PERIOD_US: u64 = 20_000;
const DEATH_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(2);

pub(super) struct ControlGroup {
    name: String,
    folder: PathBuf,
    version_2: bool,
}

impl ControlGroup {
    /// None where the machine has none.
    pub fn new() -> Result<Option<ControlGroup>> {
        let Some((root, version_2)) = root() else { return Ok(None) };
        let name = leftovers::new_name()?;
        let folder = root.join(&name);
        fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Some(ControlGroup { name, folder, version_2 }))
    }

    pub fn add(&self, pid: i32) -> Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Limits its processes to this share of one processor, all together.
    pub fn limit(&self, share: Option<f64>) -> Result<()> {
        // Less than a millisecond a period is refused.
        let quota = share.map(|share| ((PERIOD_US as f64 * share) as u64).max(1000));
        if self.version_2 {
            let quota = quota.map_or("max".to_owned(), |quota| quota.to_string());
            return self.write("cpu.max", &format!("{quota} {PERIOD_US}"));
        }
        self.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
        self.write("cpu.cfs_quota_us", &quota.map_or("-1".to_owned(), |quota| quota.to_string()))
    }

    /// Kills what is left in it, as a service manager does when a server has ended: a script that
    /// receives the state outlives its server, and keeps the next one from starting another.
    pub fn end_rest(&self) -> Result<()> {
        end_all(&self.folder)
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.folder.join(file);
        fs::write(&path, value).with_context(|| format!("writing {value} to {}", path.display()))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.name) {
            eprintln!("{error:#}");
        }
    }
}

/// Whether the machine has control groups for processors.
pub fn available() -> bool {
    root().is_some()
}

/// Names of all groups beside ours.
pub(crate) fn names() -> Result<Vec<String>> {
    root().map_or(Ok(Vec::new()), |(root, _)| leftovers::names_in(root))
}

/// Removes a group; what still runs in it is killed.
pub(crate) fn remove(name: &str) -> Result<()> {
    let Some((root, _)) = root() else { return Ok(()) };
    let folder = root.join(name);
    end_all(&folder)?;
    fs::remove_dir(&folder).with_context(|| format!("removing {}", folder.display()))
}

fn end_all(group: &Path) -> Result<()> {
    let end = Instant::now() + DEATH_LIMIT;
    loop {
        // A group that is gone has nobody in it.
        let left = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        if left.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{}: killed, and still there: {left:?}", group.display());
        for pid in left.lines() {
            // One that has ended meanwhile needs no signal.
            if let Ok(process) = ProcessId::of(pid.parse().context("a pid of a control group")?) {
                process.signal(Signal::KILL)?;
            }
        }
        thread::sleep(POLL);
    }
}

fn root() -> Option<(&'static Path, bool)> {
    let (one, two) = (Path::new(VERSION_1), Path::new(VERSION_2));
    if one.join("cgroup.procs").exists() {
        return Some((one, false));
    }
    let passed_on = fs::read_to_string(two.join("cgroup.subtree_control")).ok()?;
    passed_on.split_whitespace().any(|controller| controller == "cpu").then_some((two, true))
}
