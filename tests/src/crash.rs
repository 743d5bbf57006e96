//! Kill under load, start again, count what is lost.

use crate::writers::{self, missing};
use crate::TestCluster;
use anyhow::{ensure, Context, Result};
use quorate_lab::random::Random;
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

/// All victims die within this time of each other.
const SPREAD_MS: u64 = 100;
const CLIENTS_PER_NODE: usize = 4;

/// Rounds of crashes on one cluster; every row ever acknowledged must survive all later rounds.
pub struct CrashRounds<'a> {
    cluster: &'a TestCluster,
    random: Random,
    acked: HashSet<u64>,
    round: u64,
}

#[derive(Debug)]
pub struct Round {
    pub victims: Vec<u16>,
    pub acked: usize,
    /// (node, rows) that are not there though they were acknowledged.
    pub lost: Vec<(u16, usize)>,
    /// `quorate up`: from its start until all were Synced.
    pub restart: Duration,
}

impl<'a> CrashRounds<'a> {
    pub fn new(cluster: &'a TestCluster) -> Result<CrashRounds<'a>> {
        writers::create_table(cluster)?;
        Ok(CrashRounds { cluster, random: Random::fresh(), acked: HashSet::new(), round: 0 })
    }

    /// Kills `count` random nodes after some seconds of load, starts them, and looks.
    pub fn round(&mut self, count: usize) -> Result<Round> {
        self.round += 1;
        let nodes = self.cluster.all();
        let writers = writers::start(self.cluster, &nodes, CLIENTS_PER_NODE, self.round);
        thread::sleep(Duration::from_millis(1500 + self.random.below(2000)));
        let victims = self.random.choose(&nodes, count);
        self.kill(&victims)?;
        if count < nodes.len() {
            // What the survivors acknowledge meanwhile counts, too.
            thread::sleep(Duration::from_millis(self.random.below(3000)));
        }
        let acks = writers.stop();
        ensure!(!acks.is_empty(), "no row was acknowledged: the round shows nothing");
        self.acked.extend(acks.ids());

        let begin = Instant::now();
        self.cluster.quorate(&["up", "--timeout", "120"])?;
        let restart = begin.elapsed();
        let mut lost = Vec::new();
        for node in nodes {
            let rows = missing(self.cluster, node, &self.acked)?;
            if !rows.is_empty() {
                lost.push((node, rows.len()));
            }
        }
        Ok(Round { victims, acked: acks.len(), lost, restart })
    }

    fn kill(&mut self, victims: &[u16]) -> Result<()> {
        let status = self.cluster.status()?;
        let delays: Vec<u64> = victims.iter().map(|_| self.random.below(SPREAD_MS)).collect();
        thread::scope(|scope| {
            let killers: Vec<_> = victims
                .iter()
                .zip(delays)
                .map(|(victim, delay)| {
                    let pid = status["nodes"][usize::from(*victim) - 1]["pid"].as_u64();
                    scope.spawn(move || {
                        let pid = pid.with_context(|| format!("node{victim} does not run"))?;
                        let process = quorate_cli::server::ProcessId::of(pid as u32)?;
                        thread::sleep(Duration::from_millis(delay));
                        process.signal(rustix::process::Signal::KILL)
                    })
                })
                .collect();
            killers
                .into_iter()
                .try_for_each(|killer| killer.join().expect("a killer panicked").map(drop))
        })
    }
}
