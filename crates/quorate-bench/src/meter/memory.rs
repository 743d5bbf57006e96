//! The most memory that a server had at once.

use crate::fleet::Fleet;
use anyhow::{Context, Result};
use quorate_lab::process::ProcessId;

/// Watches the servers of a fleet from a moment on.
pub struct PeakMemory {
    /// By member.
    servers: Vec<ProcessId>,
}

impl PeakMemory {
    /// What they had before does not count, but for what they have now.
    pub fn watch(fleet: &Fleet) -> Result<PeakMemory> {
        let watch = |member: usize| {
            let pid = fleet.pid(member).with_context(|| format!("node{} is down", member + 1))?;
            let server = ProcessId::of(pid.unsigned_abs())?;
            server.forget_peak_memory()?;
            Ok(server)
        };
        Ok(PeakMemory { servers: fleet.members().map(watch).collect::<Result<_>>()? })
    }

    /// By member.
    pub fn bytes(&self) -> Result<Vec<u64>> {
        let peak = |(member, server): (usize, &ProcessId)| {
            let peak = server.peak_memory_bytes();
            peak.with_context(|| format!("node{} has ended meanwhile", member + 1))
        };
        self.servers.iter().enumerate().map(peak).collect()
    }
}
