//! Counting system calls of processes, with the kernel's own tracing.
//!
//! An instance of tracing that is ours alone follows the processes and all threads that they start. What it
//! writes down is not read: the kernel counts what it wrote, what it wrote over and what it had no room for,
//! so no call is missed and no buffer needs to be large.
//!
//! Tracing is mounted in a folder of the lab's, so that both are found when a run was killed.

use crate::leftovers::{self, force_unmount, Folder};
use anyhow::{ensure, Context, Result};
use rustix::mount::{mount, MountFlags};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Entries are not looked at.
const BUFFER_KB: &str = "64";

/// Counts as long as it lives.
pub struct CallCount {
    instance: PathBuf,
    calls: Vec<&'static str>,
    /// Unmounted after the instance is gone.
    _mounted: Mounted,
}

struct Mounted(Folder);

impl CallCount {
    /// Will count `calls` (`fsync`, ...) of those that are [followed](CallCount::follow). An error if this
    /// kernel cannot.
    pub fn new(calls: &[&'static str]) -> Result<CallCount> {
        let folder = Folder::new()?;
        mount("none", folder.path(), "tracefs", MountFlags::empty(), None)
            .context("mounting tracefs: the kernel has no tracing, or this is not root")?;
        let mounted = Mounted(folder);
        let name = leftovers::new_name()?;
        let instance = mounted.0.path().join("instances").join(name);
        fs::create_dir(&instance).context("making an instance of tracing")?;
        let count = CallCount { instance, calls: calls.to_vec(), _mounted: mounted };
        for call in calls {
            ensure!(
                count.switch(call).exists(),
                "the kernel cannot trace the system call {call} (CONFIG_FTRACE_SYSCALLS)"
            );
        }
        count.write("buffer_size_kb", BUFFER_KB)?;
        count.write("options/event-fork", "1")?;
        Ok(count)
    }

    /// Counts the calls of a process, too, in all its threads and those that it starts.
    pub fn follow(&self, pid: i32) -> Result<()> {
        let mut followed = BTreeSet::new();
        // Threads that were started while the others were read are found in the next round.
        loop {
            let threads = leftovers::names_in(Path::new(&format!("/proc/{pid}/task")))?;
            let new: Vec<String> =
                threads.into_iter().filter(|thread| followed.insert(thread.clone())).collect();
            if new.is_empty() {
                break;
            }
            // Truncating it would let all others go.
            let path = self.instance.join("set_event_pid");
            let mut file = OpenOptions::new().append(true).open(&path)?;
            // In few calls: in each the kernel waits for all processors.
            file.write_all(new.join("\n").as_bytes())
                .and_then(|()| file.write_all(b"\n"))
                .with_context(|| format!("following process {pid}"))?;
        }
        // Only now: as long as there is nobody to follow, everybody is.
        self.calls.iter().try_for_each(|call| Ok(fs::write(self.switch(call), "1")?))
    }

    /// Calls so far.
    pub fn count(&self) -> Result<u64> {
        let folder = self.instance.join("per_cpu");
        let mut sum = 0;
        for processor in leftovers::names_in(&folder)? {
            let path = folder.join(processor).join("stats");
            let text =
                fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            sum += written(&text).with_context(|| format!("{}: {text}", path.display()))?;
        }
        Ok(sum)
    }

    fn switch(&self, call: &str) -> PathBuf {
        self.instance.join(format!("events/syscalls/sys_enter_{call}/enable"))
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.instance.join(file);
        fs::write(&path, value).with_context(|| format!("writing {}", path.display()))
    }
}

impl Drop for CallCount {
    fn drop(&mut self) {
        leftovers::wait_if_ending();
        if let Err(error) = remove_instance(&self.instance) {
            eprintln!("{error:#}");
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        leftovers::wait_if_ending();
        if let Err(error) = force_unmount(self.0.path()) {
            eprintln!("{error:#}");
        }
    }
}

/// Removes the instances that a process of this mark made. `mount`: where tracing is mounted.
pub(crate) fn remove_counts(mount: &Path, mark: &str) -> Result<()> {
    let instances = mount.join("instances");
    let left = leftovers::of_mark(leftovers::names_in(&instances)?, mark);
    left.iter().try_for_each(|name| remove_instance(&instances.join(name)))
}

fn remove_instance(instance: &Path) -> Result<()> {
    match fs::remove_dir(instance) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", instance.display()))
        }
        _ => Ok(()),
    }
}

/// Entries that a processor wrote, whatever became of them.
fn written(stats: &str) -> Option<u64> {
    let field = |name: &str| {
        let mut lines = stats.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(label, _)| *label == name)?.1.trim().parse::<u64>().ok()
    };
    ["entries", "overrun", "commit overrun", "dropped events", "read events"]
        .iter()
        .map(|name| field(name))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_over_counts() {
        let stats = "entries: 81\noverrun: 7\ncommit overrun: 0\nbytes: 3564\n\
                     oldest event ts:  3591.769370\nnow ts:  3596.1\ndropped events: 2\n\
                     read events: 1\n";
        assert_eq!(written(stats), Some(91));
        assert_eq!(written("entries: 81\n"), None);
    }
}
