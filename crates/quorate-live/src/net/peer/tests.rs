use super::*;
use quorate_consensus::{EntryKind, Proposal};
use std::io::Read;
use std::net::TcpListener;

const LONG: usize = OUTBOX_BYTES_MAX + 1;

fn connected(patience: Duration) -> (Peer, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let peer = Peer::new(MemberId(1), patience);
    assert!(peer.connect(stream, None));
    (peer, listener.accept().unwrap().0)
}

fn packet(bytes: usize) -> Packet {
    Packet::Forward(vec![Proposal::new(EntryKind::Data, vec![0; bytes].into())])
}

#[test]
fn a_long_packet_behind_others_cuts_no_connection() {
    let (peer, mut other) = connected(Duration::from_secs(60));
    for bytes in [1, LONG, 1, LONG, 1] {
        assert!(peer.push(packet(bytes)));
    }
    let sent = std::thread::scope(|threads| {
        threads.spawn(|| peer.flush_waiting());
        let mut arrived = vec![0; 2 * LONG];
        other.read_exact(&mut arrived)
    });
    sent.unwrap();
    assert!(peer.is_connected());
}

#[test]
fn a_peer_that_takes_nothing_is_cut_off() {
    let (peer, _other) = connected(Duration::from_millis(50));
    assert!(peer.push(packet(LONG)) && peer.push(packet(LONG)));
    // The socket takes what fits, and then no more.
    peer.flush();
    peer.flush();
    while peer.push(Packet::Ping) {
        assert!(peer.queued_bytes() < 4 * LONG);
        std::thread::yield_now();
    }
    assert!(!peer.is_connected());
}
