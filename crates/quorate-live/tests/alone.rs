//! Two members, one of which goes: when the other may go on alone, and when not.

mod common;

use common::{Cluster, Node, PATIENCE};

#[test]
fn a_dead_member_of_two_is_left_behind_and_taken_in_again() {
    let mut cluster = Cluster::started("alone", 2);
    let mut proposals: Vec<_> = (0..20).map(|at| cluster.nodes[at % 2].propose()).collect();
    cluster.await_applied(&proposals);
    cluster.nodes[0].group().allow_alone(true);
    cluster.nodes[1].kill();
    proposals.push(cluster.nodes[0].propose());
    cluster.nodes[0].await_applied(&proposals);
    assert_eq!(cluster.nodes[0].status().voters.len(), 1);
    cluster.nodes[1].start().unwrap();
    cluster.await_members(&[0, 1]);
    proposals.push(cluster.nodes[1].propose());
    cluster.await_applied(&proposals);
}

#[test]
fn without_the_option_it_waits_until_the_operator_says_so() {
    let mut cluster = Cluster::started("bootstrap", 2);
    let mut proposals = vec![cluster.nodes[0].propose()];
    cluster.await_applied(&proposals);
    assert!(cluster.nodes[0].operator().bootstrap().is_ok(), "with a quorum it does nothing");
    cluster.nodes[1].kill();
    cluster.nodes[0].wait("to be not primary", |node| !node.status().primary);
    proposals.push(cluster.nodes[0].propose());
    cluster.nodes[0]
        .wait("the other one's end to be known", |node| node.operator().bootstrap().is_ok());
    cluster.nodes[0].await_applied(&proposals);
}

#[test]
fn who_was_started_alone_or_isolated_has_no_right_to_go_on() {
    let mut cluster = Cluster::started("no-right", 2);
    let proposals = vec![cluster.nodes[0].propose()];
    cluster.await_applied(&proposals);
    cluster.nodes[1].kill();
    cluster.nodes[0].kill();
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].group().allow_alone(true);
    let refused = cluster.nodes[0].operator().bootstrap().unwrap_err().to_string();
    cluster.nodes[0].wait("a proof of death", |node| {
        let reason = node.operator().bootstrap().unwrap_err().to_string();
        reason.contains("has not been in the group since")
    });
    assert!(refused.contains("does not go on alone"), "{refused}");
    assert!(!cluster.nodes[0].status().is_leader);
    cluster.nodes[1].start().unwrap();
    cluster.await_members(&[0, 1]);
}

#[test]
fn an_isolated_member_is_left_behind_and_catches_up() {
    let cluster = Cluster::started("isolated", 2);
    let mut proposals = vec![cluster.nodes[0].propose()];
    cluster.await_applied(&proposals);
    cluster.nodes.iter().for_each(|node| node.group().allow_alone(true));
    cluster.nodes[1].operator().isolate(true).unwrap();
    cluster.nodes[1].wait("to be not primary", |node| !node.status().primary);
    proposals.push(cluster.nodes[0].propose());
    cluster.nodes[0].await_applied(&proposals);
    assert!(cluster.nodes[1].operator().bootstrap().is_err(), "it has forsworn that");
    cluster.nodes[1].operator().isolate(false).unwrap();
    cluster.await_members(&[0, 1]);
    proposals.push(cluster.nodes[1].propose());
    cluster.await_applied(&proposals);
}

#[test]
fn who_has_more_votes_of_two_goes_on_whatever_became_of_the_other_and_who_has_fewer_does_not() {
    let mut cluster = Cluster::started("votes", 2);
    let mut proposals = vec![cluster.nodes[0].propose()];
    cluster.await_applied(&proposals);
    cluster.nodes[1].group().want_votes(2, PATIENCE);
    let counts = |node: &Node| {
        let config = node.status().config;
        config.votes().count() == 3 && !config.is_joint()
    };
    cluster.nodes[0].wait("three votes", counts);
    cluster.nodes[1].operator().isolate(true).unwrap();
    cluster.nodes[0].wait("to be not primary", |node| !node.status().primary);
    proposals.push(cluster.nodes[1].propose());
    cluster.nodes[1].await_applied(&proposals);
    assert!(cluster.nodes[1].status().primary);
    cluster.nodes[1].wait("a view without the other", |node| node.view().members.len() == 1);
    cluster.nodes[1].operator().isolate(false).unwrap();
    cluster.await_members(&[0, 1]);
    cluster.await_applied(&proposals);
    cluster.nodes[0].group().allow_alone(true);
    cluster.nodes[1].kill();
    cluster.nodes[0].wait("to be not primary", |node| !node.status().primary);
    cluster.nodes[0].wait("a refusal for want of votes", |node| {
        let reason = node.operator().bootstrap().unwrap_err().to_string();
        reason.contains("full members")
    });
}
