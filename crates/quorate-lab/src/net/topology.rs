//! How hosts are linked.

use anyhow::{bail, Error};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// One direction of a link. The default: no delay at all, no fault.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// From sender to receiver: half a round trip.
    pub delay: Duration,
    /// Each packet takes up to this much longer or shorter, uniformly; packets stay in order.
    pub jitter: Duration,
    /// Share of packets lost, 0 to 1.
    pub loss: f64,
    /// Share of packets that overtake those before them (they skip the delay), 0 to 1.
    pub reorder: f64,
    /// Bits per second; none: no limit. What waits for its turn is at most a second's worth.
    pub bandwidth: Option<u64>,
}

/// Where hosts stand. Host `i` is in data centre `i % 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// No delay: what the forwarder itself costs.
    Bare,
    /// One data centre: round trip 0.1 ms.
    Lan,
    /// Three data centres of one region: 1 ms.
    Region,
    /// The third data centre in another region: 1, 30, 30 ms.
    TwoRegions,
    /// Three regions: 5, 30, 30 ms.
    ThreeRegions,
    /// 10 ms between any two, as in published measurements.
    TenMs,
}

impl Topology {
    pub const ALL: [Topology; 6] = [
        Topology::Bare,
        Topology::Lan,
        Topology::Region,
        Topology::TwoRegions,
        Topology::ThreeRegions,
        Topology::TenMs,
    ];

    /// The link from host `from` to host `to`.
    pub fn link(self, from: usize, to: usize) -> Quality {
        Quality { delay: self.round_trip(from, to) / 2, ..Quality::default() }
    }

    /// Between two hosts, there and back.
    pub fn round_trip(self, from: usize, to: usize) -> Duration {
        const CENTRES: usize = 3;
        let (a, b) = (from % CENTRES, to % CENTRES);
        let near = Duration::from_micros(100);
        // By the pair of data centres: 0-1, then either with 2.
        let by_pair = |neighbours: u64, far: u64| match (a.min(b), a.max(b)) {
            (a, b) if a == b => near,
            (0, 1) => Duration::from_millis(neighbours),
            _ => Duration::from_millis(far),
        };
        match self {
            Topology::Bare => Duration::ZERO,
            Topology::Lan => near,
            Topology::Region => by_pair(1, 1),
            Topology::TwoRegions => by_pair(1, 30),
            Topology::ThreeRegions => by_pair(5, 30),
            Topology::TenMs => Duration::from_millis(10),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Topology::Bare => "bare",
            Topology::Lan => "lan",
            Topology::Region => "region",
            Topology::TwoRegions => "two-regions",
            Topology::ThreeRegions => "three-regions",
            Topology::TenMs => "10ms",
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Topology {
    type Err = Error;

    fn from_str(name: &str) -> Result<Topology, Error> {
        match Topology::ALL.into_iter().find(|topology| topology.name() == name) {
            Some(topology) => Ok(topology),
            None => {
                let names: Vec<&str> = Topology::ALL.iter().map(|t| t.name()).collect();
                bail!("no network {name:?}; there are {}", names.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for topology in Topology::ALL {
            assert_eq!(topology.to_string().parse::<Topology>().unwrap(), topology);
        }
        assert!("wan".parse::<Topology>().is_err());
    }

    #[test]
    fn presets_have_their_round_trips() {
        let round_trips = |topology: Topology| {
            [(0, 1), (0, 2), (1, 2), (0, 3)].map(|(a, b)| {
                let there = topology.link(a, b).delay;
                assert_eq!(there, topology.link(b, a).delay);
                (there * 2).as_micros()
            })
        };
        assert_eq!(round_trips(Topology::Lan), [100, 100, 100, 100]);
        assert_eq!(round_trips(Topology::Region), [1000, 1000, 1000, 100]);
        assert_eq!(round_trips(Topology::TwoRegions), [1000, 30_000, 30_000, 100]);
        assert_eq!(round_trips(Topology::ThreeRegions), [5000, 30_000, 30_000, 100]);
        assert_eq!(round_trips(Topology::TenMs), [10_000; 4]);
    }
}
