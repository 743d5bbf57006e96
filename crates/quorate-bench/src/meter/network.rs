//! The lab's network as it is: round trips, and what carrying a packet costs this process.

use crate::record::Measured;
use anyhow::{Context, Result};
use quorate_lab::net::{Host, Network, Topology};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const PINGS: usize = 101;
const LIMIT: Duration = Duration::from_secs(5);
const PAIRS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];

/// What [`measure`] takes, about.
pub fn takes(topology: Topology) -> Duration {
    PAIRS.iter().map(|(a, b)| topology.round_trip(*a, *b)).sum::<Duration>() * PINGS as u32
}

/// Makes a network of three hosts, and pings each from the others.
pub fn measure(topology: Topology) -> Result<Measured> {
    let network = Network::new(3, topology)?;
    let before = network.cpu_time()?;
    let mut measured = Measured { name: topology.to_string(), ..Measured::default() };
    for (at, (a, b)) in PAIRS.into_iter().enumerate() {
        measured.round_trips_ms[at] = topology.round_trip(a, b).as_secs_f64() * 1e3;
        let round_trip = median_ping(&network.hosts()[a], &network.hosts()[b])?;
        measured.measured_ms[at] = round_trip.as_secs_f64() * 1e3;
    }
    let between = PAIRS.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let packets: u64 = between.map(|(from, to)| network.traffic(from, to).packets).sum();
    let used = network.cpu_time()? - before;
    measured.packet_cost_us = used.as_secs_f64() * 1e6 / packets.max(1) as f64;
    Ok(measured)
}

fn median_ping(a: &Host, b: &Host) -> Result<Duration> {
    let socket = |host: &Host| -> Result<UdpSocket> {
        let socket = host.run(|| UdpSocket::bind((host.address(), 0)))??;
        socket.set_read_timeout(Some(LIMIT))?;
        Ok(socket)
    };
    let (near, far) = (socket(a)?, socket(b)?);
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| -> std::io::Result<()> {
            let mut buffer = [0; 64];
            for _ in 0..PINGS {
                let length = far.recv(&mut buffer)?;
                far.send(&buffer[..length])?;
            }
            Ok(())
        });
        let mut times = Vec::with_capacity(PINGS);
        let mut buffer = [0; 64];
        for _ in 0..PINGS {
            let begin = Instant::now();
            near.send(&buffer)?;
            near.recv(&mut buffer).context("a ping was not answered")?;
            times.push(begin.elapsed());
        }
        echo.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        times.sort_unstable();
        Ok(times[PINGS / 2])
    })
}
