//! Control groups: how a process is starved of processor time. Version 1 and 2.

use crate::leftovers;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const VERSION_1: &str = "/sys/fs/cgroup/cpu";
const VERSION_2: &str = "/sys/fs/cgroup";
/// Long enough for a server to do something, short enough that it never runs freely for long.
const PERIOD_US: u64 = 20_000;

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

/// Names of all groups beside ours.
pub(crate) fn names() -> Result<Vec<String>> {
    root().map_or(Ok(Vec::new()), |(root, _)| leftovers::names_in(root))
}

/// Removes a group; what still runs in it moves up.
pub(crate) fn remove(name: &str) -> Result<()> {
    let Some((root, _)) = root() else { return Ok(()) };
    let folder = root.join(name);
    let left = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in left.lines() {
        // A process that has ended meanwhile needs no other group.
        let _ = fs::write(root.join("cgroup.procs"), pid);
    }
    fs::remove_dir(&folder).with_context(|| format!("removing {}", folder.display()))
}

fn root() -> Option<(&'static Path, bool)> {
    let (one, two) = (Path::new(VERSION_1), Path::new(VERSION_2));
    if one.join("cgroup.procs").exists() {
        return Some((one, false));
    }
    let passed_on = fs::read_to_string(two.join("cgroup.subtree_control")).ok()?;
    passed_on.split_whitespace().any(|controller| controller == "cpu").then_some((two, true))
}
