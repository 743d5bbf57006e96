//! Power cuts of all servers at once, under load, on disks that forget what was not synced.

use crate::cluster::library_path;
use crate::writers::{self, create_table_at, missing_at};
use anyhow::{ensure, Result};
use quorate_lab::cluster::{Cluster, Plan, System};
use quorate_lab::disk::{Loss, Lost};
use quorate_lab::random::Random;
use std::collections::HashSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS_PER_NODE: usize = 4;
const LEVEL_LIMIT: Duration = Duration::from_secs(120);

/// Quorate as the tests' other clusters run it: `QUORATE_PROVIDER`, or the library under test.
pub fn quorate() -> System {
    System::Quorate(std::env::var_os("QUORATE_PROVIDER").map_or_else(library_path, PathBuf::from))
}

/// Rounds on one cluster; every row ever acknowledged must survive all later rounds.
pub struct PowerRounds {
    pub cluster: Cluster,
    sockets: Vec<PathBuf>,
    random: Random,
    acked: HashSet<u64>,
    round: u64,
}

#[derive(Debug)]
pub struct Round {
    /// What the disks forgot and kept.
    pub loss: Loss,
    pub acked: usize,
    /// Rows that are missing somewhere though they were acknowledged.
    pub lost: usize,
    pub forgotten: Vec<Lost>,
    /// From the start of all servers until they were level.
    pub restart: Duration,
}

impl PowerRounds {
    pub fn new(system: System, random: Random) -> Result<PowerRounds> {
        let cluster = Cluster::start(&Plan::new(system))?;
        let sockets: Vec<PathBuf> = cluster.nodes().map(|node| cluster.socket(node)).collect();
        create_table_at(&sockets[0])?;
        Ok(PowerRounds { cluster, sockets, random, acked: HashSet::new(), round: 0 })
    }

    pub fn round(&mut self) -> Result<Round> {
        self.round += 1;
        let seed = self.random.below(u64::MAX);
        let loss = match self.round % 3 {
            1 => Loss::All,
            2 => Loss::TornLast { seed },
            _ => Loss::Scattered { seed },
        };
        if matches!(self.cluster.plan().system, System::Galera(_)) {
            // After a round its nodes are filled by state transfers, which sync nothing: in life
            // the kernel has written that out long before the next power cut.
            self.cluster.nodes().for_each(|node| self.cluster.disk(node).sync_all());
        }
        let writers = writers::start_at(&self.sockets, CLIENTS_PER_NODE, self.round);
        thread::sleep(Duration::from_millis(1500 + self.random.below(2000)));
        let all: Vec<usize> = self.cluster.nodes().collect();
        let forgotten = self.cluster.cut_power(&all, loss)?;
        let acks = writers.stop();
        ensure!(!acks.is_empty(), "no row was acknowledged: the round shows nothing");
        self.acked.extend(acks.ids());

        let begin = Instant::now();
        self.cluster.start_all()?;
        self.cluster.wait_level(&all, LEVEL_LIMIT)?;
        let restart = begin.elapsed();
        let mut lost = HashSet::new();
        for socket in &self.sockets {
            lost.extend(missing_at(socket, &self.acked)?);
        }
        // Each loss is told once.
        self.acked.retain(|id| !lost.contains(id));
        Ok(Round { loss, acked: acks.len(), lost: lost.len(), forgotten, restart })
    }
}
