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

#[test]
fn a_peer_that_takes_answers_slowly_is_cut_off_too() {
    let (peer, mut other) = connected(Duration::from_secs(60));
    let answer = Packet::Ping;
    std::thread::scope(|threads| {
        // The sender thread's part.
        let writes = threads.spawn(|| {
            while peer.is_connected() {
                peer.flush_waiting();
            }
        });
        // It reads on until its end: never stuck, and never done.
        let reads = threads.spawn(move || {
            let mut taken = [0; 512];
            while other.read(&mut taken).is_ok_and(|bytes| bytes > 0) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut pushed = 0_usize;
        while peer.push(answer.clone()) {
            pushed += 1;
            assert!(pushed < 8 * URGENT_MAX, "nothing ends it");
        }
        assert!(peer.outbox.lock().lanes.urgent() <= URGENT_MAX);
        writes.join().unwrap();
        peer.disconnect();
        reads.join().unwrap();
    });
    assert_eq!(peer.queued_bytes(), 0);
}
