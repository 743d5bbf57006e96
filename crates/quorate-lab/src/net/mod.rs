//! Hosts in network namespaces, joined by a forwarder in this process.

mod topology;

pub use topology::{Quality, Topology};

use anyhow::Result;
use std::net::Ipv4Addr;
use std::process::{Child, Command};
use std::sync::Arc;

/// Hosts and the links between them. Every pair is joined in both directions by a link of its
/// own. The last clone to be dropped removes the namespaces; processes in them must be gone by
/// then.
#[derive(Clone)]
pub struct Network {
    hosts: Arc<Vec<Host>>,
}

/// One host: a network namespace with one interface, `10.77.0.<number>`.
pub struct Host {
    name: String,
    address: Ipv4Addr,
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
    pub fn new(hosts: usize, topology: &Topology) -> Result<Network> {
        let _ = (hosts, topology);
        anyhow::bail!("the network is not built yet")
    }

    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Shapes all links anew; cuts stay.
    pub fn shape(&self, topology: &Topology) {
        let _ = topology;
    }

    /// Shapes the link from one host to another, in this direction only.
    pub fn set_quality(&self, from: usize, to: usize, quality: Quality) {
        let _ = (from, to, quality);
    }

    pub fn quality(&self, from: usize, to: usize) -> Quality {
        let _ = (from, to);
        Quality::default()
    }

    /// Nothing gets from `from` to `to` any more, what is on its way included.
    pub fn cut_one_way(&self, from: usize, to: usize) {
        let _ = (from, to);
    }

    /// Cuts both directions between two hosts.
    pub fn cut(&self, a: usize, b: usize) {
        self.cut_one_way(a, b);
        self.cut_one_way(b, a);
    }

    /// Cuts a host off from all others.
    pub fn isolate(&self, host: usize) {
        let _ = host;
    }

    /// Only hosts in the same group reach each other; a host in no group reaches nobody.
    pub fn partition(&self, groups: &[&[usize]]) {
        let _ = groups;
    }

    /// Mends both directions between two hosts.
    pub fn mend(&self, a: usize, b: usize) {
        let _ = (a, b);
    }

    /// Mends all cut links; their quality stays.
    pub fn heal(&self) {}

    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        let _ = (from, to);
        false
    }

    pub fn traffic(&self, from: usize, to: usize) -> Traffic {
        let _ = (from, to);
        Traffic::default()
    }
}

impl Host {
    /// The namespace's name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Runs `work` on a thread that is on this host: sockets it makes are this host's, for as
    /// long as they live, and so are processes it starts.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        Ok(work())
    }

    /// Starts a program on this host.
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        Ok(command.spawn()?)
    }
}
