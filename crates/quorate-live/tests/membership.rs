//! Who belongs to the group: wiped nodes, snapshots for those too far behind, leaving, strangers.

mod common;

use bytes::Bytes;
use common::{Cluster, Node};
use quorate_live::{GroupError, OrderError, StartError};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_wiped_node_comes_back_as_somebody_else_and_replaces_itself() {
    let mut cluster = Cluster::started("wiped", 3);
    let mut proposals: Vec<_> = (0..50).map(|at| cluster.nodes[at % 3].propose()).collect();
    cluster.await_applied(&proposals);
    let old = cluster.nodes[1].id();
    cluster.nodes[1].wipe();
    proposals.push(cluster.nodes[0].propose());
    cluster.nodes[0].await_applied(&proposals);
    cluster.nodes[1].start().unwrap();
    cluster.nodes[1].joined();
    assert_ne!(cluster.nodes[1].id(), old);
    cluster.await_members(&[0, 1, 2]);
    proposals.push(cluster.nodes[1].propose());
    cluster.await_applied(&proposals);
}

#[test]
fn a_node_too_far_behind_gets_a_snapshot() {
    let mut cluster = Cluster::started("snapshot", 3);
    let mut proposals: Vec<_> = (0..10).map(|_| cluster.nodes[0].propose()).collect();
    cluster.await_applied(&proposals);
    cluster.nodes[2].kill();
    let is_purged = |node: &Node| node.status().first_index > 100;
    // For as long as the leader takes it to be there it keeps the log for it, and later lets it go after its next
    // snapshot.
    for _ in 0..1_000 {
        if cluster.nodes[..2].iter().all(is_purged) {
            break;
        }
        proposals.extend((0..8).map(|_| cluster.nodes[0].propose_padded(16 << 10)));
        cluster.nodes[0].await_applied(&proposals);
        cluster.nodes[1].await_applied(&proposals);
    }
    assert!(cluster.nodes[..2].iter().all(is_purged));
    // One that was away, and one that is new.
    cluster.nodes[2].start().unwrap();
    cluster.await_members(&[0, 1, 2]);
    proposals.push(cluster.nodes[2].propose());
    cluster.await_applied(&proposals);
    assert!(cluster.nodes[2].has_line("received a snapshot"));

    cluster.nodes[2].wipe();
    cluster.nodes[2].start().unwrap();
    cluster.await_members(&[0, 1, 2]);
    cluster.await_applied(&proposals);

    // And it continues from that by itself.
    cluster.nodes[2].kill();
    cluster.nodes[2].start().unwrap();
    cluster.await_members(&[0, 1, 2]);
    proposals.push(cluster.nodes[2].propose());
    cluster.await_applied(&proposals);
}

#[test]
fn a_blank_node_is_sent_a_snapshot_though_the_log_reaches_back_to_the_beginning() {
    let mut cluster = Cluster::new("blank", 3);
    for node in &mut cluster.nodes {
        node.options.retain_bytes = 64 << 20;
    }
    cluster.nodes[2].options.blank = true;
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].joined();
    let mut proposals = Vec::new();
    while !cluster.nodes[0].has_line("snapshot of index") {
        proposals.extend((0..8).map(|_| cluster.nodes[0].propose_padded(16 << 10)));
        cluster.nodes[0].await_applied(&proposals);
    }
    for (at, sent) in [(1, false), (2, true)] {
        cluster.nodes[at].start().unwrap();
        cluster.nodes[at].joined();
        cluster.await_applied(&proposals);
        assert_eq!(cluster.nodes[at].has_line("received a snapshot"), sent);
        // The log is replaced after the state.
        cluster.nodes[at].wait("its log", |node| (node.status().first_index > 1) == sent);
    }
    cluster.await_members(&[0, 1, 2]);
    proposals.push(cluster.nodes[2].propose());
    cluster.await_applied(&proposals);
}

#[test]
fn a_state_that_fits_no_snapshot_is_told_apart() {
    let mut cluster = Cluster::started("unfit", 1);
    let mut proposals = Vec::new();
    for _ in 0..40 {
        proposals.extend((0..8).map(|_| cluster.nodes[0].propose_padded(16 << 10)));
        cluster.await_applied(&proposals);
    }
    cluster.nodes[0].wait("a purged log", |node| node.status().first_index > 10);
    cluster.nodes[0].kill();
    let refused = cluster.nodes[0].start_with(&mut |_, _| false);
    assert!(matches!(refused, Err(GroupError::NeedsStateTransfer { log_base }) if log_base > 0));
    cluster.nodes[0].kill();
    cluster.nodes[0].start_with(&mut |_, bytes: &Bytes| !bytes.is_empty()).unwrap();
    cluster.await_applied(&proposals);
}

