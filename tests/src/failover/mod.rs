//! One fault under load, on a cluster of real servers: how long nothing was acknowledged, whether
//! anything acknowledged was lost, and how soon the node is back.

mod fault;
mod page;
mod table;

pub use fault::Fault;
pub use page::page;
pub use table::Table;

use crate::writers::{self, missing_since, Acks, Client, Door, Writers};
use anyhow::{bail, ensure, Context, Result};
use quorate_lab::disk::Loss;
use quorate_lab::net::Topology;
use quorate_lab::server::sql::order;
use quorate_lab::target::Target;
use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub const CLIENTS: usize = 8;
const CALM: Duration = Duration::from_secs(2);
const LEVEL_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Until somebody takes writes again. Far above what is measured: it is to be seen how long that takes.
const WRITE_LIMIT: Duration = Duration::from_secs(30);
const READ_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// What a round showed.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The longest time without an acknowledgement, by any client, until the fault was mended.
    pub gap: Duration,
    /// Acknowledged rows a second while the node was away, over those before. None where it has
    /// to be less: what is left spans regions.
    pub rate_ratio: Option<f64>,
    /// The same over those after it, of a node that joined: if all run on the same processors, one
    /// server more costs as much afterwards.
    pub rate_ratio_after: Option<f64>,
    /// Of a node that was started again.
    pub back: Option<Back>,
    pub acked: usize,
    /// Acknowledged rows that some node does not have.
    pub lost: usize,
}

/// A node that returns while clients write on.
#[derive(Clone, Copy, Debug)]
pub struct Back {
    /// From its start until it was Synced.
    pub took: Duration,
    /// Rows that it had missed when it was started.
    pub backlog: usize,
    /// The longest time without an acknowledgement meanwhile.
    pub gap: Duration,
}

/// Rounds on one cluster, whose nodes are counted from 0.
pub struct Failover {
    target: Arc<dyn Target + Send>,
    /// Where the leader is to stand when a round begins: in the region that has a majority.
    homes: Vec<usize>,
    run: u64,
    acked: HashSet<u64>,
}

/// What happened when, in one round.
struct Times {
    calm: Instant,
    fault: Instant,
    /// The fault is over, or its node is started again.
    mended: Instant,
    /// The node that was started is Synced.
    back: Option<Instant>,
    end: Instant,
}

impl Failover {
    pub fn new(target: Arc<dyn Target + Send>, topology: Topology) -> Result<Failover> {
        writers::table::create(&mut target.connect(0, READ_TIMEOUT)?)?;
        let near = |node: &usize| topology != Topology::TwoRegions || node % 3 != 2;
        let homes = (0..target.nodes()).filter(near).collect();
        Ok(Failover { target, homes, run: 0, acked: HashSet::new() })
    }

    /// Writes to the leader (then to the others), lets the fault happen and mends it.
    pub fn round(&mut self, fault: Fault) -> Result<Outcome> {
        self.run += 1;
        self.target.wait_level(LEVEL_LIMIT)?;
        let leader = self.leader_at_home()?;
        let others: Vec<usize> = (0..self.target.nodes()).filter(|node| *node != leader).collect();
        let victim = match fault.hits_leader() {
            true => leader,
            false => others[self.run as usize % others.len()],
        };
        if fault == Fault::JoinOther {
            self.target.stop(victim, STOP_LIMIT)?;
            self.target.wipe(victim)?;
        }

        let order: Vec<usize> = std::iter::once(leader).chain(others).collect();
        let doors: Vec<Door> = order.iter().map(|node| self.door(*node)).collect();
        let writers = Writers::start(Client::failing_over(&doors, CLIENTS), self.run);
        // The first statements and connections are not what is to be measured.
        thread::sleep(CALM / 4);
        let calm = Instant::now();
        thread::sleep(CALM);
        let times = self.fault_and_return(fault, victim, calm, &writers)?;
        let acks = writers.stop();
        self.judge(victim, fault, &acks, &times)
    }

    fn fault_and_return(
        &self,
        fault: Fault,
        victim: usize,
        calm: Instant,
        writers: &Writers,
    ) -> Result<Times> {
        let begin = Instant::now();
        self.happen(fault, victim)?;
        if fault == Fault::JoinOther {
            // As long as the transfer takes.
            self.wait_synced(victim)?;
        }
        thread::sleep(fault.lasts().saturating_sub(begin.elapsed()));
        if fault.hits_leader() {
            // Mended sooner, it would hide that nobody took over.
            writers.wait_acked(Instant::now(), WRITE_LIMIT)?;
        }
        let mended = Instant::now();
        self.mend(fault, victim)?;
        let back = fault.ends_server().then(|| self.wait_synced(victim)).transpose()?;
        if fault == Fault::JoinOther {
            thread::sleep(CALM);
        }
        Ok(Times { calm, fault: begin, mended, back, end: Instant::now() })
    }

