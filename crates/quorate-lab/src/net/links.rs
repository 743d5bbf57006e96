//! The table of links: written by whoever shapes or cuts, read by the forwarders.

use super::{Quality, Traffic};
use parking_lot::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    pub quality: Quality,
    pub cut: bool,
}

/// Every ordered pair of hosts.
pub(super) struct Links {
    hosts: usize,
    /// At `from * hosts + to`.
    links: RwLock<Vec<Link>>,
    /// Counts changes: a forwarder copies its row only when this has moved.
    version: AtomicU64,
    counters: Vec<Counters>,
}

#[derive(Default)]
struct Counters {
    packets: AtomicU64,
    bytes: AtomicU64,
    dropped: AtomicU64,
}

impl Links {
    pub fn new(hosts: usize, link: impl Fn(usize, usize) -> Quality) -> Links {
        let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
        let links = pairs.map(|(from, to)| Link { quality: link(from, to), cut: false }).collect();
        Links {
            hosts,
            links: RwLock::new(links),
            version: AtomicU64::new(1),
            counters: (0..hosts * hosts).map(|_| Counters::default()).collect(),
        }
    }

    /// Changes every link, all at the same moment for each sender.
    pub fn change(&self, mut change: impl FnMut(usize, usize, &mut Link)) {
        let mut links = self.links.write();
        for (at, link) in links.iter_mut().enumerate() {
            change(at / self.hosts, at % self.hosts, link);
        }
        // While the lock is held: whoever sees the version waits for what it stands for.
        self.version.fetch_add(1, Ordering::Release);
    }

    pub fn get(&self, from: usize, to: usize) -> Link {
        self.links.read()[from * self.hosts + to]
    }

    /// Copies the links of `from` to `row` if any link changed since `seen`.
    pub fn refresh(&self, from: usize, row: &mut Vec<Link>, seen: &mut u64) {
        let version = self.version.load(Ordering::Acquire);
        if version != *seen {
            let links = self.links.read();
            row.clear();
            row.extend_from_slice(&links[from * self.hosts..(from + 1) * self.hosts]);
            *seen = version;
        }
    }

    pub fn count(&self, from: usize, to: usize, bytes: usize) {
        let counters = &self.counters[from * self.hosts + to];
        counters.packets.fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn count_drop(&self, from: usize, to: usize) {
        self.counters[from * self.hosts + to].dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub fn traffic(&self, from: usize, to: usize) -> Traffic {
        let counters = &self.counters[from * self.hosts + to];
        Traffic {
            packets: counters.packets.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            dropped: counters.dropped.load(Ordering::Relaxed),
        }
    }
}
