//! Counting system calls of processes.
//!
//! What is traced is not read: the kernel counts what it wrote, what it wrote over and what it had no room
//! for, so no call is missed and no buffer needs to be large.

use super::Instance;
use anyhow::{ensure, Result};

/// Entries are not looked at.
const BUFFER_KB: u32 = 64;

/// Counts as long as it lives.
pub struct CallCount {
    instance: Instance,
    events: Vec<String>,
}

impl CallCount {
    /// Will count `calls` (`fsync`, ...) of those that are [followed](CallCount::follow). An error if this
    /// kernel cannot.
    pub fn new(calls: &[&'static str]) -> Result<CallCount> {
        let instance = Instance::new(BUFFER_KB)?;
        for call in calls {
            ensure!(
                instance.has(&event(call)),
                "the kernel cannot trace the system call {call} (CONFIG_FTRACE_SYSCALLS)"
            );
        }
        Ok(CallCount { instance, events: calls.iter().map(|call| event(call)).collect() })
    }

    /// Counts the calls of a process, too, in all its threads and those that it starts.
    pub fn follow(&self, pid: i32) -> Result<()> {
        self.instance.follow(pid, &self.events)
    }

    /// Calls so far.
    pub fn count(&self) -> Result<u64> {
        let written = ["entries", "overrun", "commit overrun", "dropped events", "read events"];
        self.instance.sum(&written)
    }
}

fn event(call: &str) -> String {
    format!("syscalls/sys_enter_{call}")
}
