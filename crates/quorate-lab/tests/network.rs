//! Hosts, links, and what is left of them.

use quorate_lab::net::{Network, Quality, Topology, CARRYING};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);
/// Far above what any packet needs here.
const PATIENCE: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_millis(200);

fn socket(network: &Network, host: usize) -> UdpSocket {
    let host = &network.hosts()[host];
    let socket = host.run(|| UdpSocket::bind((host.address(), 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Whether a packet sent now arrives. One that is `expected` to is waited for, however busy the machine is.
fn arrives(from: &UdpSocket, to: &UdpSocket, expected: bool) -> bool {
    to.set_read_timeout(Some(if expected { PATIENCE } else { SILENCE })).unwrap();
    from.send_to(b"hello", to.local_addr().unwrap()).unwrap();
    match to.recv(&mut [0; 16]) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn links_are_cut_and_mended_each_way() {
    let network = Network::new(3, Topology::Lan).unwrap();
    let [a, b, c] = [0, 1, 2].map(|host| socket(&network, host));
    let await_all = |expected: [bool; 5]| {
        let ways = [(&a, &b), (&b, &a), (&a, &c), (&c, &a), (&b, &c)];
        for (at, (from, to)) in ways.into_iter().enumerate() {
            assert_eq!(arrives(from, to, expected[at]), expected[at], "{at} of {expected:?}");
        }
    };
    await_all([true; 5]);
    network.cut_one_way(0, 1);
    await_all([false, true, true, true, true]);
    network.cut(0, 2);
    await_all([false, true, false, false, true]);
    network.mend(0, 1);
    await_all([true, true, false, false, true]);
    network.heal();
    await_all([true; 5]);
    network.partition(&[&[0], &[1, 2]]);
    await_all([false, false, false, false, true]);
    // A bridge: only host 1 reaches both others.
    network.partition(&[&[0, 1], &[1, 2]]);
    await_all([true, true, false, false, true]);
    network.heal();
    network.isolate(2);
    await_all([true, true, false, false, false]);
    assert!(network.is_cut(2, 0) && !network.is_cut(0, 1));
    assert!(network.traffic(0, 2).dropped >= 4 && network.traffic(0, 1).packets >= 4);
}

#[test]
fn what_is_on_its_way_when_a_link_is_cut_is_lost() {
    let network = Network::new(2, Topology::Bare).unwrap();
    let slow = Quality { delay: 300 * MS, ..Quality::default() };
    network.set_quality(0, 1, slow);
    let [a, b] = [0, 1].map(|host| socket(&network, host));
    b.set_read_timeout(Some(600 * MS)).unwrap();
    a.send_to(b"hello", b.local_addr().unwrap()).unwrap();
    network.cut_one_way(0, 1);
    assert!(b.recv(&mut [0; 16]).is_err());
}

#[test]
fn presets_are_what_they_say() {
    let network = Network::new(3, Topology::Bare).unwrap();
    let [a, b, c] = [0, 1, 2].map(|host| socket(&network, host));
    for topology in [Topology::Lan, Topology::Region, Topology::ThreeRegions] {
        network.shape(topology);
        for (to, peer) in [(1, &b), (2, &c)] {
            let wanted = topology.link(0, to).delay * 2;
            let fastest = (0..20).map(|_| round_trip(&a, peer)).min().unwrap();
            // Where a packet is carried faster than the network takes for granted, it comes earlier by the rest.
            // The machine may be busy, but twenty times in a row it is not.
            let (least, most) = (wanted.saturating_sub(2 * CARRYING), wanted + 2 * MS);
            assert!(fastest >= least && fastest < most, "{topology} 0-{to}: {fastest:?}");
        }
    }
}

fn round_trip(a: &UdpSocket, b: &UdpSocket) -> Duration {
    let (mut buffer, begin) = ([0; 16], Instant::now());
    a.send_to(b"ping", b.local_addr().unwrap()).unwrap();
    b.recv(&mut buffer).unwrap();
    b.send_to(b"pong", a.local_addr().unwrap()).unwrap();
    a.recv(&mut buffer).unwrap();
    begin.elapsed()
}

/// Bulk TCP in both directions over a link that loses, delays and reorders: every byte arrives.
#[test]
fn tcp_gets_through_a_bad_link_unchanged() {
    let network = Network::new(2, Topology::Bare).unwrap();
    let bad =
        Quality { delay: MS, jitter: MS, loss: 0.01, reorder: 0.02, bandwidth: Some(200_000_000) };
    network.set_quality(0, 1, bad);
    network.set_quality(1, 0, bad);
    let (mut client, mut server) = connection(&network);
    let data: Vec<u8> =
        (0..1_000_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let echoed = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut received = vec![0; data.len()];
            server.read_exact(&mut received).unwrap();
            server.write_all(&received).unwrap();
        });
        client.write_all(&data).unwrap();
        let mut echoed = vec![0; data.len()];
        client.read_exact(&mut echoed).unwrap();
        echoed
    });
    assert!(echoed == data);
    assert!(network.traffic(0, 1).dropped > 0);
}

fn connection(network: &Network) -> (TcpStream, TcpStream) {
    let [a, b] = [0, 1].map(|host| &network.hosts()[host]);
    let listener = b.run(|| TcpListener::bind((b.address(), 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let client = a.run(|| TcpStream::connect(address)).unwrap().unwrap();
    (client, listener.accept().unwrap().0)
}

#[test]
fn a_host_sees_only_its_own_network() {
    let network = Network::new(2, Topology::Bare).unwrap();
    let outside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = outside.local_addr().unwrap();
    let inside = network.hosts()[0].run(|| TcpStream::connect(address)).unwrap();
    assert!(inside.is_err());
}

#[test]
fn nothing_is_left_of_a_network() {
    let network = Network::new(2, Topology::Lan).unwrap();
    let name = network.hosts()[1].name().to_owned();
    let listed = || {
        let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains(&name)
    };
    let mut sleeper = network.hosts()[1].spawn(Command::new("sleep").arg("1000")).unwrap();
    assert!(listed());
    drop(network);
    assert!(!listed());
    assert!(!sleeper.wait().unwrap().success());
}
