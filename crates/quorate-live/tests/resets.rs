//! A device between the members resets their connections, and lets them make new ones.

mod common;

use common::Cluster;
use parking_lot::Mutex;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Passes on what comes to `addr`.
struct Device {
    addr: String,
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    /// Both ends of each connection.
    open: Mutex<Vec<[TcpStream; 2]>>,
    closing: AtomicBool,
    copying: Mutex<Vec<JoinHandle<()>>>,
}

impl Device {
    fn before(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State::default());
        let served = state.clone();
        let accepting = thread::spawn(move || loop {
            let (near, _) = listener.accept().unwrap();
            if served.closing.load(Ordering::SeqCst) {
                return;
            }
            if let Ok(far) = TcpStream::connect(&target) {
                served.pass(near, far);
            }
        });
        Self { addr, state, accepting: Some(accepting) }
    }

    /// Both sides of each connection see it end.
    fn reset_all(&self) {
        let ended = std::mem::take(&mut *self.state.open.lock());
        for end in ended.iter().flatten() {
            rustix::net::sockopt::set_socket_linger(end, Some(Duration::ZERO)).unwrap();
            let _ended_already = end.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    fn pass(&self, near: TcpStream, far: TcpStream) {
        let mut copying = self.copying.lock();
        for (from, to) in [(&near, &far), (&far, &near)] {
            let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            copying.push(thread::spawn(move || {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    if to.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                let _ended_already = to.shutdown(Shutdown::Write);
            }));
        }
        self.open.lock().push([near, far]);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.state.closing.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(&self.addr).unwrap());
        self.accepting.take().unwrap().join().unwrap();
        self.reset_all();
        self.state.copying.lock().drain(..).for_each(|copying| copying.join().unwrap());
    }
}

#[test]
fn resets_of_all_connections_do_not_depose_a_healthy_leader() {
    let mut cluster = Cluster::new("resets", 3);
    let listen: Vec<_> = cluster.nodes.iter().map(|node| node.options.listen.clone()).collect();
    let devices: Vec<_> = listen.into_iter().map(Device::before).collect();
    let addrs: Vec<_> = devices.iter().map(|device| device.addr.clone()).collect();
    for (at, node) in cluster.nodes.iter_mut().enumerate() {
        node.options.advertise = addrs[at].clone();
        // The founder would ask devices that answer for nodes which do not run yet.
        node.options.seeds = addrs[..at].to_vec();
        // Long, so that only a hint can cause an election.
        node.options.election_timeout = Duration::from_secs(3);
        node.start().unwrap();
        node.joined();
    }
    cluster.await_members(&[0, 1, 2]);
    let leader = cluster.leader();
    let term = cluster.nodes[leader].status().term;
    for _ in 0..10 {
        devices.iter().for_each(Device::reset_all);
        let proposals: Vec<_> = cluster.nodes.iter().map(|node| node.propose()).collect();
        cluster.await_applied(&proposals);
        for node in &cluster.nodes {
            node.wait("connections between all", |_| {
                devices.iter().map(|device| device.state.open.lock().len()).sum::<usize>() >= 6
            });
            let status = node.status();
            assert_eq!(status.term, term, "nothing had happened to the leader");
        }
    }
    assert_eq!(cluster.leader(), leader);
    drop(cluster);
}
