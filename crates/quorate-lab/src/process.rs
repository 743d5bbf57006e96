//! A server process: started on a host, watched, hurt.

use anyhow::Result;
use std::time::Duration;

/// A running or ended process in a control group of its own.
pub struct Process {
    pid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Running,
    /// Stopped by SIGSTOP.
    Paused,
    Gone,
}

impl Process {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn activity(&self) -> Activity {
        Activity::Gone
    }

    /// kill -9; does not wait.
    pub fn kill(&self) -> Result<()> {
        Ok(())
    }

    /// SIGSTOP.
    pub fn pause(&self) -> Result<()> {
        Ok(())
    }

    /// SIGCONT.
    pub fn resume(&self) -> Result<()> {
        Ok(())
    }

    /// SIGTERM; does not wait.
    pub fn terminate(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until it is gone; `false` if `limit` passed first.
    pub fn wait_gone(&self, limit: Duration) -> Result<bool> {
        let _ = limit;
        Ok(true)
    }

    /// Gives it only this share of one processor; none: as much as it wants.
    pub fn starve(&self, share: Option<f64>) -> Result<()> {
        let _ = share;
        Ok(())
    }
}
