//! What a run costs, however busy the machine is: processor time, bytes on the network, syncs.
//!
//! [`Parts`]: where the time of a commit goes. [`Profile`]: who uses the processor for it.
//!
//! Invariant: a figure is right or it is not there. Where the machine cannot count something, or a server
//! was started meanwhile, the reason stands in its place.

pub mod lag;
mod machine;
mod memory;
mod network;
mod parts;
mod profile;
mod threads;

pub use machine::{machine, sync_time};
pub use memory::PeakMemory;
pub use network::{measure, takes};
pub use parts::Parts;
pub use profile::{perf_is_absent, Profile};
pub use threads::Activity;

use crate::fleet::Fleet;
use anyhow::Result;
use parking_lot::Mutex;
use quorate_lab::process::{CallCount, ProcessId};
use std::time::{Duration, Instant};
use threads::Threads;

/// What makes earlier writes durable. (Writes that are so by themselves, O_DSYNC, no server here does.)
const SYNCS: [&str; 6] = ["fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync"];

/// Or why it is not known.
pub type Figure = Result<f64, String>;

/// Reads the counters of a fleet.
pub struct Meter<'a> {
    fleet: &'a Fleet,
    syncs: Result<CallCount, String>,
    /// Those whose syncs are counted.
    followed: Mutex<Vec<ProcessId>>,
}

/// The counters at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    at: Instant,
    /// By member: its server and what it has used; none if it does not run.
    servers: Vec<Option<(ProcessId, Duration)>>,
    bytes: u64,
    packets: u64,
    forwarding: Duration,
    syncs: Result<u64, String>,
    /// Threads of Quorate's library, where there are any.
    own: Threads,
}

/// What was used between two readings, all members together.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    pub seconds: f64,
    /// Of the servers; clients are not among them.
    pub cpu_s: Figure,
    /// Between hosts, headers of IP included.
    pub bytes: f64,
    pub packets: f64,
    pub syncs: Figure,
    /// The lab's own processor time, for its network.
    pub lab_cpu_s: f64,
    /// Of the threads of Quorate's library.
    pub own: Option<Activity>,
}

impl Meter<'_> {
    pub fn new(fleet: &Fleet) -> Meter<'_> {
        let syncs = CallCount::new(&SYNCS).map_err(|error| format!("{error:#}"));
        Meter { fleet, syncs, followed: Mutex::new(Vec::new()) }
    }

    /// The counters now. Syncs of a server that was started count from the next reading on.
    pub fn read(&self) -> Result<Reading> {
        let server = |member| {
            let id = ProcessId::of(self.fleet.pid(member)?.unsigned_abs()).ok()?;
            Some((id, id.cpu_time()?))
        };
        // First, as it takes a while.
        let followed = self.follow();
        let pids: Vec<i32> = self.fleet.members().filter_map(|id| self.fleet.pid(id)).collect();
        let own = Threads::read_own(&pids)?;
        let servers: Vec<_> = self.fleet.members().map(server).collect();
        let network = self.fleet.network();
        let mut reading = Reading {
            at: Instant::now(),
            syncs: followed.and_then(|()| self.count_syncs()),
            servers,
            bytes: 0,
            packets: 0,
            forwarding: network.cpu_time()?,
            own,
        };
        for from in self.fleet.members() {
            for to in self.fleet.others(from) {
                let traffic = network.traffic(from, to);
                reading.bytes += traffic.bytes;
                reading.packets += traffic.packets;
            }
        }
        Ok(reading)
    }

    /// Counts the syncs of servers that were started since the last reading, too.
    fn follow(&self) -> Result<(), String> {
        let syncs = self.syncs.as_ref().map_err(Clone::clone)?;
        let mut followed = self.followed.lock();
        for pid in self.fleet.members().filter_map(|member| self.fleet.pid(member)) {
            let Ok(server) = ProcessId::of(pid.unsigned_abs()) else { continue };
            if !followed.contains(&server) {
                syncs.follow(pid).map_err(|error| format!("{error:#}"))?;
                followed.push(server);
            }
        }
        Ok(())
    }

    fn count_syncs(&self) -> Result<u64, String> {
        let syncs = self.syncs.as_ref().map_err(Clone::clone)?;
        syncs.count().map_err(|error| format!("{error:#}"))
    }
}

impl Reading {
    /// What was used from this reading to a later one.
    pub fn until(&self, later: &Reading) -> Used {
        let changed = self.servers.iter().zip(&later.servers).position(|(before, after)| {
            before.map(|(server, _)| server) != after.map(|(server, _)| server)
        });
        let same = match changed {
            Some(member) => Err(format!("node{} was started or ended meanwhile", member + 1)),
            None => Ok(()),
        };
        let cpu = |reading: &Reading| -> f64 {
            reading.servers.iter().flatten().map(|(_, used)| used.as_secs_f64()).sum()
        };
        let syncs = || Ok((later.syncs.clone()? - self.syncs.clone()?) as f64);
        Used {
            seconds: (later.at - self.at).as_secs_f64(),
            cpu_s: same.clone().map(|()| cpu(later) - cpu(self)),
            bytes: (later.bytes - self.bytes) as f64,
            packets: (later.packets - self.packets) as f64,
            syncs: same.and_then(|()| syncs()),
            lab_cpu_s: (later.forwarding - self.forwarding).as_secs_f64(),
            own: self.own.sum_until(&later.own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(server: ProcessId, used_ms: u64, syncs: Result<u64, String>) -> Reading {
        Reading {
            at: Instant::now(),
            servers: vec![Some((server, Duration::from_millis(used_ms))), None],
            bytes: used_ms,
            packets: 1,
            forwarding: Duration::ZERO,
            syncs,
            own: Threads::default(),
        }
    }

    #[test]
    fn a_figure_is_a_difference_or_a_reason() {
        let own = ProcessId::own().unwrap();
        let used = reading(own, 250, Ok(5)).until(&reading(own, 500, Ok(25)));
        assert_eq!((used.cpu_s, used.syncs, used.bytes), (Ok(0.25), Ok(20.0), 250.0));

        let blind = || Err("no tracing".to_owned());
        let used = reading(own, 250, blind()).until(&reading(own, 500, blind()));
        assert_eq!((used.cpu_s, used.syncs), (Ok(0.25), Err("no tracing".into())));

        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let other = ProcessId::of(child.id()).unwrap();
        let used = reading(own, 250, Ok(5)).until(&reading(other, 500, Ok(25)));
        child.kill().and_then(|()| child.wait()).unwrap();
        let reason = "node1 was started or ended meanwhile".to_owned();
        assert_eq!((used.cpu_s, used.syncs), (Err(reason.clone()), Err(reason)));
    }
}
