//! One fault under load, on a cluster of real servers: how long nothing was acknowledged, and
//! whether anything acknowledged was lost.

use crate::writers::{missing, Acks, Writers};
use crate::TestCluster;
use anyhow::{ensure, Context, Result};
use clap::ValueEnum;
use rustix::process::Signal;
use std::collections::HashSet;
use std::thread;
use std::time::Duration;

const CLIENTS: usize = 8;
const CALM: Duration = Duration::from_secs(2);
/// How long a fault lasts before it is mended.
const FAULT: Duration = Duration::from_secs(4);
const LEVEL_LIMIT: Duration = Duration::from_secs(120);

/// What happens to a node while clients write to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// kill -9 of the leader, which is the written node
    KillLeader,
    /// SIGSTOP of it
    StopLeader,
    /// Clean stop of it
    LeaveLeader,
    /// Planned hand-over of leadership
    Switchover,
    /// kill -9 of another node
    KillOther,
    /// SIGSTOP of another node
    StopOther,
    /// Clean stop of another node
    LeaveOther,
    /// Another node comes back with an empty disk: joins, with a state transfer
    TransferOther,
}

impl Fault {
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn hits_leader(self) -> bool {
        matches!(self, Fault::KillLeader | Fault::StopLeader | Fault::LeaveLeader)
    }
}

/// What a round showed.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The longest time without an acknowledgement, by any client.
    pub gap: Duration,
    /// Acknowledged rows a second while the node was away, over those before.
    pub rate_ratio: f64,
    pub acked: usize,
    /// Acknowledged rows that some node does not have.
    pub lost: usize,
}

/// Rounds on one cluster.
pub struct Failover<'a> {
    cluster: &'a TestCluster,
    run: u64,
    acked: HashSet<u64>,
}

impl<'a> Failover<'a> {
    pub fn new(cluster: &'a TestCluster) -> Result<Failover<'a>> {
        crate::writers::create_table(cluster)?;
        Ok(Failover { cluster, run: 0, acked: HashSet::new() })
    }

    /// Writes to the leader (then to the others), lets the fault happen and mends it.
    pub fn round(&mut self, fault: Fault) -> Result<Outcome> {
        self.run += 1;
        let cluster = self.cluster;
        cluster.wait_level(&cluster.all(), LEVEL_LIMIT)?;
        let leader = cluster.leader()?;
        let others = cluster.followers()?;
        let victim = if fault.hits_leader() { leader } else { others[0] };
        let order: Vec<u16> = std::iter::once(leader).chain(others).collect();
        if fault == Fault::TransferOther {
            self.empty(victim)?;
        }

        let writers = Writers::start_failing_over(cluster, &order, CLIENTS, self.run);
        thread::sleep(CALM);
        self.happen(fault, victim)?;
        thread::sleep(FAULT);
        let acks = writers.stop();
        self.mend(fault, victim)?;
        self.judge(&acks)
    }

    fn judge(&mut self, acks: &Acks) -> Result<Outcome> {
        ensure!(!acks.is_empty(), "no row was acknowledged: the round shows nothing");
        self.acked.extend(acks.ids());
        let nodes = self.cluster.all();
        self.cluster.wait_level(&nodes, LEVEL_LIMIT)?;
        let mut lost = 0;
        for node in nodes {
            lost = lost.max(missing(self.cluster, node, &self.acked)?.len());
        }
        Ok(Outcome {
            gap: acks.longest_gap(),
            rate_ratio: acks.rate(CALM, CALM + FAULT) / acks.rate(Duration::ZERO, CALM),
            acked: acks.len(),
            lost,
        })
    }

    fn happen(&self, fault: Fault, victim: u16) -> Result<()> {
        let name = victim.to_string();
        match fault {
            // By signal: the command would take longer than what is to be measured.
            Fault::KillLeader | Fault::KillOther => self.cluster.signal(victim, Signal::KILL),
            Fault::StopLeader | Fault::StopOther => self.cluster.signal(victim, Signal::STOP),
            Fault::LeaveLeader | Fault::LeaveOther => self.cluster.signal(victim, Signal::TERM),
            Fault::Switchover => self.cluster.quorate(&["switchover"]).map(drop),
            Fault::TransferOther => self.cluster.quorate(&["start", &name]).map(drop),
        }
    }

    fn mend(&self, fault: Fault, victim: u16) -> Result<()> {
        let name = victim.to_string();
        match fault {
            Fault::StopLeader | Fault::StopOther => self.cluster.signal(victim, Signal::CONT),
            Fault::TransferOther | Fault::Switchover => Ok(()),
            Fault::LeaveLeader | Fault::LeaveOther => {
                // Still on its way out, perhaps.
                self.cluster.quorate(&["stop", &name])?;
                self.cluster.quorate(&["start", &name]).map(drop)
            }
            Fault::KillLeader | Fault::KillOther => {
                self.cluster.quorate(&["start", &name]).map(drop)
            }
        }
    }

    /// Stops a node and deletes its data and its log.
    fn empty(&self, node: u16) -> Result<()> {
        self.cluster.quorate(&["stop", &node.to_string()])?;
        for part in ["data", "log"] {
            let path = self.cluster.node_dir(node).join(part);
            std::fs::remove_dir_all(&path).with_context(|| format!("{}", path.display()))?;
        }
        Ok(())
    }
}
