//! When a node counts as synced again.

use super::*;

/// No event of the queue comes after them.
#[test]
fn a_node_that_only_its_own_sessions_kept_behind_is_synced_when_they_end() {
    let node = at_four();
    let _sequencer = attached(&node, 4);
    let link = node.link().unwrap();
    node.local.set_state(LocalState::Synced);
    node.catch_up.set_target(4);
    let queue = &node.local.queue;
    assert!(matches!(queue.pop(), Popped::Event(Event::Connect)));
    queue.finish_exclusive();
    node.desync();
    link.progress.set_seqno(200);
    node.resync();
    assert_eq!((node.local.state(), queue.len()), (LocalState::Joined, 0), "sessions have to end");
    node.local.apply.set_position(199);
    node.local.commit.set_position(199);
    let last = Trx::new(1);
    last.decide(passed(200, 199));
    node.release(&Handle::Local(last));
    assert_eq!(queue.len(), 1);
    assert!(matches!(queue.pop(), Popped::Event(Event::Synced)));
}
