//! Connections that say little: between followers, until they have to elect a leader.

mod common;

use common::{in_time, Cluster, PATIENCE};
use parking_lot::Mutex;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

/// Stands before a member and passes on what others send to it.
struct Relay {
    addr: String,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn before(target: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let (open, target) = (Arc::new(Mutex::new(Vec::new())), target.to_owned());
        let relay = Relay { addr, open: open.clone() };
        std::thread::spawn(move || {
            for dialled in listener.incoming() {
                let dialled = dialled.unwrap();
                let Ok(served) = TcpStream::connect(&target) else { continue };
                open.lock().push(served.try_clone().unwrap());
                let (back, forth) = (dialled.try_clone().unwrap(), served.try_clone().unwrap());
                std::thread::spawn(move || pass(dialled, forth, true));
                std::thread::spawn(move || pass(served, back, false));
            }
        });
        relay
    }

    /// The member's end of every connection closes. As after a partition, who dialled hears of it
    /// only when it sends something.
    fn forget(&self) {
        self.open.lock().drain(..).for_each(|served| served.shutdown(Shutdown::Both).unwrap());
    }
}

/// Until one of the two ends; the end is passed on by `tells` alone.
fn pass(mut from: TcpStream, mut to: TcpStream, tells: bool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    if tells {
        let _ended = from.shutdown(Shutdown::Both);
        let _ended = to.shutdown(Shutdown::Both);
    }
}

#[test]
fn a_dead_connection_between_followers_is_noticed_before_it_is_needed() {
    let mut cluster = Cluster::new("idle", 3);
    let relay = Relay::before(&cluster.nodes[2].options.listen);
    cluster.nodes[2].options.advertise = relay.addr.clone();
    for at in 0..3 {
        cluster.nodes[at].start().unwrap();
        cluster.nodes[at].joined();
    }
    cluster.await_members(&[0, 1, 2]);
    // The other two are to be followers.
    let hand_over = || cluster.nodes[cluster.leader()].operator().switchover(Some("n0"), PATIENCE);
    in_time(hand_over).unwrap();
    assert_eq!(cluster.leader(), 0);
    let lost = format!("connection to member {} lost", cluster.nodes[2].id());
    let idle = &cluster.nodes[1];
    assert!(!idle.has_line(&lost));
    relay.forget();
    idle.wait("the loss to be noticed", |node| node.has_line(&lost));
    let proposal = idle.propose();
    cluster.await_applied(&[proposal]);
}