#[test]
fn members_leave_down_to_one_and_return() {
    let mut cluster = Cluster::started("leave", 5);
    let mut proposals = Vec::new();
    for leaver in [1, 0, 4, 3] {
        cluster.nodes[leaver].group().leave(MINUTE).unwrap();
        cluster.nodes[leaver].kill();
        let rest: Vec<_> = (0..5).filter(|at| cluster.nodes[*at].group.is_some()).collect();
        cluster.await_members(&rest);
        proposals.push(cluster.nodes[2].propose());
        cluster.await_applied(&proposals);
    }
    for returner in [0, 1, 4, 3] {
        cluster.nodes[returner].start().unwrap();
        let present: Vec<_> = (0..5).filter(|at| cluster.nodes[*at].group.is_some()).collect();
        cluster.await_members(&present);
        proposals.push(cluster.nodes[returner].propose());
        cluster.await_applied(&proposals);
    }
    let started = Instant::now();
    for leaver in [2, 1, 4, 3, 0] {
        cluster.nodes[leaver].group().leave(MINUTE).unwrap();
        cluster.nodes[leaver].kill();
    }
    assert!(started.elapsed() < Duration::from_secs(20), "took {:?}", started.elapsed());
    // The last one still is the group.
    cluster.nodes[0].start().unwrap();
    cluster.await_applied(&proposals);
}

#[test]
fn who_leaves_takes_the_dead_along() {
    let mut cluster = Cluster::started("dead", 3);
    cluster.nodes[1].kill();
    cluster.nodes[2].group().leave(MINUTE).unwrap();
    cluster.nodes[2].kill();
    cluster.await_members(&[0]);
    let proposal = cluster.nodes[0].propose();
    cluster.await_applied(std::slice::from_ref(&proposal));
    cluster.nodes[1].start().unwrap();
    cluster.await_members(&[0, 1]);
    cluster.await_applied(&[proposal]);
}

#[test]
fn leaving_without_a_majority_times_out_and_says_so() {
    let mut cluster = Cluster::started("stuck", 3);
    cluster.nodes[1].kill();
    cluster.nodes[2].kill();
    let left = cluster.nodes[0].group().leave(Duration::from_secs(3));
    assert!(matches!(left, Err(GroupError::Order(OrderError::NoLeader { .. }))), "{left:?}");
}

#[test]
fn a_node_that_moves_is_found_at_its_new_address() {
    let mut cluster = Cluster::started("moved", 3);
    cluster.nodes[1].kill();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = port.local_addr().unwrap().to_string();
    drop(port);
    cluster.nodes[1].options.listen = addr.clone();
    cluster.nodes[1].options.advertise = addr.clone();
    cluster.nodes[1].start().unwrap();
    cluster.await_members(&[0, 1, 2]);
    for node in &cluster.nodes {
        node.wait("the new address in the view", |node| {
            node.view().members.iter().any(|member| member.addr == addr)
        });
    }
    let proposal = cluster.nodes[1].propose();
    cluster.await_applied(&[proposal]);
}

#[test]
fn a_whole_group_moves_to_new_addresses() {
    let mut cluster = Cluster::started("moving", 3);
    let mut proposals: Vec<_> = cluster.nodes.iter().map(|node| node.propose()).collect();
    cluster.await_applied(&proposals);
    for node in &mut cluster.nodes {
        node.kill();
    }
    let ports: Vec<_> =
        (0..3).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addrs: Vec<_> = ports.iter().map(|port| port.local_addr().unwrap().to_string()).collect();
    drop(ports);
    for (node, addr) in cluster.nodes.iter_mut().zip(&addrs) {
        node.options.listen = addr.clone();
        node.options.advertise = addr.clone();
        node.options.seeds = addrs.clone();
        node.start().unwrap();
    }
    cluster.await_members(&[0, 1, 2]);
    for node in &cluster.nodes {
        node.wait("the new addresses in the view", |node| {
            node.view().members.iter().all(|member| addrs.contains(&member.addr))
        });
    }
    proposals.push(cluster.nodes[2].propose());
    cluster.await_applied(&proposals);
}