    fn judge(
        &mut self,
        victim: usize,
        fault: Fault,
        acks: &Acks,
        times: &Times,
    ) -> Result<Outcome> {
        ensure!(!acks.is_empty(), "no row was acknowledged: the round shows nothing");
        let lost = self.lost_of(&acks.ids(), self.run)?;
        self.acked.extend(acks.ids());
        let rate =
            |from: Instant, to: Instant| acks.count_in(from, to) as f64 / (to - from).as_secs_f64();
        // Without one of the two that stand together, each commit waits for the other region.
        let far = self.homes.len() < self.target.nodes() && self.homes.contains(&victim);
        let during = rate(times.fault, times.mended);
        let ratio = during / rate(times.calm, times.fault);
        let joined = fault == Fault::JoinOther;
        let back = times.back.map(|back| Back {
            took: back - times.mended,
            backlog: acks.count_in(times.fault, times.mended),
            gap: acks.longest_gap_in(times.mended, back),
        });
        Ok(Outcome {
            gap: acks.longest_gap_in(times.calm, times.mended),
            rate_ratio: (!far && fault != Fault::Switchover).then_some(ratio),
            rate_ratio_after: joined.then(|| during / rate(times.mended, times.end)),
            back,
            acked: acks.len(),
            lost,
        })
    }

    /// How many rows of all rounds some node lacks by now. The table is then emptied: what came
    /// before does not slow down what follows.
    pub fn finish(&mut self) -> Result<usize> {
        let lost = self.lost_of(&self.acked, 0)?;
        self.acked.clear();
        writers::table::empty(&mut self.target.connect(0, READ_TIMEOUT)?)?;
        Ok(lost)
    }

    /// How many of the acknowledged rows `ids`, all since round `run`, some node lacks.
    fn lost_of(&self, ids: &HashSet<u64>, run: u64) -> Result<usize> {
        self.target.wait_level(LEVEL_LIMIT)?;
        let mut lost = 0;
        for node in 0..self.target.nodes() {
            let mut connection = self.target.connect(node, READ_TIMEOUT)?;
            lost = lost.max(missing_since(&mut connection, ids, run)?.len());
        }
        Ok(lost)
    }

    fn happen(&self, fault: Fault, victim: usize) -> Result<()> {
        let target = &self.target;
        match fault {
            Fault::KillLeader | Fault::KillOther => target.kill(&[victim]),
            Fault::StopLeader | Fault::StopOther => target.pause(victim),
            Fault::LeaveLeader | Fault::LeaveOther => target.stop(victim, STOP_LIMIT),
            Fault::Switchover => self.hand_over(victim),
            Fault::JoinOther => target.start_node(victim),
            Fault::PartitionLeader | Fault::PartitionOther => self.isolate(victim),
            Fault::PowerLeader => {
                // A host without power refuses nothing: it stays silent until it boots.
                self.isolate(victim)?;
                target.cut_power(&[victim], Loss::All).map(drop)
            }
        }
    }

    fn mend(&self, fault: Fault, victim: usize) -> Result<()> {
        if let Some(network) = self.target.network() {
            network.heal();
        }
        match fault {
            Fault::StopLeader | Fault::StopOther => self.target.resume(victim),
            fault if fault.ends_server() => self.target.start_node(victim),
            _ => Ok(()),
        }
    }

    fn isolate(&self, node: usize) -> Result<()> {
        let network = self.target.network();
        network.context("these nodes have no network that can fail: --network lan")?.isolate(node);
        Ok(())
    }

    fn door(&self, node: usize) -> Door {
        let target = Arc::clone(&self.target);
        Arc::new(move |timeout| target.connect(node, timeout))
    }

    fn leader_at_home(&self) -> Result<usize> {
        let end = Instant::now() + LEVEL_LIMIT;
        while Instant::now() < end {
            match self.target.leader() {
                Some(leader) if self.homes.contains(&leader) => return Ok(leader),
                Some(leader) => self.hand_over(leader)?,
                None => thread::sleep(POLL),
            }
        }
        bail!("no node leads")
    }

    fn hand_over(&self, leader: usize) -> Result<()> {
        let target = self.homes.iter().find(|node| **node != leader).context("nobody to lead")?;
        let mut connection = self.target.connect(leader, READ_TIMEOUT)?;
        let to = format!("node{}", target + 1);
        let ordered = order(&mut connection, "quorate.switchover", &to);
        ordered.with_context(|| format!("node{} does not hand over to {to}", leader + 1)).map(drop)
    }

    fn wait_synced(&self, node: usize) -> Result<Instant> {
        let end = Instant::now() + LEVEL_LIMIT;
        let synced = || self.target.status(node).is_ok_and(|status| status.is_synced());
        while !synced() {
            ensure!(Instant::now() < end, "node{} does not come back", node + 1);
            thread::sleep(POLL);
        }
        Ok(Instant::now())
    }
}
