//! What the group tells a node, and what it is told of it.

use super::*;
use quorate_consensus::{Primaries, Rules as GroupRules};
use quorate_live::Observer as _;

#[test]
fn a_primary_that_applies_its_backlog_first_is_ready_and_takes_no_writes_yet() {
    let node = Arc::new(Node::for_tests());
    let observer = NodeObserver::new(&node);
    let told = || {
        let report = observer.server().unwrap();
        (report.ready, report.writes)
    };
    assert_eq!(told(), (false, Some(false)), "it has no group");

    let single = GroupRules { primaries: Primaries::Single, ..GroupRules::default() };
    node.primary.rules_changed(GroupRules { failover_waits: true, ..single });
    // Without a connection nobody waits for the backlog: it stays.
    node.primary.leader_changed(Some(3));
    let link = Link::new(Arc::<Nobody>::default(), genesis(), MemberId(1), 1, Some(4));
    node.local.set_link(Some(Arc::new(link)));
    node.local.set_state(LocalState::Synced);
    assert_eq!(told(), (true, Some(false)));
    node.primary.rules_changed(single);
    assert_eq!(told(), (true, Some(true)));
    node.primary.leader_changed(None);
    assert_eq!(told(), (true, Some(false)), "it is no primary");
}

/// As a member it would have a vote, and might lead, without a server that follows.
#[test]
fn a_node_that_the_log_does_not_get_through_to_leaves_its_group() {
    let node = Arc::new(at_four());
    let _sequencer = attached(&node, 4);
    node.local.set_state(LocalState::Synced);
    NodeObserver::new(&node).stuck("node n cannot go on after log index 7: a planted error".into());
    assert_eq!(node.local_state(), LocalState::Error);
    assert!(node.local.commit.enter(5, false).is_err(), "nothing is committed after it");
    assert!(node.link().unwrap().closing());
}

/// Where its certifier stands says nothing of them: a logger would let go of what this server needs.
#[test]
fn a_server_whose_rows_are_still_to_come_has_passed_nothing() {
    let node = at_four();
    let mut sequencer = attached_to(&node, Arc::default(), None);
    sequencer.restore(9, snapshot_at(18)).unwrap();
    sequencer.apply(of_the_other(10, 0)).unwrap();
    assert_eq!(node.local.standing().index, 0);
    node.link().unwrap().state_received();
    let passed = || node.local.standing().index;
    sequencer.passed(10);
    assert_eq!(passed(), 10);
    node.local.set_state(LocalState::Error);
    assert_eq!(passed(), 0, "its data may be given up");
}

/// An applier has taken it, or a session of this node is about to commit it.
#[test]
fn the_log_is_needed_from_the_first_write_set_on_that_is_not_in_the_database() {
    let node = Node::for_tests();
    let mut sequencer = attached(&node, 0);
    sequencer.apply(Committed::View { index: 6, view: view_of_two() }).unwrap();
    let first = node.link().unwrap().progress.seqno() + 1;
    node.local.apply.set_position(first - 1);
    for index in 7..=8 {
        sequencer.apply(of_the_other(index, 0)).unwrap();
    }
    let queue = &node.local.queue;
    node.local.queue.leave_only_the_end();
    assert!(queue.first_index().is_none() && sequencer.needs_from() <= 7, "none is done");
    node.local.apply.leave(first).unwrap();
    assert!(sequencer.needs_from() <= 8);
    node.local.apply.leave(first + 1).unwrap();
    assert_eq!(sequencer.needs_from(), Index::MAX);
}
