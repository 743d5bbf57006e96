//! A process that can be told from a later one with the same pid, and that may not be our child.

use anyhow::{Context, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Of the kernel's flags of a task (include/linux/sched.h): it is ending.
const PF_EXITING: u32 = 0x4;
const KILL_BIT: u64 = 1 << (Signal::KILL.as_raw() - 1);

/// A pid together with its start time, in clock ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: i32,
    started: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Running,
    /// Stopped by SIGSTOP.
    Paused,
    Gone,
}

impl ProcessId {
    /// This process.
    pub fn own() -> Result<ProcessId> {
        ProcessId::of(std::process::id())
    }

    /// The process that has `pid` now.
    pub fn of(pid: u32) -> Result<ProcessId> {
        let pid = i32::try_from(pid).context("pid out of range")?;
        let now = stat(pid).with_context(|| format!("process {pid} is already gone"))?;
        Ok(ProcessId { pid, started: now.started })
    }

    pub fn activity(&self) -> Activity {
        self.now().map_or(Activity::Gone, |now| now.activity())
    }

    /// Unless another has its pid by now.
    fn now(&self) -> Option<Stat> {
        stat(self.pid).filter(|now| now.started == self.started)
    }

    /// Processor time that it has used, with all threads that it ever had; none if it is gone. To the
    /// kernel's clock tick, 10 ms.
    pub fn cpu_time(&self) -> Option<Duration> {
        let ticks = self.now()?.cpu_ticks;
        Some(Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64))
    }

    /// The most memory that it had at once, resident; none if it is gone.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
        self.is_alive().then_some(kilobytes * 1024)
    }

    /// From here on the most counts, beginning with what it has now (proc_pid_clear_refs(5)).
    pub fn forget_peak_memory(&self) -> Result<()> {
        const PEAK: &str = "5";
        let path = format!("/proc/{}/clear_refs", self.pid);
        fs::write(&path, PEAK).with_context(|| format!("writing {path}"))
    }

    pub fn is_alive(&self) -> bool {
        self.activity() != Activity::Gone
    }

    /// Whether it is alive for the last moments only: it has been killed, or is ending by itself.
    /// A server that is writing can take seconds to go.
    pub fn is_ending(&self) -> bool {
        self.now()
            .filter(|now| now.activity() != Activity::Gone)
            .is_some_and(|now| now.state == 'Z' || now.exiting || kill_is_pending(self.pid))
    }

    /// Sends a signal; `false` if the process is already gone.
    pub fn signal(&self, signal: Signal) -> Result<bool> {
        let Some(handle) = self.handle()? else { return Ok(false) };
        match pidfd_send_signal(&handle, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("signalling process {}", self.pid)),
        }
    }

    /// Waits until the process is gone; `false` if `limit` passed first.
    pub fn wait_gone(&self, limit: Duration) -> Result<bool> {
        let end = Instant::now() + limit;
        let Some(handle) = self.handle()? else { return Ok(true) };
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).context("time limit out of range")?;
            match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("waiting for a process"),
            }
        }
    }

    /// A handle that cannot come to mean another process; `None` if this one is gone.
    fn handle(&self) -> Result<Option<OwnedFd>> {
        let pid = Pid::from_raw(self.pid).context("pid 0 in the state file")?;
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("opening process {pid:?}")),
        };
        // Checked after opening: from here on the handle stands for what was checked.
        Ok(self.is_alive().then_some(handle))
    }
}

/// `pid.start`, for names of files.
impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.pid, self.started)
    }
}

impl FromStr for ProcessId {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<ProcessId> {
        let (pid, started) = text.split_once('.').context("no process: it has no dot")?;
        Ok(ProcessId { pid: pid.parse()?, started: started.parse()? })
    }
}

struct Stat {
    state: char,
    /// The first thread has begun to end.
    exiting: bool,
    threads: u32,
    cpu_ticks: u64,
    started: u64,
}

impl Stat {
    fn activity(&self) -> Activity {
        match self.state {
            // While other threads are left (in a write to disk, say) it still holds its ports and
            // locks, though the first thread has ended.
            'Z' | 'X' if self.threads <= 1 => Activity::Gone,
            'T' => Activity::Paused,
            _ => Activity::Running,
        }
    }
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold spaces and parentheses itself. Fields are numbered from
    // 1 in proc(5); the state is the third.
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let flags: u32 = field(9)?.parse().ok()?;
    Some(Stat {
        state: field(3)?.chars().next()?,
        exiting: flags & PF_EXITING != 0,
        threads: field(20)?.parse().ok()?,
        // In user mode, and in the kernel.
        cpu_ticks: field(14)?.parse::<u64>().ok()? + field(15)?.parse::<u64>().ok()?,
        started: field(22)?.parse().ok()?,
    })
}

/// Processor time of a thread of this process.
pub(crate) fn cpu_time_of_thread(thread: i32) -> Result<Duration> {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let nanos = text.split(' ').next().and_then(|field| field.parse().ok());
    Ok(Duration::from_nanos(nanos.with_context(|| format!("{path}: {text:?}"))?))
}

/// Whether SIGKILL was sent and not all threads have seen it. The first one may have, and not be marked as
/// exiting yet.
fn kill_is_pending(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let pending = text.lines().filter_map(|line| {
            let signals = line.strip_prefix("SigPnd:").or(line.strip_prefix("ShdPnd:"))?;
            u64::from_str_radix(signals.trim(), 16).ok()
        });
        pending.fold(0, |all, signals| all | signals) & KILL_BIT != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_followed_to_its_end() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        assert_eq!(process.activity(), Activity::Running);
        assert!(!process.wait_gone(Duration::from_millis(1)).unwrap());
        assert!(process.signal(Signal::KILL).unwrap());
        assert!(process.wait_gone(Duration::from_secs(10)).unwrap());
        child.wait().unwrap();
        assert_eq!(process.activity(), Activity::Gone);
        assert!(!process.signal(Signal::KILL).unwrap());
    }

    #[test]
    fn a_peak_of_memory_is_there_until_it_is_forgotten() {
        const BYTES: usize = 64 << 20;
        let own = ProcessId::own().unwrap();
        let peak = || own.peak_memory_bytes().unwrap();
        drop(std::hint::black_box(vec![1u8; BYTES]));
        let most = peak();
        assert!(most > BYTES as u64);
        own.forget_peak_memory().unwrap();
        assert!(peak() < most, "{} of {most}", peak());
    }

    #[test]
    fn another_start_time_is_another_process() {
        let own = ProcessId::of(std::process::id()).unwrap();
        let earlier = ProcessId { started: own.started - 1, ..own };
        assert!(own.is_alive() && !earlier.is_alive());
        assert_eq!(earlier.to_string().parse::<ProcessId>().unwrap(), earlier);
        assert!(!earlier.signal(Signal::KILL).unwrap());
    }
}
