//! When a node votes on an error of another one, and how.

use super::*;

#[test]
fn a_node_that_has_fetched_its_state_votes_before_it_is_back_in_a_view() {
    for (fetched, ballot) in [(true, Ballot::Success), (false, Ballot::Abstain)] {
        let (node, group) = (Node::for_tests(), Arc::<Nobody>::default());
        let mut sequencer = attached_to(&node, group.clone(), None);
        sequencer.apply(Committed::View { index: 1, view: view_of_two() }).unwrap();
        if fetched {
            node.local.commit.set_position(4);
            node.link().unwrap().state_received();
        }
        node.local.set_state(LocalState::Undefined);
        sequencer.apply(of_the_other(2, 0)).unwrap();
        sequencer.apply(asks_about(3, 2)).unwrap();
        assert_eq!(group.votes(), [(2, VoteAct::Cast(ballot))]);
    }
}

#[test]
fn a_node_far_behind_is_waited_for_unless_it_is_about_ddl() {
    for (flags, abstains) in [(flags::ISOLATION, true), (0, false)] {
        let (node, group) = (Node::for_tests(), Arc::<Nobody>::default());
        let mut sequencer = attached_to(&node, group.clone(), Some(0));
        sequencer.apply(Committed::View { index: 1, view: view_of_two() }).unwrap();
        let last = 1_200;
        for index in 2..=last {
            sequencer.apply(of_the_other(index, flags)).unwrap();
        }
        sequencer.apply(asks_about(last + 1, last as i64)).unwrap();
        let abstention = (last as i64, VoteAct::Cast(Ballot::Abstain));
        assert_eq!(group.votes(), Vec::from_iter(abstains.then_some(abstention)));
    }
}

/// The one that waits may be the only one that can give it.
#[test]
fn a_node_that_has_come_to_need_a_state_says_so_when_it_is_reminded() {
    let (node, group) = (Node::for_tests(), Arc::<Nobody>::default());
    let mut sequencer = attached_to(&node, group.clone(), Some(1));
    sequencer.apply(Committed::View { index: 1, view: view_of_two() }).unwrap();
    sequencer.apply(of_the_other(2, 0)).unwrap();
    sequencer.apply(asks_about(3, 2)).unwrap();
    let queued = node.queued().now;
    let mut reminds = |index| {
        let vote = VoteMessage { seqno: 2, policy: 0, act: VoteAct::Close, text: String::new() };
        sequencer.apply(message(index, Kind::VOTE, &vote.encode())).unwrap();
        group.votes()
    };
    assert_eq!(reminds(4), [], "it comes to it");
    assert!(node.link().unwrap().needs_transfer());
    assert_eq!(reminds(5), [(2, VoteAct::Cast(Ballot::Abstain))]);
    assert_eq!(node.queued().now, queued, "its turn is waited for once");
}