#[test]
fn garbage_on_the_port_disturbs_nobody() {
    let cluster = Cluster::started("garbage", 3);
    let victim = cluster.leader();
    let term = cluster.nodes[victim].status().term;
    let addr = &cluster.nodes[victim].options.listen;
    let mut oversized = b"QRT\x01\x04\0\0\0".to_vec();
    oversized.extend([0xff; 64]);
    let mut alien_version = b"QRT\x09".to_vec();
    alien_version.extend([0; 64]);
    for garbage in [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 100_000],
        oversized,
        alien_version,
        b"QRT".to_vec(),
    ] {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(addr).unwrap();
            let _may_be_closed_already = stream.write_all(&garbage);
            stream.shutdown(std::net::Shutdown::Write).ok();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut answer = Vec::new();
            let _reset = stream.read_to_end(&mut answer);
            assert!(answer.is_empty());
        }
    }
    let proposals: Vec<_> = cluster.nodes.iter().map(|node| node.propose()).collect();
    cluster.await_applied(&proposals);
    let node = &cluster.nodes[victim];
    node.wait("a line about it", |node| node.has_line("closed a connection from 127.0.0.1"));
    let complaints = node.shared.lines.lock();
    let complaints = complaints.iter().filter(|(_, line)| line.contains("closed a connection"));
    assert!(complaints.count() <= 10, "one line a second at most");
    assert_eq!(node.status().term, term);
}

#[test]
fn a_node_of_another_group_is_refused_on_both_sides() {
    let mut cluster = Cluster::started("refuse", 2);
    let mut other = Cluster::new("other", 1);
    other.nodes[0].options.bootstrap = false;
    other.nodes[0].options.seeds = vec![cluster.nodes[0].options.listen.clone()];
    other.nodes[0].start().unwrap();
    let refused = other.nodes[0].group().wait_joined(MINUTE);
    let Err(GroupError::Order(OrderError::Refused { reason, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert!(reason.contains("'refuse'") && reason.contains("'other'"), "{reason}");
    cluster.nodes[0].wait("a line about it", |node| node.has_line("'other'"));

    // The same name, but a group of its own.
    other.nodes[0].wipe();
    other.nodes[0].options.bootstrap = true;
    other.nodes[0].options.seeds.clear();
    other.nodes[0].options.group_name = "refuse".into();
    other.nodes[0].start().unwrap();
    other.nodes[0].joined();
    other.nodes[0].kill();
    cluster.nodes[1].kill();
    other.nodes[0].options.listen = cluster.nodes[1].options.listen.clone();
    other.nodes[0].options.advertise = cluster.nodes[1].options.listen.clone();
    other.nodes[0].start().unwrap();
    cluster.nodes[0]
        .wait("the other group's id", |node| node.has_line("though both are named 'refuse'"));
}

#[test]
fn a_wiped_node_does_not_found_a_second_group() {
    let mut cluster = Cluster::started("second", 2);
    cluster.nodes[0].wipe();
    let refused = cluster.nodes[0].start();
    let Err(error @ GroupError::Start(StartError::GroupExists { .. })) = refused else {
        panic!("{refused:?}")
    };
    assert!(error.to_string().contains(&cluster.nodes[1].options.listen), "{error}");
    cluster.nodes[0].options.bootstrap = false;
    cluster.nodes[0].start().unwrap();
}

#[test]
fn five_that_join_at_once_are_admitted_one_after_the_other() {
    let mut cluster = Cluster::new("atonce", 5);
    for node in &mut cluster.nodes {
        node.start().unwrap();
    }
    cluster.await_members(&[0, 1, 2, 3, 4]);
    let proposals: Vec<_> = cluster.nodes.iter().map(|node| node.propose()).collect();
    cluster.await_applied(&proposals);
}

#[test]
fn a_copied_log_directory_is_noticed() {
    let mut cluster = Cluster::started("copied", 3);
    let mut other = Cluster::new("copy", 1);
    let options = &mut other.nodes[0].options;
    options.group_name = "copied".into();
    options.bootstrap = false;
    options.seeds = vec![cluster.nodes[0].options.listen.clone()];
    cluster.nodes[2].kill();
    std::fs::create_dir_all(&options.dir).unwrap();
    for file in std::fs::read_dir(&cluster.nodes[2].options.dir).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), options.dir.join(file.file_name())).unwrap();
    }
    cluster.nodes[2].start().unwrap();
    cluster.await_members(&[0, 1, 2]);
    other.nodes[0].start().unwrap();
    cluster.nodes[0].wait("a line about it", |node| node.has_line("copies of one log directory"));
    let proposal = cluster.nodes[2].propose();
    cluster.await_applied(&[proposal]);
}

#[test]
fn a_port_in_use_is_named() {
    let mut cluster = Cluster::new("port", 1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    cluster.nodes[0].options.listen = taken.local_addr().unwrap().to_string();
    let refused = cluster.nodes[0].start();
    let Err(error @ GroupError::Listen { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains(&cluster.nodes[0].options.listen));
    assert!(!cluster.nodes[0].options.dir.exists());
}

#[test]
fn two_nodes_cannot_share_a_directory() {
    let cluster = Cluster::started("share", 1);
    let mut other = Cluster::new("share2", 1);
    other.nodes[0].options.dir = cluster.nodes[0].options.dir.clone();
    let refused = other.nodes[0].start();
    let Err(GroupError::Wal(error)) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("in use"), "{error}");
}
