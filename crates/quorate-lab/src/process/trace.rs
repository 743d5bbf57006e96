//! The kernel's own tracing of processes: [`CallCount`] counts what they ask of the kernel, [`Record`] keeps
//! when their threads did what.
//!
//! Each is an instance of tracing that is ours alone, and follows the processes and all threads that they
//! start. Tracing is mounted in a folder of the lab's, so that both are found when a run was killed; probes in
//! functions, which belong to no instance, stand in a group of the instance's name.

mod count;
mod function;
mod record;

pub use count::CallCount;
pub use function::Functions;
pub use record::{Moment, Probe, Record};

use crate::leftovers::{self, force_unmount, Folder};
use anyhow::{Context, Result};
use rustix::mount::{mount, MountFlags};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// All probes in functions, of the whole machine.
const PROBES: &str = "uprobe_events";

struct Instance {
    name: String,
    /// Unmounted after the instance is gone.
    mounted: Mounted,
}

struct Mounted(Folder);

impl Instance {
    /// With so much room for each processor.
    fn new(buffer_kb: u32) -> Result<Instance> {
        let folder = Folder::new()?;
        mount("none", folder.path(), "tracefs", MountFlags::empty(), None)
            .context("mounting tracefs: the kernel has no tracing, or this is not root")?;
        let mounted = Mounted(folder);
        let name = leftovers::new_name()?;
        let instance = Instance { name, mounted };
        fs::create_dir(instance.folder()).context("making an instance of tracing")?;
        instance.write("buffer_size_kb", &buffer_kb.to_string())?;
        instance.write("options/event-fork", "1")?;
        Ok(instance)
    }

    fn folder(&self) -> PathBuf {
        self.mounted.0.path().join("instances").join(&self.name)
    }

    /// Whether the kernel knows an event, such as `sched/sched_waking`.
    fn has(&self, event: &str) -> bool {
        self.switch(event).exists()
    }

    /// Makes a function's calls or returns an event, and gives its name.
    fn probe(&self, probe: &Probe) -> Result<String> {
        let kind = if probe.at_return { 'r' } else { 'p' };
        let event = format!("{}/{}", group(&self.name), probe.name);
        let (file, offset) = (probe.file.display(), probe.offset);
        let path = self.mounted.0.path().join(PROBES);
        append(&path, &format!("{kind}:{event} {file}:{offset:#x}\n"))
            .with_context(|| format!("a probe in {file} (CONFIG_UPROBE_EVENTS)"))?;
        Ok(event)
    }

    /// Follows a process, too, in all its threads and those that it starts.
    fn follow(&self, pid: i32, events: &[String]) -> Result<()> {
        let mut followed = BTreeSet::new();
        // Threads that were started while the others were read are found in the next round.
        loop {
            let threads = leftovers::names_in(Path::new(&format!("/proc/{pid}/task")))?;
            let new: Vec<String> =
                threads.into_iter().filter(|thread| followed.insert(thread.clone())).collect();
            if new.is_empty() {
                break;
            }
            // In few calls: in each the kernel waits for all processors.
            append(&self.folder().join("set_event_pid"), &(new.join("\n") + "\n"))
                .with_context(|| format!("following process {pid}"))?;
        }
        // Only now: as long as there is nobody to follow, everybody is.
        events.iter().try_for_each(|event| {
            let switch = self.switch(event);
            fs::write(&switch, "1").with_context(|| format!("switching {event} on"))
        })
    }

    /// Of these fields of all processors' statistics.
    fn sum(&self, fields: &[&str]) -> Result<u64> {
        let folder = self.folder().join("per_cpu");
        let mut sum = 0;
        for processor in leftovers::names_in(&folder)? {
            let path = folder.join(processor).join("stats");
            let text =
                fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            let fields: Option<u64> = fields.iter().map(|name| field(&text, name)).sum();
            sum += fields.with_context(|| format!("{}: {text}", path.display()))?;
        }
        Ok(sum)
    }

    fn switch(&self, event: &str) -> PathBuf {
        self.folder().join("events").join(event).join("enable")
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.folder().join(file);
        fs::write(&path, value).with_context(|| format!("writing {}", path.display()))
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.folder().join(file);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        leftovers::wait_if_ending();
        if let Err(error) = remove_instance(self.mounted.0.path(), &self.name) {
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
pub(crate) fn remove_traces(mount: &Path, mark: &str) -> Result<()> {
    let left = leftovers::of_mark(leftovers::names_in(&mount.join("instances"))?, mark);
    left.iter().try_for_each(|name| remove_instance(mount, name))
}

/// With its probes, which can go once nobody listens to them.
fn remove_instance(mount: &Path, name: &str) -> Result<()> {
    let instance = mount.join("instances").join(name);
    match fs::remove_dir(&instance) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("removing {}", instance.display()))
        }
        _ => {}
    }
    let probes = mount.join(PROBES);
    let all = match fs::read_to_string(&probes) {
        // A kernel without them.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        all => all.with_context(|| format!("reading {}", probes.display()))?,
    };
    let start = format!("{}/", group(name));
    // `p:GROUP/NAME FILE:OFFSET`
    let events = all.lines().filter_map(|line| line.split_once(':')?.1.split(' ').next());
    for event in events.filter(|event| event.starts_with(&start)) {
        append(&probes, &format!("-:{event}\n")).with_context(|| format!("removing {event}"))?;
    }
    Ok(())
}

/// The kernel takes no other characters.
fn group(instance: &str) -> String {
    instance.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// Truncating such a file would let all others go.
fn append(path: &Path, text: &str) -> Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("writing {} to {}", text.trim_end(), path.display()))
}

/// Of a processor's statistics.
fn field(stats: &str, name: &str) -> Option<u64> {
    let mut lines = stats.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(label, _)| *label == name)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_the_kernel_are_read() {
        let stats = "entries: 81\noverrun: 7\ncommit overrun: 0\nbytes: 3564\n\
                     oldest event ts:  3591.769370\nnow ts:  3596.1\ndropped events: 2\n";
        assert_eq!(field(stats, "entries"), Some(81));
        assert_eq!((field(stats, "overrun"), field(stats, "commit overrun")), (Some(7), Some(0)));
        assert_eq!(field(stats, "read events"), None);
    }

    #[test]
    fn a_group_has_a_name_that_the_kernel_takes() {
        assert_eq!(group("quorate-lab-12.345-6"), "quorate_lab_12_345_6");
    }
}
