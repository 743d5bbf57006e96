//! Waiting for servers, which cannot be asked to report.

use super::{Cluster, USER};
use crate::process::Activity;
use crate::server::{error_log, sql};
use anyhow::{bail, Result};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
const LINES_SHOWN: usize = 12;

impl Cluster {
    /// Waits until all of `nodes` are Synced; the error shows the end of their logs. A server that
    /// has ended is not waited for.
    pub fn wait_synced(&self, nodes: &[usize], limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        for node in nodes {
            while !self.is_synced(*node) {
                if self.activity(*node) == Activity::Gone {
                    bail!("node{} ended. {}", node + 1, self.log_ends(&[*node]));
                }
                if Instant::now() >= end {
                    bail!("node{} is not Synced. {}", node + 1, self.log_ends(nodes));
                }
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }

    /// Waits until these loggers count for majorities.
    pub fn wait_votes(&self, loggers: &[usize], limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        for logger in loggers {
            while !self.has_vote(*logger) {
                if Instant::now() >= end {
                    let name = &self.members[*logger].seat.node.name;
                    bail!("{name} has no vote. {}", self.log_ends(&[*logger]));
                }
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }

    /// Waits until all of `nodes` are Synced and have committed the same.
    pub fn wait_level(&self, nodes: &[usize], limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            self.wait_synced(nodes, end.saturating_duration_since(Instant::now()))?;
            let committed: Vec<Option<i64>> = nodes.iter().map(|n| self.committed(*n)).collect();
            if committed.iter().all(|seqno| seqno.is_some() && *seqno == committed[0]) {
                return Ok(());
            }
            if Instant::now() >= end {
                let nodes: Vec<usize> = nodes.iter().map(|node| node + 1).collect();
                bail!("nodes {nodes:?} did not become level within {limit:?}: {committed:?}");
            }
            std::thread::sleep(POLL);
        }
    }

    fn committed(&self, node: usize) -> Option<i64> {
        let status = sql::wsrep_status(&self.members[node].seat.node.socket(), USER).ok()?;
        status.number("wsrep_last_committed")
    }

    fn log_ends(&self, nodes: &[usize]) -> String {
        let ends = nodes.iter().map(|node| {
            let path = self.error_log(*node);
            let lines = error_log::tail(&path, LINES_SHOWN).join("\n    ");
            format!("The end of {}:\n    {lines}", path.display())
        });
        ends.collect::<Vec<_>>().join("\n")
    }
}
