//! Hosts in network namespaces, joined by a forwarder in this process.
//!
//! ```text
//!   namespace of host 0        this process             namespace of host 1
//!   mariadbd ── net0 (TUN) ──▶ forwarder of host 0 ──▶ net0 (TUN) ── mariadbd
//!            ◀─────────────── forwarder of host 1 ◀──
//! ```
//!
//! The forwarder sees IP packets and nothing of what is in them, so any system can be put on the
//! hosts. Each direction of each pair is a link of its own.

mod delay;
mod forward;
mod host;
mod links;
mod topology;

pub use delay::CARRYING;
pub use host::Host;
pub use topology::{Quality, Topology};

use crate::process::cpu_time_of_thread;
use anyhow::{Context, Result};
use forward::Forwarder;
use links::Links;
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::thread::gettid;
use std::os::fd::OwnedFd;
use std::sync::{mpsc, Arc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Hosts and the links between them. The last clone to be dropped kills what runs on the hosts
/// and removes them.
#[derive(Clone)]
pub struct Network {
    inner: Arc<Inner>,
}

/// Fields are dropped in order: hosts, with what runs on them, before the devices.
struct Inner {
    hosts: Vec<Host>,
    links: Arc<Links>,
    forwarders: Vec<JoinHandle<()>>,
    /// The forwarders' thread ids.
    threads: Vec<i32>,
    /// Closing it ends the forwarders.
    end: Option<OwnedFd>,
}

/// What a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub packets: u64,
    pub bytes: u64,
    /// Lost on purpose: cut link, loss, full queue.
    pub dropped: u64,
}

impl Network {
    /// Makes `hosts` hosts, linked as `topology` says.
    pub fn new(hosts: usize, topology: Topology) -> Result<Network> {
        let made: Vec<_> = (0..hosts).map(Host::new).collect::<Result<_>>()?;
        let (hosts, devices): (Vec<Host>, Vec<_>) = made.into_iter().unzip();
        let devices = Arc::new(devices);
        let links = Arc::new(Links::new(hosts.len(), |from, to| topology.link(from, to)));
        // Closed on exec: a server would keep the forwarders running.
        let (end, keep) = pipe_with(PipeFlags::CLOEXEC).context("making a pipe")?;
        let end = Arc::new(end);
        let mut inner =
            Inner { hosts, links, forwarders: Vec::new(), threads: Vec::new(), end: Some(keep) };
        let (tell, told) = mpsc::channel();
        for from in 0..inner.hosts.len() {
            let forwarder = Forwarder {
                from,
                devices: devices.clone(),
                links: inner.links.clone(),
                end: end.clone(),
            };
            let tell = tell.clone();
            let thread =
                thread::Builder::new().name(format!("lab-net{from}")).spawn(move || {
                    // Whoever makes the network waits for it.
                    let _ = tell.send(gettid().as_raw_nonzero().get());
                    if let Err(error) = forwarder.run() {
                        eprintln!("the forwarder of host {from} ended, it is cut off: {error}");
                    }
                })?;
            inner.forwarders.push(thread);
            inner.threads.push(told.recv().context("a forwarder did not start")?);
        }
        Ok(Network { inner: Arc::new(inner) })
    }

    pub fn hosts(&self) -> &[Host] {
        &self.inner.hosts
    }

    /// Shapes all links anew; cuts stay.
    pub fn shape(&self, topology: Topology) {
        self.inner.links.change(|from, to, link| link.quality = topology.link(from, to));
    }

    /// Shapes the link from one host to another, in this direction only.
    pub fn set_quality(&self, from: usize, to: usize, quality: Quality) {
        self.inner.links.change(|a, b, link| {
            if (a, b) == (from, to) {
                link.quality = quality;
            }
        });
    }

    pub fn quality(&self, from: usize, to: usize) -> Quality {
        self.inner.links.get(from, to).quality
    }

    /// Nothing gets from `from` to `to` any more, what is on its way included.
    pub fn cut_one_way(&self, from: usize, to: usize) {
        self.inner.links.change(|a, b, link| link.cut |= (a, b) == (from, to));
    }

    /// Cuts both directions between two hosts.
    pub fn cut(&self, a: usize, b: usize) {
        self.inner
            .links
            .change(|from, to, link| link.cut |= (from, to) == (a, b) || (to, from) == (a, b));
    }

    /// Cuts a host off from all others.
    pub fn isolate(&self, host: usize) {
        self.inner.links.change(|from, to, link| link.cut |= (from == host) != (to == host));
    }

    /// Only hosts in the same group reach each other; a host in no group reaches nobody. A host
    /// may stand in several groups: it then reaches all of them.
    pub fn partition(&self, groups: &[&[usize]]) {
        self.inner.links.change(|from, to, link| {
            let together = |group: &&[usize]| group.contains(&from) && group.contains(&to);
            link.cut = from != to && !groups.iter().any(together);
        });
    }

    /// Mends both directions between two hosts.
    pub fn mend(&self, a: usize, b: usize) {
        self.inner
            .links
            .change(|from, to, link| link.cut &= (from, to) != (a, b) && (to, from) != (a, b));
    }

    /// Mends all cut links; their quality stays.
    pub fn heal(&self) {
        self.inner.links.change(|_, _, link| link.cut = false);
    }

    /// Cuts these hosts off, in both directions; returns the links that were not cut before.
    pub(crate) fn silence(&self, hosts: &[usize]) -> Vec<(usize, usize)> {
        let mut silenced = Vec::new();
        self.inner.links.change(|from, to, link| {
            let concerned = from != to && (hosts.contains(&from) || hosts.contains(&to));
            if concerned && !link.cut {
                link.cut = true;
                silenced.push((from, to));
            }
        });
        silenced
    }

    pub(crate) fn unsilence(&self, silenced: &[(usize, usize)]) {
        self.inner.links.change(|from, to, link| link.cut &= !silenced.contains(&(from, to)));
    }

    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.inner.links.get(from, to).cut
    }

    /// Processor time that forwarding has taken in this process, all hosts together.
    pub fn cpu_time(&self) -> Result<Duration> {
        self.inner.threads.iter().map(|thread| cpu_time_of_thread(*thread)).sum()
    }

    pub fn traffic(&self, from: usize, to: usize) -> Traffic {
        self.inner.links.traffic(from, to)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end = None;
        for forwarder in self.forwarders.drain(..) {
            if forwarder.join().is_err() {
                eprintln!("a forwarder panicked");
            }
        }
    }
}
