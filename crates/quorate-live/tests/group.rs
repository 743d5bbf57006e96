//! Forming a group, proposing from everywhere, losing and regaining members.

mod common;

use common::{in_time, Cluster, PATIENCE};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn a_single_member_commits_and_remembers() {
    let mut cluster = Cluster::started("single", 1);
    let proposals: Vec<_> = (0..100).map(|_| cluster.nodes[0].propose()).collect();
    cluster.await_applied(&proposals);
    cluster.nodes[0].kill();
    cluster.nodes[0].start().unwrap();
    cluster.await_applied(&proposals);
    assert!(cluster.nodes[0].has_line("no other is created"));
}

#[test]
fn three_members_apply_the_same_sequence() {
    let cluster = Cluster::started("three", 3);
    let proposals: Vec<String> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..9)
            .map(|at| {
                let node = &cluster.nodes[at % 3];
                scope.spawn(move || (0..300).map(|_| node.propose()).collect::<Vec<_>>())
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    cluster.await_applied(&proposals);
    for node in &cluster.nodes {
        assert_eq!(node.shared.state.lock().duplicates, 0);
        node.wait("no pending proposals", |node| node.status().proposals_pending == 0);
    }
}

#[test]
fn views_list_members_in_join_order() {
    let cluster = Cluster::started("views", 3);
    let ids: Vec<_> = cluster.nodes.iter().map(|node| node.id()).collect();
    for node in &cluster.nodes {
        let view = node.view();
        assert_eq!(view.members.iter().map(|member| member.id).collect::<Vec<_>>(), ids);
        assert_eq!(view.members[1].name, "n1");
        assert_eq!(view.members[2].incoming, "client2");
    }
}

#[test]
fn each_member_can_die_and_return() {
    let mut cluster = Cluster::started("return", 3);
    let mut proposals = Vec::new();
    for victim in [2, 1, 0, 1] {
        let old = cluster.nodes[victim].id();
        cluster.nodes[victim].kill();
        let rest: Vec<_> = (0..3).filter(|at| *at != victim).collect();
        for at in &rest {
            proposals.extend((0..20).map(|_| cluster.nodes[*at].propose()));
        }
        for at in &rest {
            cluster.nodes[*at].await_applied(&proposals);
            cluster.nodes[*at].wait("a view without the dead", |node| {
                node.view().members.iter().all(|member| member.id != old)
            });
        }
        cluster.nodes[victim].start().unwrap();
        cluster.await_members(&[0, 1, 2]);
        proposals.push(cluster.nodes[victim].propose());
        cluster.await_applied(&proposals);
    }
}

#[test]
fn proposals_survive_the_loss_of_their_leader() {
    let mut cluster = Cluster::started("survive", 3);
    let mut proposals = Vec::new();
    for _round in 0..3 {
        let leader = cluster.leader();
        let rest: Vec<_> = (0..3).filter(|at| *at != leader).collect();
        for _ in 0..200 {
            for at in &rest {
                proposals.push(cluster.nodes[*at].propose());
            }
        }
        cluster.nodes[leader].kill();
        let killed = Instant::now();
        let probe = cluster.nodes[rest[0]].propose();
        cluster.nodes[rest[0]].await_applied(std::slice::from_ref(&probe));
        println!("a commit {:?} after the leader was killed", killed.elapsed());
        proposals.push(probe);
        cluster.await_applied(&proposals);
        cluster.nodes[leader].start().unwrap();
        cluster.await_members(&[0, 1, 2]);
        cluster.await_applied(&proposals);
    }
}

#[test]
fn a_whole_group_returns_in_any_order() {
    let mut cluster = Cluster::started("cold", 3);
    let mut proposals: Vec<String> = Vec::new();
    for order in [[2, 1, 0], [1, 0, 2]] {
        proposals.extend((0..50).map(|at| cluster.nodes[at % 3].propose()));
        cluster.await_applied(&proposals);
        for node in &mut cluster.nodes {
            node.kill();
        }
        for at in order {
            cluster.nodes[at].start().unwrap();
        }
        cluster.await_members(&[0, 1, 2]);
        cluster.await_applied(&proposals);
    }
}

#[test]
fn a_minority_is_not_primary_and_hears_of_its_return() {
    let mut cluster = Cluster::started("minority", 3);
    cluster.nodes[1].kill();
    cluster.nodes[2].kill();
    let lonely = &cluster.nodes[0];
    lonely.wait("to be cut off", |node| node.shared.primary.lock().last() == Some(&false));
    let before = lonely.view().number;
    let pending = lonely.propose();
    cluster.nodes[1].start().unwrap();
    let lonely = &cluster.nodes[0];
    lonely.wait("its return", |node| node.shared.primary.lock().last() == Some(&true));
    lonely.wait("a fresh view", |node| node.view().number > before);
    lonely.await_applied(&[pending]);
}

#[test]
fn read_points_cover_what_was_committed_before() {
    let cluster = Cluster::started("barrier", 3);
    for round in 0..30 {
        let proposal = cluster.nodes[round % 3].propose();
        cluster.nodes[round % 3].await_applied(std::slice::from_ref(&proposal));
        let index = cluster.nodes[round % 3].shared.state.lock().last;
        let reader = &cluster.nodes[(round + 1) % 3];
        let started = Instant::now();
        assert!(reader.group().barrier(PATIENCE).unwrap() >= index);
        assert!(started.elapsed() < Duration::from_secs(5));
        reader.await_applied(&[proposal]);
    }
    std::thread::scope(|scope| {
        for at in 0..12 {
            let group = cluster.nodes[at % 3].group();
            scope.spawn(move || group.barrier(PATIENCE).unwrap());
        }
    });
}

/// The last entries of a new group change its membership; state machines are not shown those.
#[test]
fn read_points_are_reached_whatever_the_last_entry_is() {
    let cluster = Cluster::started("passed", 2);
    for node in &cluster.nodes {
        let index = node.group().barrier(PATIENCE).unwrap();
        node.wait("its read point", |node| node.shared.passed.load(Ordering::SeqCst) >= index);
    }
}

#[test]
fn leadership_goes_where_it_is_told_to_and_proposals_go_with_it() {
    let cluster = Cluster::started("switchover", 3);
    let mut proposals = Vec::new();
    for _ in 0..5 {
        let leader = cluster.leader();
        let (next, other) = ((leader + 1) % 3, (leader + 2) % 3);
        let name = cluster.nodes[next].options.name.clone();
        proposals.extend(cluster.nodes.iter().map(|node| node.propose()));
        let hand_over = || {
            let operator = cluster.nodes[cluster.leader()].operator();
            operator.switchover(Some(&name), PATIENCE)
        };
        assert_eq!(in_time(hand_over).unwrap(), name);
        assert_eq!(cluster.leader(), next);
        proposals.extend(cluster.nodes.iter().map(|node| node.propose()));
        let id = cluster.nodes[next].id();
        cluster.nodes[other].wait("the new leader", |node| node.status().leader == Some(id));
        let refusal = cluster.nodes[other].operator().switchover(None, PATIENCE).unwrap_err();
        assert!(refusal.to_string().contains(&name), "{refusal}");
    }
    cluster.await_applied(&proposals);
    let leader = cluster.nodes[cluster.leader()].operator();
    let refusal = leader.switchover(Some("nobody"), PATIENCE).unwrap_err();
    assert!(refusal.to_string().contains("nobody"), "{refusal}");
    let anybody = || cluster.nodes[cluster.leader()].operator().switchover(None, PATIENCE);
    assert_ne!(in_time(anybody).unwrap(), "");
}

#[test]
fn a_large_proposal_passes_in_pieces() {
    let mut cluster = Cluster::new("large", 3);
    for node in &mut cluster.nodes {
        // Also for a disk that is busy with other tests.
        node.options.election_timeout = Duration::from_secs(2);
        node.start().unwrap();
        node.joined();
    }
    cluster.await_members(&[0, 1, 2]);
    let term = cluster.nodes[0].status().term;
    let follower = cluster.follower();
    let large = cluster.nodes[follower].propose_padded(20 << 20);
    let small = cluster.nodes[(follower + 1) % 3].propose();
    cluster.await_applied(&[large, small]);
    let terms: Vec<_> = cluster.nodes.iter().map(|node| node.status().term).collect();
    assert_eq!(terms, [term; 3], "an election");
}
