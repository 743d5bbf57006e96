//! What the forwarder adds to a packet: round trips of small UDP packets between two hosts through
//! the forwarder, beside a veth pair between the same two hosts. Needs root.
//!
//! Measured again, up to [`TRIES`] times, while it is over the limit: what else runs on the machine can only make
//! it slower, so the quickest of several is nearest to what the forwarder itself costs.
//!
//! `cargo bench -p quorate-lab`

use quorate_lab::net::{Host, Network, Topology};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 20_000;
/// Round trips that only warm up.
const WARM_UP: usize = 1_000;
const LIMIT_US: f64 = 30.0;
const TRIES: usize = 5;

fn main() -> anyhow::Result<()> {
    let network = Network::new(2, Topology::Bare)?;
    let [a, b] = [0, 1].map(|host| &network.hosts()[host]);
    join_by_veth(a, b)?;
    println!("round trip between two hosts, µs    p50      p90      p99");
    for _ in 0..TRIES {
        let added = added_us(a, b)?;
        println!("added a packet, p50: {added:.1} µs (limit {LIMIT_US} µs)");
        if added < LIMIT_US {
            return Ok(());
        }
    }
    anyhow::bail!("the forwarder is too slow")
}

/// To the median packet, in one direction.
fn added_us(a: &Host, b: &Host) -> anyhow::Result<f64> {
    let veth = round_trips(a, b, [1, 2].map(|n| Ipv4Addr::new(10, 78, 0, n).into()))?;
    let forwarded = round_trips(a, b, [a, b].map(|host| host.address().into()))?;
    for (name, times) in [("veth pair", &veth), ("forwarder", &forwarded)] {
        let at = |share: f64| micros(times[(times.len() as f64 * share) as usize]);
        println!("{name:<30} {:>8.1} {:>8.1} {:>8.1}", at(0.5), at(0.9), at(0.99));
    }
    Ok((micros(forwarded[ROUNDS / 2]) - micros(veth[ROUNDS / 2])) / 2.0)
}

fn join_by_veth(a: &Host, b: &Host) -> anyhow::Result<()> {
    let ip = |arguments: &[&str]| -> anyhow::Result<()> {
        anyhow::ensure!(Command::new("ip").args(arguments).status()?.success(), "{arguments:?}");
        Ok(())
    };
    let (a, b) = (a.name(), b.name());
    ip(&["-n", a, "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", b])?;
    for (host, address) in [(a, "10.78.0.1/24"), (b, "10.78.0.2/24")] {
        ip(&["-n", host, "address", "add", address, "dev", "v0"])?;
        ip(&["-n", host, "link", "set", "v0", "up"])?;
    }
    Ok(())
}

/// Sorted.
fn round_trips(a: &Host, b: &Host, addresses: [IpAddr; 2]) -> anyhow::Result<Vec<Duration>> {
    let near = a.run(|| UdpSocket::bind((addresses[0], 0)))??;
    let far = b.run(|| UdpSocket::bind((addresses[1], 0)))??;
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    }
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| -> std::io::Result<()> {
            let mut buffer = [0; 64];
            for _ in 0..ROUNDS + WARM_UP {
                let length = far.recv(&mut buffer)?;
                far.send(&buffer[..length])?;
            }
            Ok(())
        });
        let mut buffer = [0; 64];
        let mut times = Vec::with_capacity(ROUNDS + WARM_UP);
        for _ in 0..ROUNDS + WARM_UP {
            let begin = Instant::now();
            near.send(&buffer)?;
            near.recv(&mut buffer)?;
            times.push(begin.elapsed());
        }
        echo.join().expect("the echo panicked")?;
        let mut times = times.split_off(WARM_UP);
        times.sort_unstable();
        Ok(times)
    })
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
