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
