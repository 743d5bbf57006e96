//! Removing what was made: at a signal, and what a killed run left.
//!
//! Whatever outlives a process that is killed carries the mark of that process (its pid and start
//! time) in its name: namespaces, control groups and folders are all called
//! `quorate-lab-<mark>-<number>`. So everything that an ended process left can be found by name
//! alone, nothing of a living one is touched, and a signal handler needs no other bookkeeping.

use crate::process::{control_groups, remove_control_group, remove_traces, ProcessId};
use anyhow::{Context, Result};
use parking_lot::Mutex;
use rustix::fs::{flock, FlockOperation};
use rustix::mount::{unmount, UnmountFlags};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const PREFIX: &str = "quorate-lab-";
const NAMESPACES: &str = "/run/netns";
/// A killed process may have a large memory to give back.
const DEATH_LIMIT: Duration = Duration::from_secs(20);

static OWN: Mutex<Option<ProcessId>> = Mutex::new(None);
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// A signal ends this process.
static ENDING: AtomicBool = AtomicBool::new(false);
static LAST_ACT: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Removes namespaces, mounts, processes, control groups and folders of runs whose process is
/// gone. The lab does so itself before it makes its first thing.
pub fn sweep() -> Result<()> {
    // Two that sweep at once would be in each other's way.
    let base = base();
    let lock = File::open(&base).with_context(|| format!("opening {}", base.display()))?;
    flock(&lock, FlockOperation::LockExclusive).context("waiting for another run")?;
    let all = [names_in(&base)?, names_in(Path::new(NAMESPACES))?, control_groups()?].concat();
    let marks: BTreeSet<&str> =
        all.iter().filter_map(|name| name.strip_prefix(PREFIX)?.split('-').next()).collect();
    for mark in marks {
        if mark.parse::<ProcessId>().is_ok_and(|maker| !maker.is_alive()) {
            remove(mark)?;
        }
    }
    Ok(())
}

/// Deletes a folder, if it is there.
pub fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("deleting {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// What is done at a signal, once everything is removed and before the process ends.
pub fn at_signal(act: impl FnOnce() + Send + 'static) {
    *LAST_ACT.lock() = Some(Box::new(act));
}

/// Returns unless a signal is ending this process: whoever meets what is being removed under its hands
/// neither makes new things nor tells of it.
pub fn wait_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// A name that no other thing has, and that tells who made it.
pub(crate) fn new_name() -> Result<String> {
    wait_if_ending();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Ok(format!("{PREFIX}{}-{number}", begin()?))
}

/// A folder that is removed with everything in it when this is dropped.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn new() -> Result<Folder> {
        let path = base().join(new_name()?);
        fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Folder { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        wait_if_ending();
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("clearing {}: {error}", self.path.display());
        }
    }
}

/// Names of `PREFIX` that `mark` stands in, of those in `names`.
pub(crate) fn of_mark(names: Vec<String>, mark: &str) -> Vec<String> {
    let start = format!("{PREFIX}{mark}-");
    names.into_iter().filter(|name| name.starts_with(&start)).collect()
}

/// The first call clears what earlier runs left and begins to listen for signals.
fn begin() -> Result<ProcessId> {
    let mut own = OWN.lock();
    if let Some(own) = *own {
        return Ok(own);
    }
    sweep()?;
    let this = ProcessId::own()?;
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .context("listening for signals")?;
    std::thread::Builder::new().name("lab-signals".into()).spawn(move || {
        for signal in signals.forever() {
            ENDING.store(true, Ordering::SeqCst);
            if let Err(error) = remove(&this.to_string()) {
                eprintln!("clearing the lab: {error:#}");
            }
            if let Some(act) = LAST_ACT.lock().take() {
                act();
            }
            if let Err(error) = signal_hook::low_level::emulate_default_handler(signal) {
                eprintln!("ending at signal {signal}: {error}");
            }
        }
    })?;
    *own = Some(this);
    Ok(this)
}

fn base() -> PathBuf {
    std::env::var_os("QUORATE_LAB_DIR").map_or("/var/tmp".into(), PathBuf::from)
}

fn remove(mark: &str) -> Result<()> {
    let base = base();
    let folders = of_mark(names_in(&base)?, mark).into_iter().map(|name| base.join(name));
    let folders: Vec<PathBuf> = folders.collect();
    let namespaces = of_mark(names_in(Path::new(NAMESPACES))?, mark);
    let mut result = Ok(());
    // What cannot be removed keeps nothing else.
    let mut note = |removed: Result<()>| match removed {
        Err(error) if result.is_ok() => result = Err(error),
        _ => {}
    };
    // Processes that wait for a frozen disk end only when the disk is gone.
    for (mount, kind) in mounts_below(&folders)? {
        // No other may be looked into: a frozen disk does not answer.
        if kind == "tracefs" {
            note(remove_traces(&mount, mark));
        }
        note(force_unmount(&mount));
    }
    for name in &namespaces {
        note(kill_all_in(name));
    }
    for name in &namespaces {
        note(delete_namespace(name));
    }
    for name in of_mark(control_groups()?, mark) {
        note(remove_control_group(&name));
    }
    for folder in &folders {
        let removed = fs::remove_dir_all(folder);
        note(removed.with_context(|| format!("clearing {}", folder.display())));
    }
    result
}

/// Unmounts whatever uses it; a FUSE file system is aborted first, so that nobody waits for it.
pub(crate) fn force_unmount(mount: &Path) -> Result<()> {
    unmount(mount, UnmountFlags::FORCE | UnmountFlags::DETACH)
        .with_context(|| format!("unmounting {}", mount.display()))
}

/// Kills all processes in a network namespace and waits until they are gone.
pub(crate) fn kill_all_in(namespace: &str) -> Result<()> {
    let pids = ip(&["netns", "pids", namespace])?;
    let processes: Vec<ProcessId> =
        pids.lines().filter_map(|pid| ProcessId::of(pid.trim().parse().ok()?).ok()).collect();
    for process in &processes {
        process.signal(Signal::KILL)?;
    }
    for process in &processes {
        anyhow::ensure!(
            process.wait_gone(DEATH_LIMIT)?,
            "process {} in {namespace} does not end, though killed",
            process.pid
        );
    }
    Ok(())
}

pub(crate) fn delete_namespace(name: &str) -> Result<()> {
    ip(&["netns", "delete", name]).map(drop)
}

/// Runs `ip` and returns what it prints.
pub(crate) fn ip(arguments: &[&str]) -> Result<String> {
    let output = Command::new("ip").args(arguments).output().context("running ip (iproute2)")?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "ip {}: {error}", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Mount points in `folders` with the types of their file systems, innermost first.
fn mounts_below(folders: &[PathBuf]) -> Result<Vec<(PathBuf, String)>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("reading the mount table")?;
    let mounts = table.lines().filter_map(|line| {
        let (place, source) = line.split_once(" - ")?;
        let point = PathBuf::from(place.split(' ').nth(4)?);
        Some((point, source.split(' ').next()?.to_owned()))
    });
    let ours = |(point, _): &(PathBuf, _)| folders.iter().any(|folder| point.starts_with(folder));
    let mut below: Vec<(PathBuf, String)> = mounts.filter(ours).collect();
    below.reverse();
    Ok(below)
}

/// Names of the entries of a folder; none if it does not exist.
pub(crate) fn names_in(folder: &Path) -> Result<Vec<String>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("reading {}", folder.display())),
    }
}
