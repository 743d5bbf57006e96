//! A server process: started on a host, watched, hurt.

mod control_group;
mod id;
mod syncs;
mod trace;

pub(crate) use control_group::{names as control_groups, remove as remove_control_group};
pub(crate) use id::cpu_time_of_thread;
pub use id::{Activity, ProcessId};
pub use syncs::Syncs;
pub(crate) use trace::remove_traces;
pub use trace::{CallCount, Functions, Moment, Probe, Record};

pub use control_group::available as can_starve;

use crate::net::Host;
use anyhow::{Context, Result};
use control_group::ControlGroup;
use parking_lot::Mutex;
use rustix::process::Signal;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// A running or ended process, in a control group of its own where the machine has them. It is
/// killed when this is dropped.
pub struct Process {
    id: ProcessId,
    child: Mutex<Child>,
    group: Option<ControlGroup>,
}

impl Process {
    /// Starts a program on `host`.
    pub fn start(host: &Host, command: &mut Command) -> Result<Process> {
        Process::start_with(host, command, Syncs::Done)
    }

    /// The same for a program whose syncs are done, or not.
    pub fn start_with(host: &Host, command: &mut Command, syncs: Syncs) -> Result<Process> {
        let group = ControlGroup::new()?;
        let child = host.spawn_after(|| syncs.of_this_thread(), command)?;
        let id = ProcessId::of(child.id())?;
        let process = Process { id, child: Mutex::new(child), group };
        if let Some(group) = &process.group {
            group.add(id.pid)?;
        }
        Ok(process)
    }

    pub fn pid(&self) -> i32 {
        self.id.pid
    }

    pub fn activity(&self) -> Activity {
        match self.exit_status() {
            Some(_) => Activity::Gone,
            None => self.id.activity(),
        }
    }

    /// How it ended, once it has.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.child.lock().try_wait().ok().flatten()
    }

    /// kill -9; does not wait.
    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)
    }

    /// SIGSTOP; returns when it has stopped, or soon: while its first thread waits for a frozen
    /// disk, it cannot.
    pub fn pause(&self) -> Result<()> {
        const LIMIT: Duration = Duration::from_secs(1);
        const POLL: Duration = Duration::from_millis(1);
        self.signal(Signal::STOP)?;
        let end = Instant::now() + LIMIT;
        while self.activity() == Activity::Running && Instant::now() < end {
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// SIGTERM; does not wait.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Waits until it is gone, and ends what it started; `false` if `limit` passed first.
    pub fn wait_gone(&self, limit: Duration) -> Result<bool> {
        if !self.id.wait_gone(limit)? {
            return Ok(false);
        }
        self.child.lock().wait().context("collecting an ended process")?;
        self.group.as_ref().map_or(Ok(()), ControlGroup::end_rest)?;
        Ok(true)
    }

    /// Gives it only this share of one processor; none: as much as it wants. An error where the
    /// machine has no control groups for processors.
    pub fn starve(&self, share: Option<f64>) -> Result<()> {
        let group = self.group.as_ref().context(
            "this machine has no control groups for processors (cpu controller): nobody can be \
             starved",
        )?;
        group.limit(share)
    }

    /// A process that has ended already needs no signal.
    fn signal(&self, signal: Signal) -> Result<()> {
        self.id.signal(signal).map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        const LIMIT: Duration = Duration::from_secs(20);
        let ended = self.kill().and_then(|()| self.wait_gone(LIMIT));
        if !matches!(ended, Ok(true)) {
            eprintln!("process {} does not end, though killed: {ended:?}", self.id.pid);
        }
    }
}
